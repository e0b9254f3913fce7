// What a kernel call needs to run on the CPU for tensors of another device.
#pragma once
#include <array>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace rush {

class TensorIterator;

// Note [Falling back to the CPU]
// A backend from outside begins with a few kernels. Where a Kernel has no function for a device type whose Backend
// says falls_back_to_cpu, it runs the CPU's: the memory behind its tensors is copied to the CPU, whole storages, so
// that views of one memory stay views of one memory; its arguments are given to the CPU's function with tensors over
// the copies; and what that has changed is copied back. The front, autograd and the caller notice nothing but the time.
// A struct among the arguments names its tensors by a member function `each_tensor(f)`, which calls f for each.

namespace detail {

/// The copies of one call.
class HostCopies {
 public:
  explicit HostCopies(DeviceType device) : device_(device) {}
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  /// A tensor of the same place in the copy of the memory; `t` itself if it lies elsewhere or is undefined.
  Tensor to_host(const Tensor& t);
  /// What to_host made `t` of, or a copy of `t` on the device if the kernel made it.
  Tensor to_device(const Tensor& t);
  /// Copies back what has changed.
  void write_back();

 private:
  struct Block {
    Storage device, host, before;
  };
  const Block& block_of(const Storage& storage);

  DeviceType device_;
  std::vector<Block> blocks_;
  std::vector<std::pair<Tensor, Tensor>> moved_;  // on the host, on the device
};

struct AnyTensorFunction {
  void operator()(Tensor&) const {}
};
template <class T>
concept HoldsTensors = requires(T& value) {
  value.each_tensor(AnyTensorFunction());
};
/// Of the types of arguments that are passed on as they are.
template <class T>
inline constexpr bool holds_no_tensors = std::is_trivially_destructible_v<T>;

/// An argument of a kernel, and what stands for it on the CPU.
template <class Arg>
class HostArgument {
  using Value = std::remove_cvref_t<Arg>;
  static_assert(HoldsTensors<Value> || holds_no_tensors<Value>, "give the struct a member function each_tensor(f)");

 public:
  HostArgument(std::pair<HostCopies&, Arg> argument) : original_(argument.second), value_(argument.second) {
    if constexpr (HoldsTensors<Value>) value_.each_tensor([&](Tensor& t) { t = argument.first.to_host(t); });
  }
  Arg get() { return static_cast<Arg>(value_); }
  void put_back(HostCopies& copies) {
    if constexpr (std::is_lvalue_reference_v<Arg> && !std::is_const_v<std::remove_reference_t<Arg>>) {
      if constexpr (HoldsTensors<Value>) value_.each_tensor([&](Tensor& t) { t = copies.to_device(t); });
      original_ = value_;
    }
  }

 private:
  Arg original_;
  Value value_;
};

template <>
class HostArgument<const Tensor&> {
 public:
  HostArgument(std::pair<HostCopies&, const Tensor&> argument) : value_(argument.first.to_host(argument.second)) {}
  const Tensor& get() { return value_; }
  void put_back(HostCopies&) {}

 private:
  Tensor value_;
};

template <>
class HostArgument<Tensor&> {
 public:
  HostArgument(std::pair<HostCopies&, Tensor&> argument)
      : original_(argument.second), value_(argument.first.to_host(argument.second)) {}
  Tensor& get() { return value_; }
  void put_back(HostCopies& copies) { original_ = copies.to_device(value_); }

 private:
  Tensor& original_;
  Tensor value_;
};

template <>
class HostArgument<TensorList> {
 public:
  HostArgument(std::pair<HostCopies&, TensorList> argument) {
    for (const Tensor& t : argument.second) values_.push_back(argument.first.to_host(t));
  }
  TensorList get() { return values_; }
  void put_back(HostCopies&) {}

 private:
  std::vector<Tensor> values_;
};

template <size_t n>
class HostArgument<const std::array<Tensor, n>&> {
 public:
  HostArgument(std::pair<HostCopies&, const std::array<Tensor, n>&> argument) : values_(argument.second) {
    for (Tensor& t : values_) t = argument.first.to_host(t);
  }
  const std::array<Tensor, n>& get() { return values_; }
  void put_back(HostCopies&) {}

 private:
  std::array<Tensor, n> values_;
};

/// An iterator goes over the copies until the end of the call.
template <>
class HostArgument<TensorIterator&> {
 public:
  HostArgument(std::pair<HostCopies&, TensorIterator&> argument);
  ~HostArgument();
  HostArgument(const HostArgument&) = delete;
  HostArgument& operator=(const HostArgument&) = delete;
  TensorIterator& get() { return iterator_; }
  void put_back(HostCopies&) {}

 private:
  TensorIterator& iterator_;
  DeviceType device_;
  std::vector<std::pair<Tensor, char*>> operands_;  // as they were
};

/// Whether the device's backend wants it. False for the CPU.
bool falls_back_to_cpu(DeviceType device);

}  // namespace detail

}  // namespace rush
