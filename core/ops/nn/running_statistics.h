// The step by which a batch norm's running statistics follow those of a batch.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/tensor.h"

namespace rush::kernels {

// running = (1 - momentum) running + momentum fresh, of the means; and of the variances, which are multiplied by
// `unbias` before. Vectors of one dtype, float32 or float64. A backend may leave it to the operators that it is made
// of.
inline constinit Kernel<void(const Tensor& running_mean, const Tensor& running_var, const Tensor& mean,
                             const Tensor& var, double momentum, double unbias)>
    running_statistics{"batch_norm"};

}  // namespace rush::kernels
