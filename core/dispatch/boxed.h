// Calls a typed operator with arguments from a stack of Values. Instantiated once per signature, where it is
// registered; so what it consists of is compiled once, in boxed.cpp, and Value stays incomplete here.
#pragma once
#include <array>
#include <tuple>
#include <utility>

#include "core/dispatch/op.h"

namespace rush {

namespace detail {

// The last `count` values of the stack. Throws TypeError when there are fewer.
Value* arguments(const OpBase& op, Stack& stack, size_t count);
// Takes them off.
void drop(Stack& stack, size_t count);
// Argument i as a T. Throws TypeError when it holds something else.
template <class T>
T unbox(Value* arguments, size_t i);
template <class T>
void push(Stack& stack, const T& result);

template <class... T>
void push_results(Stack& stack, const std::tuple<T...>& results) {
  std::apply([&](const auto&... each) { (push(stack, each), ...); }, results);
}
template <class T>
void push_results(Stack& stack, const T& result) {
  push(stack, result);
}

template <class R, class... Args, size_t... I>
RUSH_COLD void call_indexed(const Op<R(Args...)>& op, Stack& stack, std::index_sequence<I...>) {
  Value* args = arguments(op, stack, sizeof...(Args));
  // Held in a tuple: `Tensor&` needs an lvalue, and views must outlive the call.
  std::tuple<std::decay_t<Args>...> held{unbox<std::decay_t<Args>>(args, I)...};
  if constexpr (std::is_void_v<R>) {
    op(std::get<I>(held)...);
    drop(stack, sizeof...(Args));
  } else {
    const std::decay_t<R> result = op(std::get<I>(held)...);
    drop(stack, sizeof...(Args));
    push_results(stack, result);
  }
}

template <class R, class... Args>
RUSH_COLD void call_unboxed(const OpBase& op, Stack& stack) {
  call_indexed(static_cast<const Op<R(Args...)>&>(op), stack, std::index_sequence_for<Args...>());
}

template <class Sig>
struct BoxedCall;
template <class R, class... Args>
struct BoxedCall<R(Args...)> {
  static constexpr auto* function = &call_unboxed<R, Args...>;
};

}  // namespace detail

}  // namespace rush
