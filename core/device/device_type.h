// The types of devices that are built in, and what libtorch's classes call them. This is the one header outside of
// backends/ that names CUDA. Further types are added at run time, see Note [Backends] in core/device/backend.h.
#pragma once
#include <cstdint>

namespace rush {

inline constexpr int kNumDeviceTypes = 8;  // at most; MPS and XPU are libtorch's names, of no backend here
enum class DeviceType : int8_t { CPU, CUDA, Meta, MPS = 6, XPU, COMPILE_TIME_MAX_DEVICE_TYPES = kNumDeviceTypes };
inline constexpr DeviceType kCPU = DeviceType::CPU;
inline constexpr DeviceType kCUDA = DeviceType::CUDA;
inline constexpr DeviceType kMeta = DeviceType::Meta;

namespace detail {
// As they parse and print.
inline constexpr const char* kBuiltInDeviceNames[] = {"cpu", "cuda", "meta"};
}  // namespace detail

// Base of a device and of what lies on one: a class T that answers `is_on(DeviceType)`.
template <class T>
class DevicePredicates {
 public:
  // Whether is_on() says so of the built-in type.
  bool is_cpu() const { return self().is_on(kCPU); }
  bool is_cuda() const { return self().is_on(kCUDA); }
  bool is_meta() const { return self().is_on(kMeta); }

 protected:
  const T& self() const { return static_cast<const T&>(*this); }
};

// Base of what can be copied to a device: T also has `to(DeviceType)`.
template <class T>
class DeviceCopies : public DevicePredicates<T> {
 public:
  // As to(kCPU) and to(kCUDA).
  T cpu() const { return this->self().to(kCPU); }
  T cuda() const { return this->self().to(kCUDA); }
};

}  // namespace rush
