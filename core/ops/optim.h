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

struct AdadeltaStep {
  double lr, rho, eps, weight_decay;
  bool maximize;
};

struct RmsPropStep {
  double lr, alpha, eps, weight_decay, momentum;
  bool centered, maximize;
};

struct AdagradStep {
  double lr, lr_decay, eps, weight_decay;
  bool maximize;
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
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList square_avgs, TensorList acc_deltas,
                             const AdadeltaStep& step)>
    fused_adadelta{"fused_adadelta"};
// `grad_avgs` if centered, `momentum_buffers` with momentum.
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList square_avgs, TensorList grad_avgs,
                             TensorList momentum_buffers, const RmsPropStep& step)>
    fused_rmsprop{"fused_rmsprop"};
inline constinit Kernel<void(TensorList params, TensorList grads, TensorList sums, ArrayRef<int64_t> steps,
                             const AdagradStep& step)>
    fused_adagrad{"fused_adagrad"};

}  // namespace kernels
}  // namespace rush
