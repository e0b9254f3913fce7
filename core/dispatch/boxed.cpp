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

}  // namespace

Value* arguments(const OpBase& op, Stack& stack, size_t count) {
  RUSH_CHECK_TYPE(stack.size() >= count, op.name(), ": needs ", count, " arguments, got ", stack.size());
  return stack.data() + (stack.size() - count);
}

void drop(Stack& stack, size_t count) { stack.resize(stack.size() - count); }

template <class T>
T unbox(Value* arguments, size_t i) {
  return Unbox<T>::from(arguments[i]);
}

template <class T>
void push(Stack& stack, const T& result) {
  stack.emplace_back(result);
}

// The types that operators take and give.
#define RUSH_UNBOX(...) template __VA_ARGS__ unbox<__VA_ARGS__>(Value*, size_t);
#define RUSH_UNBOX_WITH_OPTIONAL(T) RUSH_UNBOX(T) RUSH_UNBOX(std::optional<T>)
RUSH_UNBOX_WITH_OPTIONAL(Tensor)
RUSH_UNBOX_WITH_OPTIONAL(Scalar)
RUSH_UNBOX_WITH_OPTIONAL(bool)
RUSH_UNBOX_WITH_OPTIONAL(int64_t)
RUSH_UNBOX_WITH_OPTIONAL(double)
RUSH_UNBOX_WITH_OPTIONAL(std::string_view)
RUSH_UNBOX_WITH_OPTIONAL(ScalarType)
RUSH_UNBOX_WITH_OPTIONAL(Layout)
RUSH_UNBOX_WITH_OPTIONAL(Device)
RUSH_UNBOX_WITH_OPTIONAL(MemoryFormat)
RUSH_UNBOX_WITH_OPTIONAL(Generator)
RUSH_UNBOX_WITH_OPTIONAL(ArrayRef<double>)
RUSH_UNBOX(IntArrayRef)
RUSH_UNBOX(OptionalIntArrayRef)
RUSH_UNBOX(TensorList)
RUSH_UNBOX(OptionalTensorList)
RUSH_UNBOX(std::array<bool, 2>)
RUSH_UNBOX(std::array<bool, 3>)
RUSH_UNBOX(std::array<bool, 4>)
#undef RUSH_UNBOX_WITH_OPTIONAL
#undef RUSH_UNBOX
#define RUSH_PUSH(...) template void push(Stack&, const __VA_ARGS__&);
RUSH_PUSH(Tensor)
RUSH_PUSH(std::vector<Tensor>)
RUSH_PUSH(bool)
RUSH_PUSH(int64_t)
#undef RUSH_PUSH

}  // namespace rush::detail
