// What addition and subtraction check.
#pragma once
#include "core/tensor.h"

namespace rush::native {

/// Throws TypeError where one of the operands is bool, which has no subtraction.
void check_sub(const Tensor& self, const Tensor& other);

/// Throws TypeError where `alpha` would change the result's dtype: integers take no fraction, though it be whole, bool
/// is for bool, and complex for complex.
void check_alpha(const char* op, ScalarType result, const Scalar& alpha);

}  // namespace rush::native
