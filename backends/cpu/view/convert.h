// Copies between dtypes on the CPU.
#pragma once
#include "core/iterator/tensor_iterator.h"

namespace rush::cpu {

// Operand 1 into operand 0, which has another dtype: a complex number loses its imaginary part, a fraction is cut,
// anything but zero is true.
void convert(const TensorIterator& it);

}  // namespace rush::cpu
