// What a call looks after beside its kernel: the tensors that it writes, undefined ones, and the device of all.
#pragma once
#include <optional>
#include <type_traits>
#include <utility>

#include "core/dispatch/op.h"

namespace rush {

namespace detail {

template <class T>
void bump_if_written(T&& arg) {
  if constexpr (std::is_same_v<T, Tensor&>) arg.bump_version();
}

[[noreturn]] RUSH_COLD void throw_inference_written(std::string_view op);
// Throws Error when an inference tensor is to be written outside of InferenceMode. Note [Inference tensors].
template <class T>
void check_written(const std::remove_reference_t<T>& arg, const OpBase& op) {
  if constexpr (std::is_same_v<T, Tensor&>) {
    if (RUSH_UNLIKELY(arg.is_inference()) && !dispatch_state.inference_mode) throw_inference_written(op.name());
  }
}

// Whether an argument is, or has in it, an undefined tensor that is not optional.
inline bool is_undefined(const Tensor& t) { return !t.defined(); }
inline bool is_undefined(TensorList list) {
  for (const Tensor& t : list) {
    if (!t.defined()) return true;
  }
  return false;
}
template <class T>
bool is_undefined(const T&) {
  return false;
}
// Throws ValueError that names argument `position`, from 0, of the operator whose call was resolved last.
[[noreturn]] RUSH_COLD void throw_undefined(size_t position);

// Finds the accelerator of a call, makes it current, and restores the last one at the end.
class CallDevice {
 public:
  explicit CallDevice(const OpBase& op) : op_(op) {}
  ~CallDevice() {
    if (previous_ >= 0) leave();
  }
  CallDevice(const CallDevice&) = delete;
  CallDevice& operator=(const CallDevice&) = delete;

  void see(const Tensor& t) {
    if (t.defined()) see_tensor(*t.impl());
  }
  void see(const std::optional<Tensor>& t) {
    if (t) see(*t);
  }
  void see(TensorList list) {
    for (const Tensor& t : list) see(t);
  }
  void see(OptionalTensorList list) {
    for (const auto& t : list) see(t);
  }
  // A device asked for goes before that of a tensor, and tensors may then be anywhere.
  void see(const std::optional<Device>& device) {
    is_factory_ = true;
    if (device && device->is_accelerator() && device->index >= 0) asked_ = device;
  }
  template <class T>
  void see(const T&) {}

  // Throws ValueError naming the operator when the tensors lie on several devices.
  void enter(DeviceType type);
  // After the call.
  void finish() {
    if (RUSH_UNLIKELY(wait_for_each_call && entered_)) wait();
  }

 private:
  void see_tensor(const TensorImpl& tensor);
  void wait();
  void leave() noexcept;

  const OpBase& op_;
  DeviceType type_ = kCPU;
  std::optional<Device> device_;  // of the first tensor
  std::optional<Device> asked_;
  std::optional<Device> other_;  // another one that a tensor lies on
  int previous_ = -1;
  bool is_factory_ = false;
  bool cpu_tensor_ = false;  // one with dimensions
  bool entered_ = false;
};

}  // namespace detail

template <class R, class... Args>
R Op<R(Args...)>::report_undefined(Args... args) {
  const bool undefined[] = {detail::is_undefined(args)..., true};
  size_t position = 0;
  while (!undefined[position]) ++position;
  detail::throw_undefined(position);
}

template <class R, class... Args>
R Op<R(Args...)>::call_with_care(const Op& op, KeySet keys, Fn fn, Args... args) {
  detail::CallDevice device(op);
  (device.see(args), ...);
  device.enter((keys & kAccelerators).device());
  if constexpr (std::is_void_v<R>) {
    fn(std::forward<Args>(args)...);
    device.finish();
    if (is_inplace) (detail::bump_if_written<Args>(std::forward<Args>(args)), ...);
  } else {
    R result = fn(std::forward<Args>(args)...);
    device.finish();
    if (is_inplace) (detail::bump_if_written<Args>(std::forward<Args>(args)), ...);
    return result;
  }
}

}  // namespace rush
