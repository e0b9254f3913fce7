#include "core/dispatch/value.h"

#include <variant>

namespace rush {

namespace {

template <class List>
struct VariantOf;
template <class... Ts>
struct VariantOf<detail::TypeList<Ts...>> {
  using type = std::variant<Ts...>;
};
using Data = VariantOf<Value::Types>::type;

}  // namespace

struct Value::Storage {
  static Data& of(Value& value) { return *std::launder(reinterpret_cast<Data*>(value.storage_)); }
  static const Data& of(const Value& value) { return *std::launder(reinterpret_cast<const Data*>(value.storage_)); }
  template <class T>
  static void make(Value& value, T&& held) {
    static_assert(sizeof(Data) == sizeof(storage_) && alignof(Data) == alignof(Value));
    new (value.storage_) Data(std::forward<T>(held));
  }
};

Value::Value() { Storage::make(*this, None()); }
Value::Value(const Value& other) { Storage::make(*this, Storage::of(other)); }
Value::Value(Value&& other) noexcept { Storage::make(*this, std::move(Storage::of(other))); }
Value& Value::operator=(const Value& other) {
  Storage::of(*this) = Storage::of(other);
  return *this;
}
Value& Value::operator=(Value&& other) noexcept {
  Storage::of(*this) = std::move(Storage::of(other));
  return *this;
}
Value::~Value() { Storage::of(*this).~Data(); }

Value::Value(Truth value) { Storage::make(*this, value.value); }
#define RUSH_DEFINITION(Type) \
  Value::Value(Type value) { Storage::make(*this, std::move(value)); }
RUSH_FORALL_VALUE_TYPES(RUSH_DEFINITION)
#undef RUSH_DEFINITION

size_t Value::index() const { return Storage::of(*this).index(); }

const void* Value::find(size_t index) const {
  const Data& data = Storage::of(*this);
  if (data.index() != index) return nullptr;
  return std::visit([](const auto& held) { return static_cast<const void*>(&held); }, data);
}

const char* Value::type_name(size_t index) {
  static constexpr const char* names[] = {"None",       "bool",   "Tensor",  "int",          "float",    "complex",
                                          "str",        "int[]",  "float[]", "bool[]",       "Tensor[]", "Tensor?[]",
                                          "ScalarType", "Layout", "Device",  "MemoryFormat", "Generator"};
  static_assert(std::size(names) == Types::size);
  return names[index];
}

}  // namespace rush
