// Calls a typed operator with arguments from a stack of Values. Instantiated once per signature, where it is
// registered.
#pragma once
#include <algorithm>
#include <array>
#include <tuple>

#include "core/dispatch/op.h"
#include "core/dispatch/value.h"

namespace rush {

namespace detail {

// What an argument of type T is held as while the call runs; T is made from it.
template <class T>
struct Unbox {
  static T from(Value& value) { return value.as<T>(); }
};
template <>
struct Unbox<Tensor> {
  static Tensor from(Value& value) { return value.is_none() ? Tensor() : value.as<Tensor>(); }
};
template <>
struct Unbox<Scalar> {
  static Scalar from(Value& value) {
    if (value.is<bool>()) return value.as<bool>();
    if (value.is<int64_t>()) return value.as<int64_t>();
    if (value.is<complex<double>>()) return value.as<complex<double>>();
    return value.as<double>();
  }
};
template <>
struct Unbox<std::string_view> {
  static std::string_view from(Value& value) { return value.as<std::string>(); }
};
template <>
struct Unbox<IntArrayRef> {
  static IntArrayRef from(Value& value) { return value.as<std::vector<int64_t>>(); }
};
template <>
struct Unbox<ArrayRef<double>> {
  static ArrayRef<double> from(Value& value) { return value.as<std::vector<double>>(); }
};
template <size_t N>
struct Unbox<std::array<bool, N>> {
  static std::array<bool, N> from(Value& value) {
    const auto& given = value.as<std::vector<bool>>();
    RUSH_CHECK_VALUE(given.size() == N, "expected ", N, " booleans, got ", given.size());
    std::array<bool, N> mask;
    std::copy(given.begin(), given.end(), mask.begin());
    return mask;
  }
};
template <>
struct Unbox<TensorList> {
  static TensorList from(Value& value) { return value.as<std::vector<Tensor>>(); }
};
template <>
struct Unbox<OptionalTensorList> {
  static OptionalTensorList from(Value& value) { return value.as<std::vector<std::optional<Tensor>>>(); }
};
template <>
struct Unbox<OptionalIntArrayRef> {
  static OptionalIntArrayRef from(Value& value) {
    return value.is_none() ? OptionalIntArrayRef() : OptionalIntArrayRef(Unbox<IntArrayRef>::from(value));
  }
};
template <class T>
struct Unbox<std::optional<T>> {
  static std::optional<T> from(Value& value) {
    if (value.is_none()) return std::nullopt;
    return Unbox<T>::from(value);
  }
};

inline void push(Stack& stack, const Tensor& result) { stack.emplace_back(result); }
inline void push(Stack& stack, std::vector<Tensor> results) { stack.emplace_back(std::move(results)); }
template <class T>
void push(Stack& stack, const T& result) {
  stack.emplace_back(result);
}
template <class... T>
void push(Stack& stack, const std::tuple<T...>& results) {
  std::apply([&](const auto&... each) { (push(stack, each), ...); }, results);
}

template <class R, class... Args, size_t... I>
void call_unboxed(const Op<R(Args...)>& op, Stack& stack, std::index_sequence<I...>) {
  Value* args = stack.data() + (stack.size() - sizeof...(Args));
  // Held in a tuple: `Tensor&` needs an lvalue, and views must outlive the call.
  std::tuple<std::decay_t<Args>...> held{Unbox<std::decay_t<Args>>::from(args[I])...};
  if constexpr (std::is_void_v<R>) {
    op(std::get<I>(held)...);
    stack.resize(stack.size() - sizeof...(Args));
  } else {
    R result = op(std::get<I>(held)...);
    std::decay_t<R> kept = result;
    stack.resize(stack.size() - sizeof...(Args));
    push(stack, kept);
  }
}

template <class Sig>
struct ArgCount;
template <class R, class... Args>
struct ArgCount<R(Args...)> {
  static constexpr size_t value = sizeof...(Args);
};

}  // namespace detail

template <class Sig>
void call_unboxed(const OpBase& op, Stack& stack) {
  constexpr size_t count = detail::ArgCount<Sig>::value;
  RUSH_CHECK_TYPE(stack.size() >= count, op.name(), ": needs ", count, " arguments, got ", stack.size());
  detail::call_unboxed(static_cast<const Op<Sig>&>(op), stack, std::make_index_sequence<count>());
}

}  // namespace rush
