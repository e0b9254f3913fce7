// One number everywhere.
#pragma once
#include "core/iterator/tensor_iterator.h"
#include "core/scalar.h"

namespace rush::cuda {

// Operand 0, of any strides and dtype, set to `value`.
void fill_strided(const TensorIterator& it, const Scalar& value);

}  // namespace rush::cuda
