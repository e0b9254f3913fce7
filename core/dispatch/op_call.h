// The call of an operator. Included where operators are registered (core/dispatch/registry.h).
#pragma once
#include <optional>
#include <type_traits>
#include <utility>

#include "core/dispatch/op.h"

namespace rush {

namespace detail {

// The kinds of arguments are told apart within one template: of overloads, the compiler would try every conversion.
template <class T>
inline constexpr bool is_list_of_tensors = std::is_same_v<T, TensorList> || std::is_same_v<T, OptionalTensorList>;

template <class T>
KeySet keys_of(const T& arg) {
  if constexpr (std::is_same_v<T, Tensor>) {
    return arg.defined() ? arg.impl()->keys() : KeySet(DispatchKey::UndefinedTensor);
  } else if constexpr (std::is_same_v<T, std::optional<Tensor>>) {
    return given(arg) ? arg->impl()->keys() : KeySet();
  } else if constexpr (is_list_of_tensors<T>) {
    KeySet keys;
    for (const auto& t : arg) keys |= keys_of(t);
    return keys;
  } else {
    return {};
  }
}

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

// A factory has no tensor argument; its device argument says where to go. One that is given beside a tensor, as to
// empty_like, adds its key.
template <class T>
KeySet device_key(const T& arg) {
  if constexpr (std::is_same_v<T, std::optional<Device>>) {
    return arg ? keys_on(arg->type) : KeySet();
  } else {
    return {};
  }
}

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
R Op<R(Args...)>::operator()(Args... args) const {
  KeySet keys = (KeySet() | ... | detail::keys_of(args));
  keys = as_the_thread_asks((keys | ... | detail::device_key(args)));
  const DispatchKey key = served_by(keys);
  Fn fn = reinterpret_cast<Fn>(table_[static_cast<int>(key)]);
  if (RUSH_UNLIKELY(!fn)) fn = reinterpret_cast<Fn>(resolve(keys));
  if constexpr (is_inplace) (detail::check_written<Args>(args, *this), ...);
  if (RUSH_UNLIKELY(needs_care(keys, key))) {
    return reinterpret_cast<CarefulFn>(careful_)(*this, keys, fn, std::forward<Args>(args)...);
  }
  if constexpr (is_inplace) {
    R result = fn(std::forward<Args>(args)...);
    if (key < DispatchKey::Autograd) (detail::bump_if_written<Args>(std::forward<Args>(args)), ...);
    return result;
  } else {
    return fn(std::forward<Args>(args)...);
  }
}

template <class R, class... Args>
R Op<R(Args...)>::call_without(KeySet without, Args... args) const {
  KeySet keys = (KeySet() | ... | detail::keys_of(args));
  keys = as_the_thread_asks((keys | ... | detail::device_key(args))).without(without.and_above());
  const DispatchKey key = served_by(keys);
  Fn fn = reinterpret_cast<Fn>(table_[static_cast<int>(key)]);
  if (RUSH_UNLIKELY(!fn)) fn = reinterpret_cast<Fn>(resolve(keys));
  if (RUSH_UNLIKELY(needs_care(keys, key))) {
    return reinterpret_cast<CarefulFn>(careful_)(*this, keys, fn, std::forward<Args>(args)...);
  }
  if constexpr (is_inplace) {
    R result = fn(std::forward<Args>(args)...);
    if (key < DispatchKey::Autograd) (detail::bump_if_written<Args>(std::forward<Args>(args)), ...);
    return result;
  } else {
    return fn(std::forward<Args>(args)...);
  }
}

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
  } else {
    R result = fn(std::forward<Args>(args)...);
    device.finish();
    if (is_inplace) (detail::bump_if_written<Args>(std::forward<Args>(args)), ...);
    return result;
  }
}

}  // namespace rush
