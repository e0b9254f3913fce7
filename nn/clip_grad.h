// Limits on gradients, between backward and the optimiser's step.
#pragma once
#include <vector>

#include "core/tensor.h"

namespace rush::nn::utils {

/// Scales all gradients alike so that their norm, taken together as one vector, is at most `max_norm`; returns the norm
/// before. A norm_type of infinity takes the largest magnitude. With error_if_nonfinite, throws Error, changing
/// nothing, when the norm is infinite or not a number.
double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);
double clip_grad_norm_(const Tensor& parameter, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);

/// The gradients of those parameters that have one: what get_total_norm takes. Throws ValueError or TypeError where one
/// has not its parameter's shape or device, or a dtype that cannot be converted to the parameter's; so do the
/// functions above and below that take parameters, and change nothing.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters);
/// The norm of all `tensors` taken together as one vector, a tensor of no dimensions; of none, 0. Does not wait for the
/// device unless error_if_nonfinite. torch.nn.utils.get_total_norm.
Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type = 2.0, bool error_if_nonfinite = false);
/// Scales all gradients by max_norm / total_norm, where that is below 1. With get_total_norm it does what
/// clip_grad_norm_ does without waiting for the device, as a step that is captured in a CUDA graph must.
/// torch.nn.utils.clip_grads_with_norm_.
void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm, const Tensor& total_norm);

/// Limits every element of the gradients to [-clip_value, clip_value].
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);
void clip_grad_value_(const Tensor& parameter, double clip_value);

}  // namespace rush::nn::utils
