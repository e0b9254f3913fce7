// The optimisers' steps as kernels: each updates a list of parameters and their state in one pass over memory.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/tensor.h"

namespace rush {

struct SgdStep {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
  bool first;  // the momentum buffers are uninitialised
};

struct AdamStep {
  double lr, beta1, beta2, eps, weight_decay;
  bool amsgrad, maximize;
  bool decoupled;  // AdamW: the weights decay by themselves, not through the gradient
};

namespace kernels {

// Lists go together element by element; an optional one is empty. All tensors have one device and one floating dtype,
// and those of one parameter have its sizes and dense strides. The formulas stand in backends/functors/optim.h.
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList momentum_buffers, const SgdStep& step)>
    fused_sgd{"fused_sgd"};
// `steps`: how many steps each parameter has taken, this one included.
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                             TensorList max_exp_avg_sqs, ArrayRef<int64_t> steps, const AdamStep& step)>
    fused_adam{"fused_adam"};

}  // namespace kernels
}  // namespace rush
