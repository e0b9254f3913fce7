// A tensor handed to another library in this process, or taken from one, without a copy.
#pragma once
#include "ATen/dlpack.h"
#include "torch/types.h"

namespace at {

/// The tensor's memory, which the result keeps until its deleter is called. Throws ValueError for an undefined or
/// sparse tensor, and TypeError for a device or dtype that DLPack has no name for.
DLManagedTensor* toDLPack(const Tensor& tensor);

/// A tensor over that memory, whose deleter is called when the last tensor over it is gone; where this throws, the
/// caller still owns it. Throws ValueError for null or a negative number of dimensions, and TypeError for a device or
/// dtype that tensors do not have.
Tensor fromDLPack(DLManagedTensor* managed);

}  // namespace at
