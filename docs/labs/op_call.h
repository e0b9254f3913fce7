// Lab 4, the dispatcher: this file takes the place of core/dispatch/op_call.h. What each function has to do stands in
// docs/labs/op_call.md. Write them in this order; `./rush lab 4` checks them in this order.
#pragma once
#include <optional>
#include <type_traits>
#include <utility>

#include "core/dispatch/call_care.h"

namespace rush {

namespace detail {

// The keys of one argument: of the tensors in it, if there are any. T is Tensor, std::optional<Tensor>, TensorList,
// OptionalTensorList, or a type without tensors.
template <class T>
KeySet keys_of(const T& arg) {
  RUSH_THROW(NotImplementedError,
             "begin here: return arg.impl()->keys() if T is Tensor, see docs/labs/op_call.md; then "
             "look at the other types");
}

// The keys that the device argument of a factory adds: T is then std::optional<Device>.
template <class T>
KeySet device_key(const T& arg) {
  RUSH_THROW(NotImplementedError,
             "next: return keys_on(arg->type) if T is std::optional<Device> and there is a device");
}

}  // namespace detail

// A call: gathers the keys of all arguments, finds the kernel for the highest that counts, and calls it.
template <class R, class... Args>
R Op<R(Args...)>::operator()(Args... args) const {
  RUSH_THROW(NotImplementedError, "next: gather the keys of the ", sizeof...(Args), " arguments of ", name(),
             ", choose one, and call the kernel that table_ has for it");
}

// The same call on its way below the keys `without`, where a kernel or fallback passes it on.
template <class R, class... Args>
R Op<R(Args...)>::call_without(KeySet without, Args... args) const {
  RUSH_THROW(NotImplementedError, "last: do what operator() does, without the keys ", without.and_above(), " of ",
             name());
}

}  // namespace rush
