// What subtraction checks of dense and of sparse tensors.
#pragma once
#include "core/tensor.h"

namespace rush::native {

/// Throws TypeError where one of the operands is bool, which has no subtraction.
void check_sub(const Tensor& self, const Tensor& other);

}  // namespace rush::native
