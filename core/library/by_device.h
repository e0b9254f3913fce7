// The front of an operator from outside: it finds the function that was registered for the device of a call.
#pragma once
#include "core/dispatch/op_call.h"

namespace rush::library::detail {

// The type of device that a call is for: meta where a tensor is there, an accelerator where one is there, else the CPU.
inline DeviceType device_of_call(KeySet keys) {
  if (keys.empty()) return dispatch_state.default_device.type;
  if (keys.has(kMeta)) return kMeta;
  return keys.has_any(kAccelerators) ? (keys & kAccelerators).device() : kCPU;
}

// Whether gradients are recorded of a call that has these keys, which stopped at no derivative of the operator.
inline bool misses_derivative(const OpBase& op, KeySet keys) {
  return keys.without(dispatch_state.excluded).has(DispatchKey::Autograd) && !op.has_kernel(DispatchKey::Autograd);
}

// Throws NotImplementedError, which names the devices that the operator has a function for.
[[noreturn]] void throw_no_kernel(const OpBase& op, DeviceType device, KeySet devices);

// An argument that is returned as it is would get the operator's node as its own history. Throws ValueError.
[[noreturn]] void throw_returned_argument(const OpBase& op);

// Without a derivative, what a function computes by itself would be a constant. Throws NotImplementedError.
[[noreturn]] void throw_no_derivative(const OpBase& op);

// Calls f for each tensor of an argument or a result.
template <class T, class F>
void each_tensor(const T& value, const F& f) {
  if constexpr (std::is_same_v<T, Tensor>) {
    if (value.defined()) f(value);
  } else if constexpr (std::is_same_v<T, std::optional<Tensor>>) {
    if (value) each_tensor(*value, f);
  } else if constexpr (rush::detail::is_list_of_tensors<T> || std::is_same_v<T, std::vector<Tensor>>) {
    for (const auto& each : value) each_tensor(each, f);
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    std::apply([&](const auto&... each) { (each_tensor(each, f), ...); }, value);
  }
}
template <class R, class... Args>
void check_result(const OpBase& op, bool wants_history, const R& result, const Args&... args) {
  each_tensor(result, [&](const Tensor& returned) {
    const bool can_have_history = wants_history && is_differentiable(returned.scalar_type());
    if (can_have_history && !returned.requires_grad()) throw_no_derivative(op);
    const auto check = [&](const Tensor& argument) {
      if (returned.is_same(argument) && !op.is_view()) throw_returned_argument(op);
    };
    (each_tensor(args, check), ...);
  });
}

// Calls the function that `table` has for the device of the call.
template <class R, class... Args>
R call_by_device(const OpBase& op, R (*const (&table)[kNumDeviceTypes])(Args...), std::type_identity_t<Args>... args) {
  KeySet keys = (KeySet() | ... | rush::detail::keys_of(args));
  keys = (keys | ... | rush::detail::device_key(args));
  const DeviceType device = device_of_call(keys);
  R (*const fn)(Args...) = table[static_cast<int>(device)];
  if (RUSH_UNLIKELY(!fn)) {
    KeySet devices;
    for (int i = 0; i < kNumDeviceTypes; ++i) {
      if (table[i]) devices |= static_cast<DeviceType>(i);
    }
    throw_no_kernel(op, device, devices);
  }
  const bool wants_history = misses_derivative(op, keys);
  if constexpr (std::is_void_v<R> || std::is_reference_v<R>) {
    if (wants_history && Op<R(Args...)>::is_inplace) throw_no_derivative(op);
    return fn(std::forward<Args>(args)...);
  } else {
    R result = fn(std::forward<Args>(args)...);
    check_result(op, wants_history, result, args...);
    return result;
  }
}

template <auto& op, class Sig>
struct Functions;
template <auto& op, class R, class... Args>
struct Functions<op, R(Args...)> {
  using Fn = R (*)(Args...);
  static inline constinit Fn table[kNumDeviceTypes] = {};

  static R front(Args... args) { return call_by_device(op, table, std::forward<Args>(args)...); }
};

// The signature of an operator object, R(Args...).
template <auto& op>
using Sig = std::remove_pointer_t<typename std::remove_cvref_t<decltype(op)>::Fn>;

template <auto& op>
using ByDevice = Functions<op, Sig<op>>;

}  // namespace rush::library::detail
