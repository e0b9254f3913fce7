// c10::Dispatcher: operators by name, as libtorch's programs find and call them.
#pragma once
#include "c10/macros/Macros.h"

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "core/library/library.h"

namespace rush::libtorch {

// As our operators take an argument of type T: a std::string as a std::string_view, a Tensor by reference.
template <class T>
auto operators_take() {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (std::is_same_v<T, Tensor&>) {
    return std::type_identity<Tensor&>();
  } else if constexpr (std::is_same_v<Plain, Tensor> || std::is_same_v<Plain, std::optional<Tensor>> ||
                       std::is_same_v<Plain, Scalar>) {
    return std::type_identity<const Plain&>();
  } else if constexpr (std::is_same_v<Plain, std::string>) {
    return std::type_identity<std::string_view>();
  } else if constexpr (std::is_same_v<Plain, std::optional<std::string>>) {
    return std::type_identity<std::optional<std::string_view>>();
  } else if constexpr (requires { typename Plain::allocator_type; }) {  // a std::vector
    return std::type_identity<ArrayRef<typename Plain::value_type>>();
  } else {
    return std::type_identity<Plain>();
  }
}
template <class T>
using as_operators_take = typename decltype(operators_take<T>())::type;

// Such an argument as a T again.
template <class T, class Taken>
decltype(auto) as_given(Taken& value) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (std::is_convertible_v<Taken&, T>) {
    return static_cast<T>(value);
  } else if constexpr (requires {
                         typename Plain::value_type;
                         value.has_value();
                       }) {
    return value ? Plain(typename Plain::value_type(*value)) : Plain();
  } else {
    return Plain(value.begin(), value.end());
  }
}

}  // namespace rush::libtorch

namespace c10 {

template <class Sig>
class TypedOperatorHandle;
template <class R, class... Args>
class TypedOperatorHandle<R(Args...)> {
 public:
  explicit TypedOperatorHandle(std::string_view name)
      : op_(rush::find_operator<R(rush::libtorch::as_operators_take<Args>...)>(name)) {}
  R call(Args... args) const { return op_(std::forward<Args>(args)...); }

 private:
  const rush::Op<R(rush::libtorch::as_operators_take<Args>...)>& op_;
};

/// "aten::add" and "Tensor".
struct OperatorName {
  std::string name, overload_name;
  std::string whole() const { return overload_name.empty() ? name : name + "." + overload_name; }
};

/// An operator by its name.
class OperatorHandle {
 public:
  explicit OperatorHandle(OperatorName name) : name_(std::move(name)) {}
  /// To be called with arguments of these types. Throws TypeError unless they are the schema's.
  template <class Sig>
  TypedOperatorHandle<Sig> typed() const {
    return TypedOperatorHandle<Sig>(name_.whole());
  }
  const OperatorName& operator_name() const { return name_; }

 private:
  OperatorName name_;
};

class Dispatcher {
 public:
  static Dispatcher& singleton() {
    static Dispatcher dispatcher;
    return dispatcher;
  }
  /// Nothing where there is no operator of that name.
  std::optional<OperatorHandle> findSchema(const OperatorName& name) {
    if (!rush::registry().find(name.whole())) return std::nullopt;
    return OperatorHandle(name);
  }
  /// Throws NotImplementedError where there is none.
  OperatorHandle findSchemaOrThrow(const char* name, const char* overload_name) {
    const OperatorName wanted{name, overload_name};
    rush::library::detail::operator_named(wanted.whole());
    return OperatorHandle(wanted);
  }
};

}  // namespace c10
