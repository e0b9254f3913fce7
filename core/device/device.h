// Where a tensor's data lies.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/device/device_type.h"
#include "core/error/error.h"

namespace rush {

// "cpu", "cuda", "meta", or the name that it was added by.
const char* device_type_name(DeviceType type);
namespace detail {
// The first free number from `type` on. Throws ValueError as register_backend says.
DeviceType add_device_type(std::string_view name, int type = 0);

// A member that is read as what it holds and, as libtorch's programs do, by a call: `device.type` and `device.type()`.
template <class T>
struct CallableMember {
  T value;
  explicit constexpr CallableMember(T value) : value(value) {}
  constexpr CallableMember& operator=(T to) {
    value = to;
    return *this;
  }
  constexpr operator T() const { return value; }
  constexpr T operator()() const { return value; }
};
template <class T>
void append(std::string& out, CallableMember<T> member) {
  append(out, member.value);
}
}  // namespace detail

// A device type and, of accelerators, which one; index -1 means the current one.
struct Device : DevicePredicates<Device> {
  using Type = DeviceType;
  detail::CallableMember<DeviceType> type{DeviceType::CPU};
  detail::CallableMember<int8_t> index{-1};

  constexpr Device() = default;
  constexpr Device(DeviceType type, int index = -1) : type(type), index(static_cast<int8_t>(index)) {}
  // Parses a device type's name, "cuda:1" with an index; throws ValueError on anything else.
  Device(std::string_view text);
  Device(const char* text) : Device(std::string_view(text)) {}
  Device(const std::string& text) : Device(std::string_view(text)) {}
  Device(std::nullptr_t) = delete;  // so that the literal 0 is no text: x.to(0) does not compile

  bool is_on(DeviceType asked) const { return type == asked; }
  bool is_accelerator() const { return !is_cpu() && !is_meta(); }  // works by itself, at its own pace
  bool has_index() const { return index != -1; }                   // "cuda" has none
  void set_index(int8_t value) { index = value; }
  std::string str() const;  // "cuda:1"

  friend constexpr bool operator==(Device a, Device b) { return a.type == b.type && a.index == b.index; }
};

void append(std::string& out, Device device);  // "cuda:1", or "cuda" without an index

// The device on which factories make tensors that are not told where: the CPU, or what this thread has set.
Device get_default_device();
// Sets it for the calling thread and for the loops that it splits, not for the workers of a DataLoader. Throws what the
// device throws when it cannot be used. torch.set_default_device.
void set_default_device(Device device);

namespace detail {
// The type of device that the meta device stands for while an estimate of memory is made (core/memory/estimate.h): the
// dtypes of autocast and the parts of kernels are that one's. Meta itself otherwise.
inline constinit std::atomic<DeviceType> meta_stands_for{kMeta};
// What the type means, then.
inline DeviceType standing(DeviceType type) {
  return type == kMeta ? meta_stands_for.load(std::memory_order_relaxed) : type;
}
}  // namespace detail

}  // namespace rush
