// Copies between tensors of one device.
#pragma once
#include "core/iterator/tensor_iterator.h"

namespace rush::cuda {

// Operand 1 into operand 0, of any strides and dtypes, on the current stream: a complex number loses its imaginary
// part, a fraction is cut, anything but zero is true. Operand 1 may be a 0-dimensional tensor on the CPU.
void copy_strided(const TensorIterator& it);

// The same where the operands' dtypes differ, see convert.cu.
void convert_strided(const TensorIterator& it);

}  // namespace rush::cuda
