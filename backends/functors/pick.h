// The choice of a loop by dtype, for kernels of every device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "core/device/device.h"
#include "core/error/error.h"
#include "core/macros.h"
#include "core/scalar_type.h"

namespace rush {

template <class... T>
struct TypeList {};
template <class... A, class... B>
TypeList<A..., B...> operator+(TypeList<A...>, TypeList<B...>);

// The C++ types of all dtypes, for what also those take that are only stored: copies, conversions, fills.
#define RUSH_PLUS(enumerator, type, ...) +TypeList<type>()
using EveryType = decltype(TypeList<>() RUSH_FORALL_SCALAR_TYPES(RUSH_PLUS));
#undef RUSH_PLUS

// Those of the dtypes with arithmetic that are of one of these kinds.
#define RUSH_PLUS(enumerator, type, ...)                                              \
  +std::conditional_t<has_arithmetic(ScalarType::enumerator) &&                       \
                          ((traits_of(ScalarType::enumerator).kind == kinds) || ...), \
                      TypeList<type>, TypeList<>>()
template <DtypeKind... kinds>
using TypesOf = decltype(TypeList<>() RUSH_FORALL_SCALAR_TYPES(RUSH_PLUS));
#undef RUSH_PLUS
using IntegerTypes = TypesOf<DtypeKind::Integer>;
using IntegerAndBoolTypes = TypesOf<DtypeKind::Integer, DtypeKind::Bool>;
using RealFloatTypes = TypesOf<DtypeKind::Float>;
using ComplexTypes = TypesOf<DtypeKind::Complex>;
using FloatTypes = TypesOf<DtypeKind::Float, DtypeKind::Complex>;
using RealTypes = TypesOf<DtypeKind::Float, DtypeKind::Integer>;
using RealAndBoolTypes = TypesOf<DtypeKind::Float, DtypeKind::Integer, DtypeKind::Bool>;
using NumberTypes = TypesOf<DtypeKind::Float, DtypeKind::Integer, DtypeKind::Complex>;
using AllTypes = TypesOf<DtypeKind::Bool, DtypeKind::Integer, DtypeKind::Float, DtypeKind::Complex>;

// The instance of Loop::run for `dtype`. Throws NotImplementedError naming `op` when the list lacks it.
template <class Loop, class... T>
auto pick(TypeList<T...>, ScalarType dtype, const char* op) {
  using Fn = decltype(&Loop::template run<std::tuple_element_t<0, std::tuple<T...>>>);
  Fn fn = nullptr;
  ((dtype == scalar_type_of<T> ? void(fn = &Loop::template run<T>) : void()), ...);
  RUSH_CHECK_NOT_IMPLEMENTED(fn, op, ": not implemented for ", dtype);
  return fn;
}

// A kernel's function: Loop::run for the dtype of the argument number `kTyped`, a tensor.
template <auto& kernel, class Loop, class Types, size_t kTyped, class... Args>
void run_by_dtype(Args... args) {
  pick<Loop>(Types(), std::get<kTyped>(std::tie(args...)).scalar_type(), kernel.name())(args...);
}
template <auto& kernel, class Loop, class Types, size_t kTyped = 0>
void set_by_dtype(DeviceType device) {
  kernel.set(device, run_by_dtype<kernel, Loop, Types, kTyped>);
}

// For kernels that only move elements, what counts is an element's size, not its type.
struct alignas(16) Bytes16 {
  uint64_t parts[2];
};

// The instance of Loop::run for elements of `bytes` bytes, as unsigned integers of that size.
template <class Loop>
auto pick_bytes(int64_t bytes) {
  switch (bytes) {
    case 1: return &Loop::template run<uint8_t>;
    case 2: return &Loop::template run<uint16_t>;
    case 4: return &Loop::template run<uint32_t>;
    case 8: return &Loop::template run<uint64_t>;
    default: return &Loop::template run<Bytes16>;
  }
}

}  // namespace rush
