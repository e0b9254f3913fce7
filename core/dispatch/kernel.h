// Kernel: the part of an operator that differs between devices, called once the output exists.
#pragma once
#include <utility>

#include "core/device/device.h"
#include "core/error/error.h"

namespace rush {

// Note [Fronts and kernels]
// An operator has a front and a kernel. The front, in core/ops, is the same for every device: it validates, computes
// the output's shape and allocates it. The kernel, in backends/, fills it. A front ends by calling its Kernel object
// with the device's type; a backend sets its function there when it registers. On the meta device there is nothing to
// fill, so the front alone is the meta kernel.

namespace detail {
// Whether an argument of a kernel is a tensor without data.
template <class T>
bool is_meta_argument(const T& argument) {
  if constexpr (requires { argument.impl()->device().is_meta(); }) {
    return argument.defined() && argument.impl()->device().is_meta();
  } else {
    return false;
  }
}
}  // namespace detail

template <class Signature>
class Kernel;

template <class... Args>
class Kernel<void(Args...)> {
 public:
  using Fn = void (*)(Args...);

  constexpr explicit Kernel(const char* name) : name_(name) {}
  Kernel(const Kernel&) = delete;

  void operator()(DeviceType device, Args... args) const {
    if (device == DeviceType::Meta) return;
    Fn fn = table_[static_cast<int>(device)];
    RUSH_CHECK_NOT_IMPLEMENTED(fn, name_, ": not implemented for device type ", device_type_name(device));
    // Every front would have to ask this; a kernel would read from the null pointer.
    RUSH_CHECK_VALUE(!(detail::is_meta_argument(args) || ...), name_,
                     ": a tensor on meta has no values, the others are on ", device_type_name(device));
    fn(std::forward<Args>(args)...);
  }
  void set(DeviceType device, Fn fn) { table_[static_cast<int>(device)] = fn; }
  const char* name() const { return name_; }

 private:
  const char* name_;
  Fn table_[kNumDeviceTypes] = {};
};

}  // namespace rush
