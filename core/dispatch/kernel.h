// Kernel: the part of an operator that differs between devices, called once the output exists.
#pragma once
#include <tuple>
#include <utility>

#include "core/device/device.h"
#include "core/dispatch/cpu_fallback.h"
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
    // Every front would have to ask this; a kernel would read from the null pointer.
    RUSH_CHECK_VALUE(!(detail::is_meta_argument(args) || ...), name_,
                     ": a tensor on meta has no values, the others are on ", device_type_name(device));
    const Fn fn = table_[static_cast<int>(device)];
    if (RUSH_UNLIKELY(!fn)) return run_on_cpu(device, std::forward<Args>(args)...);
    fn(std::forward<Args>(args)...);
  }
  // Whether the device has a function of its own.
  bool has(DeviceType device) const { return table_[static_cast<int>(device)] != nullptr; }
  // Whether calls for the device run on the CPU: its own, and those of Note [Falling back to the CPU].
  bool runs_on_cpu(DeviceType device) const {
    return device == kCPU || (!has(device) && detail::falls_back_to_cpu(device));
  }
  // By the CPU's function, see Note [Falling back to the CPU]: also for what a device's own function does not take.
  // Throws NotImplementedError where the device's backend does not want that, or the CPU has no function either.
  RUSH_COLD void run_on_cpu(DeviceType device, Args... args) const {
    RUSH_CHECK_NOT_IMPLEMENTED(has(kCPU) && detail::falls_back_to_cpu(device), name_,
                               ": not implemented for device type ", device_type_name(device));
    detail::HostCopies copies(device);
    std::tuple<detail::HostArgument<Args>...> host{std::pair<detail::HostCopies&, Args>(copies, args)...};
    std::apply([&](auto&... each) { table_[static_cast<int>(kCPU)](each.get()...); }, host);
    copies.write_back();
    std::apply([&](auto&... each) { (each.put_back(copies), ...); }, host);
  }
  void set(DeviceType device, Fn fn) { table_[static_cast<int>(device)] = fn; }
  const char* name() const { return name_; }

 private:
  const char* name_;
  Fn table_[kNumDeviceTypes] = {};
};

}  // namespace rush
