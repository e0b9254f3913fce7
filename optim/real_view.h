// How optimisers that are written with tensor operators see parameters and states.
#pragma once
#include "core/tensor.h"

namespace rush::optim {

/// The same memory, without history; complex numbers as pairs of real ones, which is how they are optimised.
Tensor real_view(const Tensor& tensor);

}  // namespace rush::optim
