#include "core/dispatch/boxed.h"

#include <algorithm>

#include "core/dispatch/value.h"

namespace rush::detail {

namespace {

// How a T is made from a Value. A view, such as an IntArrayRef, is one of what the Value holds.
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

// The other way.
template <class T>
Value box(const T& value) {
  return value;
}
Value box(const Scalar& value) {
  if (value.is_boolean()) return value.to<bool>();
  if (value.is_integral(false)) return value.to<int64_t>();
  if (value.is_complex()) return value.to<complex<double>>();
  return value.to<double>();
}
Value box(std::string_view value) { return std::string(value); }
template <class T>
Value box(ArrayRef<T> value) {
  return std::vector<T>(value.begin(), value.end());
}
template <size_t N>
Value box(const std::array<bool, N>& value) {
  return std::vector<bool>(value.begin(), value.end());
}
template <class T>
Value box(const std::optional<T>& value) {
  return value ? box(*value) : Value();
}
Value box(const OptionalIntArrayRef& value) { return value.has_value() ? box(*value) : Value(); }

}  // namespace

Value* arguments(const OpBase& op, Stack& stack, size_t count) {
  RUSH_CHECK_TYPE(stack.size() >= count, op.name(), ": needs ", count, " arguments, got ", stack.size());
  return stack.data() + (stack.size() - count);
}

Value* results(Stack& stack, size_t count) {
  RUSH_CHECK_TYPE(stack.size() == count, "a fallback left ", stack.size(), " results for ", count);
  return stack.data();
}

void drop(Stack& stack, size_t count) { stack.resize(stack.size() - count); }

template <class T>
T unbox(Value* arguments, size_t i) {
  return Unbox<T>::from(arguments[i]);
}

template <class T>
void push(Stack& stack, const T& value) {
  stack.push_back(box(value));
}

// The types that operators take and give.
#define RUSH_VALUE(...)                                    \
  template __VA_ARGS__ unbox<__VA_ARGS__>(Value*, size_t); \
  template void push(Stack&, const __VA_ARGS__&);
#define RUSH_VALUE_OR_NONE(T) RUSH_VALUE(T) RUSH_VALUE(std::optional<T>)
RUSH_VALUE_OR_NONE(Tensor)
RUSH_VALUE_OR_NONE(Scalar)
RUSH_VALUE_OR_NONE(bool)
RUSH_VALUE_OR_NONE(int64_t)
RUSH_VALUE_OR_NONE(double)
RUSH_VALUE_OR_NONE(std::string_view)
RUSH_VALUE_OR_NONE(ScalarType)
RUSH_VALUE_OR_NONE(Layout)
RUSH_VALUE_OR_NONE(Device)
RUSH_VALUE_OR_NONE(MemoryFormat)
RUSH_VALUE_OR_NONE(Generator)
RUSH_VALUE_OR_NONE(ArrayRef<double>)
RUSH_VALUE(IntArrayRef)
RUSH_VALUE(OptionalIntArrayRef)
RUSH_VALUE(TensorList)
RUSH_VALUE(std::vector<Tensor>)
RUSH_VALUE(OptionalTensorList)
RUSH_VALUE(std::array<bool, 2>)
RUSH_VALUE(std::array<bool, 3>)
RUSH_VALUE(std::array<bool, 4>)
#undef RUSH_VALUE_OR_NONE
#undef RUSH_VALUE

}  // namespace rush::detail
