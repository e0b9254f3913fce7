// What a gradient scaler computes on the device: see optim/amp/grad_scaler.h.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<void(TensorList, const Tensor&, const Tensor&)> _amp_foreach_non_finite_check_and_unscale_{
    "aten::_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> "
    "()"};
inline constinit Op<Tensor&(Tensor&, Tensor&, const Tensor&, double, double, int64_t)> _amp_update_scale_{
    "aten::_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, float scale_growth_factor, "
    "float scale_backoff_factor, int growth_interval) -> Tensor(a!)"};
}  // namespace ops

/// Multiplies each of `grads` by `inv_scale`, and sets `found_inf` to 1 if one of them held an infinity or a NaN. They
/// have one floating dtype; the two others are one float32 each, on the gradients' device. Throws ValueError or
/// TypeError otherwise.
inline void _amp_foreach_non_finite_check_and_unscale_(TensorList grads, const Tensor& found_inf,
                                                       const Tensor& inv_scale) {
  ops::_amp_foreach_non_finite_check_and_unscale_(grads, found_inf, inv_scale);
}

/// Multiplies `scale` by `backoff_factor` if `found_inf` is not 0, and otherwise by `growth_factor` on every
/// growth_interval-th call in a row, unless that would overflow; `growth_tracker` counts those calls. The tensors are
/// one float32, int32 and float32. Throws ValueError otherwise.
inline Tensor& _amp_update_scale_(Tensor& scale, Tensor& growth_tracker, const Tensor& found_inf, double growth_factor,
                                  double backoff_factor, int64_t growth_interval) {
  return ops::_amp_update_scale_(scale, growth_tracker, found_inf, growth_factor, backoff_factor, growth_interval);
}

/// The numbers that _amp_update_scale_ goes by.
struct ScaleUpdate {
  double growth_factor, backoff_factor;
  int64_t growth_interval;
};

namespace kernels {
// The gradients have dense strides. The formulas stand in backends/functors/amp.h.
inline constinit Kernel<void(TensorList grads, const Tensor& found_inf, const Tensor& inv_scale)> unscale{
    "_amp_foreach_non_finite_check_and_unscale_"};
inline constinit Kernel<void(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf,
                             const ScaleUpdate& update)>
    update_scale{"_amp_update_scale_"};
}  // namespace kernels

}  // namespace rush
