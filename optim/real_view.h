// What the optimisers that are written with tensor operators share: how they see parameters and gradients.
#pragma once
#include "core/tensor.h"

namespace rush::optim {

/// The same memory, without history; complex numbers as pairs of real ones, which is how they are optimised.
Tensor real_view(const Tensor& tensor);

/// The gradient that `param` descends, as real_view shows it: its own, negated if `maximize`, plus
/// weight_decay * param, in the parameter's dtype. It may share memory with the parameter's gradient: do not write to
/// it.
Tensor descent_gradient(const Tensor& param, double weight_decay, bool maximize);

}  // namespace rush::optim
