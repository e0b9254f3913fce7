// Calls a typed operator with arguments from a stack of Values. Instantiated once per signature, where it is
// registered; so what it consists of is compiled once, in boxed.cpp, and Value stays incomplete here.
#pragma once
#include <tuple>
#include <utility>

#include "core/dispatch/op_call.h"

namespace rush {

namespace detail {

// The last `count` values of the stack. Throws TypeError when there are fewer.
Value* arguments(const OpBase& op, Stack& stack, size_t count);
// Takes them off.
void drop(Stack& stack, size_t count);
// The `count` values that a fallback left on the stack. Throws TypeError when there are more or fewer.
Value* results(Stack& stack, size_t count);
// Argument i as a T. Throws TypeError when it holds something else.
template <class T>
T unbox(Value* arguments, size_t i);
template <class T>
void push(Stack& stack, const T& value);

// The call that OpBase::resolve has just found a fallback for, with its arguments and then its results.
class FallbackCall {
 public:
  FallbackCall();
  ~FallbackCall();
  FallbackCall(const FallbackCall&) = delete;

  Stack& stack() { return stack_; }
  void run();

 private:
  const OpBase& op_;
  const KeySet keys_;
  const BoxedFallback fallback_;
  Stack stack_;
};

template <class... T>
void push_results(Stack& stack, const std::tuple<T...>& results) {
  std::apply([&](const auto&... each) { (push(stack, each), ...); }, results);
}
template <class T>
void push_results(Stack& stack, const T& result) {
  push(stack, result);
}

template <class R, class... Args, size_t... I>
RUSH_COLD void call_indexed(const Op<R(Args...)>& op, KeySet without, Stack& stack, std::index_sequence<I...>) {
  Value* args = arguments(op, stack, sizeof...(Args));
  // Held in a tuple: `Tensor&` needs an lvalue, and views must outlive the call.
  std::tuple<std::decay_t<Args>...> held{unbox<std::decay_t<Args>>(args, I)...};
  if constexpr (std::is_void_v<R>) {
    op.call_without(without, std::get<I>(held)...);
    drop(stack, sizeof...(Args));
  } else {
    const std::decay_t<R> result = op.call_without(without, std::get<I>(held)...);
    drop(stack, sizeof...(Args));
    push_results(stack, result);
  }
}

template <class R>
struct Results {
  static R take(Stack& stack) { return unbox<R>(results(stack, 1), 0); }
};
template <class... T>
struct Results<std::tuple<T...>> {
  static std::tuple<T...> take(Stack& stack) {
    return take(results(stack, sizeof...(T)), std::index_sequence_for<T...>());
  }
  template <size_t... I>
  static std::tuple<T...> take(Value* results, std::index_sequence<I...>) {
    return {unbox<T>(results, I)...};
  }
};

inline Tensor& first_written(Tensor& written, auto&...) { return written; }
Tensor& first_written(const auto&, auto&... rest) { return first_written(rest...); }

template <class Sig>
struct BoxedCall;
template <class R, class... Args>
struct BoxedCall<R(Args...)> {
  static RUSH_COLD void function(const OpBase& op, KeySet without, Stack& stack) {
    call_indexed(static_cast<const Op<R(Args...)>&>(op), without, stack, std::index_sequence_for<Args...>());
  }
  // See Note [Fallbacks].
  static RUSH_COLD R through_fallback(Args... args) {
    FallbackCall call;
    (push<std::decay_t<Args>>(call.stack(), args), ...);
    call.run();
    if constexpr (std::is_same_v<R, Tensor&>) {
      return first_written(args...);
    } else if constexpr (!std::is_void_v<R>) {
      return Results<R>::take(call.stack());
    }
  }
};

}  // namespace detail

}  // namespace rush
