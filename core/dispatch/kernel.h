// Kernel: the part of an operator that differs between devices, called once the output exists.
#pragma once
#include <tuple>
#include <utility>

#include "core/device/device.h"
#include "core/dispatch/cpu_fallback.h"
#include "core/dispatch/kernel_listener.h"
#include "core/error/error.h"

namespace rush {

// Note [Fronts and kernels]
// An operator has a front and a kernel. The front, in core/ops, is the same for every device: it validates, computes
// the output's shape and allocates it. The kernel, in backends/, fills it. A front ends by calling its Kernel object
// with the device's type; a backend sets its function there when it registers. On the meta device there is nothing to
// fill, so the front alone is the meta kernel. A function that is itself made of fronts, as set_by_parts() says, is
// gone through on meta too while an estimate of that device's memory is made: what it allocates counts. It launches
// nothing then.

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
// Count bytes in the estimate that is being made (core/memory/estimate.h): what a kernel would hold while it runs, and
// what a library takes at its first call and keeps, the owner's bytes once in each estimate.
void estimate_scratch(int64_t bytes);
void estimate_kept(const void* owner, int64_t bytes);
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
    if (device == DeviceType::Meta) return estimate(args...);
    // Every front would have to ask this; a kernel would read from the null pointer.
    RUSH_CHECK_VALUE(!(detail::is_meta_argument(args) || ...), name_,
                     ": a tensor on meta has no values, the others are on ", device_type_name(device));
    const Fn fn = table_[static_cast<int>(device)];
    if (RUSH_UNLIKELY(!fn)) return run_on_cpu(device, std::forward<Args>(args)...);
    fn(std::forward<Args>(args)...);
  }
  // Whether the device has a function of its own; meta, whether the device has it that an estimate is made for.
  bool has(DeviceType device) const { return table_[static_cast<int>(detail::standing(device))] != nullptr; }
  // Whether calls for the device run on the CPU: its own, and those of Note [Falling back to the CPU].
  bool runs_on_cpu(DeviceType device) const {
    device = detail::standing(device);
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
  // For estimates of memory: the bytes that the device's function allocates, asked for with arguments without data.
  void set_scratch(DeviceType device, int64_t (*bytes)(Args...)) { scratch_[static_cast<int>(device)] = bytes; }
  void set_by_parts(DeviceType device, Fn fn) {
    set(device, fn);
    by_parts_[static_cast<int>(device)] = true;
  }
  const char* name() const { return name_; }

 private:
  RUSH_COLD void estimate(Args... args) const {
    if (kernel_listener) return detail::tell_listener(*this, args...);
    const auto device = static_cast<int>(detail::standing(kMeta));
    if (by_parts_[device]) table_[device](args...);
    if (scratch_[device]) detail::estimate_scratch(scratch_[device](args...));
  }

  const char* name_;
  Fn table_[kNumDeviceTypes] = {};
  bool by_parts_[kNumDeviceTypes] = {};
  int64_t (*scratch_[kNumDeviceTypes])(Args...) = {};
};

}  // namespace rush
