// AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "name", [&] { ... scalar_t ... }) and its like: a function that is
// compiled once for each of some dtypes, and called for the one that a tensor has.
#pragma once
#include "c10/macros/Macros.h"

#include "core/error/error.h"
#include "core/scalar_type.h"

/// The cases are AT_DISPATCH_CASE..., which know what the functions return. Throws NotImplementedError for other
/// dtypes.
#define AT_DISPATCH_SWITCH(type, name, ...)                                            \
  [&] {                                                                                \
    const ::rush::ScalarType dispatched_type = type;                                   \
    switch (dispatched_type) {                                                         \
      __VA_ARGS__                                                                      \
      default:                                                                         \
        RUSH_THROW(::rush::NotImplementedError, '"', name, "\" not implemented for '", \
                   ::rush::traits_of(dispatched_type).enumerator, "'");                \
    }                                                                                  \
  }()
#define RUSH_DISPATCH_CASE(type_name, type, ...)               \
  case type: {                                                 \
    using type_name [[maybe_unused]] = ::rush::cpp_type<type>; \
    return __VA_ARGS__();                                      \
  }
#define AT_DISPATCH_CASE(type, ...) RUSH_DISPATCH_CASE(scalar_t, type, __VA_ARGS__)

// ---- kinds of dtypes, and so many dtypes beside them ----
#define RUSH_CASES_1(a, ...) AT_DISPATCH_CASE(a, __VA_ARGS__)
#define RUSH_CASES_2(a, b, ...) AT_DISPATCH_CASE(a, __VA_ARGS__) AT_DISPATCH_CASE(b, __VA_ARGS__)
#define RUSH_CASES_3(a, b, c, ...) RUSH_CASES_2(a, b, __VA_ARGS__) AT_DISPATCH_CASE(c, __VA_ARGS__)
#define RUSH_CASES_4(a, b, c, d, ...) RUSH_CASES_2(a, b, __VA_ARGS__) RUSH_CASES_2(c, d, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES(...) RUSH_CASES_2(::rush::kDouble, ::rush::kFloat, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_TYPES_AND_HALF(...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(::rush::kHalf, __VA_ARGS__)
#define AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(...) RUSH_CASES_2(::rush::kHalf, ::rush::kBFloat16, __VA_ARGS__)
#define AT_DISPATCH_CASE_COMPLEX_TYPES(...) RUSH_CASES_2(::rush::kComplexDouble, ::rush::kComplexFloat, __VA_ARGS__)
#define AT_DISPATCH_CASE_FLOATING_AND_COMPLEX_TYPES(...) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)                                           \
  RUSH_CASES_4(::rush::kByte, ::rush::kChar, ::rush::kInt, ::rush::kLong, __VA_ARGS__) \
  AT_DISPATCH_CASE(::rush::kShort, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...) \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES_AND_COMPLEX(...) \
  AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_COMPLEX_TYPES(__VA_ARGS__)

#define RUSH_DISPATCH(kind, type, name, ...) AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_##kind(__VA_ARGS__))
#define RUSH_DISPATCH_1(kind, a, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_##kind(__VA_ARGS__) RUSH_CASES_1(a, __VA_ARGS__))
#define RUSH_DISPATCH_2(kind, a, b, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_##kind(__VA_ARGS__) RUSH_CASES_2(a, b, __VA_ARGS__))
#define RUSH_DISPATCH_3(kind, a, b, c, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_##kind(__VA_ARGS__) RUSH_CASES_3(a, b, c, __VA_ARGS__))
#define RUSH_DISPATCH_4(kind, a, b, c, d, type, name, ...) \
  AT_DISPATCH_SWITCH(type, name, AT_DISPATCH_CASE_##kind(__VA_ARGS__) RUSH_CASES_4(a, b, c, d, __VA_ARGS__))

#define AT_DISPATCH_FLOATING_TYPES(...) RUSH_DISPATCH(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(...) RUSH_DISPATCH(FLOATING_TYPES_AND_HALF, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(...) RUSH_DISPATCH_1(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(...) RUSH_DISPATCH_2(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND3(...) RUSH_DISPATCH_3(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND4(...) RUSH_DISPATCH_4(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(...) RUSH_DISPATCH(REDUCED_FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_COMPLEX_TYPES(...) RUSH_DISPATCH(COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_COMPLEX_TYPES_AND(...) RUSH_DISPATCH_1(COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES(...) RUSH_DISPATCH(FLOATING_AND_COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND1(...) RUSH_DISPATCH_1(FLOATING_AND_COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(...) RUSH_DISPATCH_2(FLOATING_AND_COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND3(...) RUSH_DISPATCH_3(FLOATING_AND_COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND4(...) RUSH_DISPATCH_4(FLOATING_AND_COMPLEX_TYPES, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES(...) RUSH_DISPATCH(INTEGRAL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES_AND(...) RUSH_DISPATCH_1(INTEGRAL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES(...) RUSH_DISPATCH(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND(...) RUSH_DISPATCH_1(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(...) RUSH_DISPATCH_2(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND3(...) RUSH_DISPATCH_3(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX(...) RUSH_DISPATCH(ALL_TYPES_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND(...) RUSH_DISPATCH_1(ALL_TYPES_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(...) RUSH_DISPATCH_2(ALL_TYPES_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(...) RUSH_DISPATCH_3(ALL_TYPES_AND_COMPLEX, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND4(...) RUSH_DISPATCH_4(ALL_TYPES_AND_COMPLEX, __VA_ARGS__)
/// Here the type is called index_t.
#define AT_DISPATCH_INDEX_TYPES(type, name, ...)                            \
  AT_DISPATCH_SWITCH(type, name,                                            \
                     RUSH_DISPATCH_CASE(index_t, ::rush::kInt, __VA_ARGS__) \
                         RUSH_DISPATCH_CASE(index_t, ::rush::kLong, __VA_ARGS__))
