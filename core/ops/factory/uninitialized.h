// What memory holds before anything is written to it.
#pragma once
#include "core/tensor.h"

namespace rush::native {

// Fills `self` with NaN, true or the greatest integer where Context::deterministicFillUninitializedMemory asks for
// that.
void fill_uninitialized_(Tensor& self);

}  // namespace rush::native
