// The call of an operator. Included where operators are registered (core/dispatch/registry.h).
#pragma once
#include <optional>
#include <type_traits>
#include <utility>

#include "core/dispatch/call_care.h"

namespace rush {

namespace detail {

// The kinds of arguments are told apart within one template: of overloads, the compiler would try every conversion.
template <class T>
inline constexpr bool is_list_of_tensors = std::is_same_v<T, TensorList> || std::is_same_v<T, OptionalTensorList>;

template <class T>
inline KeySet keys_of(const T& arg) {
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

// A factory has no tensor argument; its device argument says where to go. One that is given beside a tensor, as to
// empty_like, adds its key.
template <class T>
inline KeySet device_key(const T& arg) {
  if constexpr (std::is_same_v<T, std::optional<Device>>) {
    return arg ? keys_on(arg->type) : KeySet();
  } else {
    return {};
  }
}

// The call of a kernel that writes arguments; where `bump` says so, the versions of these count it.
template <class R, class... Args>
[[gnu::always_inline]] inline R call_and_bump(R (*fn)(Args...), bool bump, Args... args) {
  if constexpr (std::is_void_v<R>) {
    fn(std::forward<Args>(args)...);
    if (bump) (bump_if_written<Args>(std::forward<Args>(args)), ...);
  } else {
    R result = fn(std::forward<Args>(args)...);
    if (bump) (bump_if_written<Args>(std::forward<Args>(args)), ...);
    return result;
  }
}

}  // namespace detail

template <class R, class... Args>
inline R Op<R(Args...)>::operator()(Args... args) const {
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
    return detail::call_and_bump<R, Args...>(fn, key < DispatchKey::Tracer, std::forward<Args>(args)...);
  } else {
    return fn(std::forward<Args>(args)...);
  }
}

template <class R, class... Args>
inline R Op<R(Args...)>::call_without(KeySet without, Args... args) const {
  KeySet keys = (KeySet() | ... | detail::keys_of(args));
  keys = as_the_thread_asks((keys | ... | detail::device_key(args))).without(left_behind(without));
  const DispatchKey key = served_by(keys);
  Fn fn = reinterpret_cast<Fn>(table_[static_cast<int>(key)]);
  if (RUSH_UNLIKELY(!fn)) fn = reinterpret_cast<Fn>(resolve(keys));
  if (RUSH_UNLIKELY(needs_care(keys, key))) {
    return reinterpret_cast<CarefulFn>(careful_)(*this, keys, fn, std::forward<Args>(args)...);
  }
  if constexpr (is_inplace) {
    return detail::call_and_bump<R, Args...>(fn, key < DispatchKey::Tracer, std::forward<Args>(args)...);
  } else {
    return fn(std::forward<Args>(args)...);
  }
}

}  // namespace rush
