#include "core/dispatch/value.h"

#include <iterator>

namespace rush {

namespace {

// Calls f<T>() for the T at that place among the types.
template <class... T>
void call_for(size_t place, detail::TypeList<T...> /*types*/, const auto& f) {
  ((place == detail::TypeList<T...>::template index_of<T>() ? f.template operator()<T>() : void()), ...);
}

template <class T>
T& held(std::byte* storage) {
  return *std::launder(reinterpret_cast<T*>(storage));
}
template <class T>
const T& held(const std::byte* storage) {
  return *std::launder(reinterpret_cast<const T*>(storage));
}

#define RUSH_CHECK_PLAIN(Type) \
  static_assert(std::is_trivially_copyable_v<Type> && std::is_trivially_destructible_v<Type>);
RUSH_FORALL_PLAIN_VALUE_TYPES(RUSH_CHECK_PLAIN)
#undef RUSH_CHECK_PLAIN

}  // namespace

#define RUSH_CONSTRUCTOR(Type) \
  Value::Value(Type value) : place_(place<Type>()) { new (storage_) Type(std::move(value)); }
RUSH_FORALL_OWNING_VALUE_TYPES(RUSH_CONSTRUCTOR)
#undef RUSH_CONSTRUCTOR

void Value::copy(const Value& other) {
  call_for(place_, Types(), [&]<class T> { new (storage_) T(held<T>(other.storage_)); });
}

void Value::take_owning(Value& other) noexcept {
  call_for(place_, Types(), [&]<class T> { new (storage_) T(std::move(held<T>(other.storage_))); });
}

void Value::destroy_owning() noexcept {
  call_for(place_, Types(), [&]<class T> { held<T>(storage_).~T(); });
}

const char* Value::type_name(size_t place) {
  static constexpr const char* names[] = {"None",    "bool",   "int",          "float",     "complex",  "ScalarType",
                                          "Layout",  "Device", "MemoryFormat", "Tensor",    "str",      "int[]",
                                          "float[]", "bool[]", "Tensor[]",     "Tensor?[]", "Generator"};
  static_assert(std::size(names) == Types::size);
  return names[place];
}

}  // namespace rush
