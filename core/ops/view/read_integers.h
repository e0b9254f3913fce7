// Integers that a composite operator reads from a tensor: lengths, indices, sizes.
#pragma once
#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace rush::native {

/// The integers that `self` holds, of any shape and device. They are read where a trace of the calling function sees
/// it, and ends: what follows may depend on them.
std::vector<int64_t> read_integers(const Tensor& self);

}  // namespace rush::native
