#pragma once
#include "c10/macros/Macros.h"

#include "core/scalar_type.h"

namespace at {
/// The type that arithmetic on T is done in: float for the narrower floating types, T itself otherwise.
template <class T>
using opmath_type = rush::opmath_t<T>;
}  // namespace at
