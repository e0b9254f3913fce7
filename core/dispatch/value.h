// Value: any argument or result of an operator, for calls by name.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "core/device/generator.h"
#include "core/tensor.h"

namespace rush {

namespace detail {
template <class... Ts>
struct TypeList {
  static constexpr size_t size = sizeof...(Ts);
  static constexpr size_t largest = std::max({sizeof(Ts)...});  // of the types' sizes, in bytes
  /// The place of T, or `size`.
  template <class T>
  static constexpr size_t index_of() {
    size_t index = 0;
    (void)((std::is_same_v<T, Ts> || (++index, false)) || ...);
    return index;
  }
};
}  // namespace detail

// What a Value may hold besides nothing, bool (to which pointers convert) and Tensor: plain bytes, and what owns more.
// clang-format off
#define RUSH_FORALL_PLAIN_VALUE_TYPES(X) \
  X(int64_t) X(double) X(complex<double>) X(ScalarType) X(Layout) X(Device) X(MemoryFormat)
#define RUSH_FORALL_OWNING_VALUE_TYPES(X) \
  X(std::string) X(std::vector<int64_t>) X(std::vector<double>) X(std::vector<bool>) X(std::vector<Tensor>) \
  X(std::vector<std::optional<Tensor>>) X(Generator)
// clang-format on

// Tensors and plain values are made, moved and destroyed where that is written: a profile boxes each argument of each
// call. The others are looked after in value.cpp, so that programs need not compile it.
class Value {
 public:
  struct None {};  // Python's: an optional argument that is not given
  // clang-format off
#define RUSH_LISTED(Type) , Type
  using Types = detail::TypeList<
      None, bool RUSH_FORALL_PLAIN_VALUE_TYPES(RUSH_LISTED), Tensor RUSH_FORALL_OWNING_VALUE_TYPES(RUSH_LISTED)>;
#undef RUSH_LISTED
  // clang-format on

  Value() = default;
  Value(const Value& other) : place_(other.place_) {
    if (is_plain()) {
      copy_bytes(other);
    } else {
      copy(other);
    }
  }
  Value(Value&& other) noexcept : place_(other.place_) { take(other); }
  Value& operator=(Value other) noexcept {  // copies or moves
    destroy();
    place_ = other.place_;
    take(other);
    return *this;
  }
  ~Value() { destroy(); }

  Value(Tensor value) : place_(place<Tensor>()) { new (storage_) Tensor(std::move(value)); }
#define RUSH_CONSTRUCTOR(Type) \
  Value(Type value) : place_(place<Type>()) { new (storage_) Type(value); }
  RUSH_FORALL_PLAIN_VALUE_TYPES(RUSH_CONSTRUCTOR)
#undef RUSH_CONSTRUCTOR
#define RUSH_CONSTRUCTOR(Type) Value(Type value);
  RUSH_FORALL_OWNING_VALUE_TYPES(RUSH_CONSTRUCTOR)
#undef RUSH_CONSTRUCTOR
  Value(int value) : Value(static_cast<int64_t>(value)) {}
  Value(const char* value) : Value(std::string(value)) {}
  template <std::same_as<bool> T>
  Value(T value) : place_(place<bool>()) {
    new (storage_) bool(value);
  }

  bool is_none() const { return place_ == 0; }  // it holds None
  template <class T>
  bool is() const {  // it holds a T; nothing is converted
    return place_ == place<T>();
  }
  /// The value as exactly T. Throws TypeError naming what it holds.
  template <class T>
  const T& as() const {
    RUSH_CHECK_TYPE(is<T>(), "expected ", type_name(place<T>()), ", got ", kind());
    return *std::launder(reinterpret_cast<const T*>(storage_));
  }
  /// "Tensor", "int", "int[]", ...
  const char* kind() const { return type_name(place_); }

 private:
  // Of a type in Types.
  template <class T>
  static constexpr size_t place() {
    constexpr size_t index = Types::index_of<T>();
    static_assert(index < Types::size, "a Value holds no such type");
    return index;
  }
  static const char* type_name(size_t place);

  bool is_plain() const { return place_ < place<Tensor>(); }
  void copy_bytes(const Value& other) { std::memcpy(storage_, other.storage_, sizeof(complex<double>)); }  // the widest
  // The other value is left to be destroyed.
  void take(Value& other) noexcept {
    if (is_plain()) {
      copy_bytes(other);
    } else if (is<Tensor>()) {
      new (storage_) Tensor(std::move(*std::launder(reinterpret_cast<Tensor*>(other.storage_))));
    } else {
      take_owning(other);
    }
  }
  void destroy() noexcept {
    if (is_plain()) return;
    if (is<Tensor>()) {
      std::launder(reinterpret_cast<Tensor*>(storage_))->~Tensor();
    } else {
      destroy_owning();
    }
  }
  void copy(const Value& other);
  void take_owning(Value& other) noexcept;
  void destroy_owning() noexcept;

  size_t place_ = 0;  // in Types
  alignas(16) std::byte storage_[Types::largest];
};

}  // namespace rush
