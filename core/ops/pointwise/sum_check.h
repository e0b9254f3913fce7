// What addition and subtraction check.
#pragma once
#include "core/tensor.h"

namespace rush::native {

/// Throws TypeError where one of the operands is bool, which has no subtraction.
void check_sub(const Tensor& self, const Tensor& other);

/// Throws TypeError where a factor, of this name, is of another kind than the result: integers take no fraction, though
/// it be whole, bool is for bool, and complex for complex.
void check_factor(const char* op, const char* name, ScalarType result, const Scalar& factor);

}  // namespace rush::native
