// Limits on gradients, between backward and the optimiser's step.
#pragma once
#include <vector>

#include "core/tensor.h"

namespace rush::nn::utils {

// Scales all gradients alike so that their norm, taken together as one vector, is at most `max_norm`; returns the norm
// before. A norm_type of infinity takes the largest magnitude. With error_if_nonfinite, throws Error, changing nothing,
// when the norm is infinite or not a number.
double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);
double clip_grad_norm_(const Tensor& parameter, double max_norm, double norm_type = 2.0,
                       bool error_if_nonfinite = false);

// Limits every element of the gradients to [-clip_value, clip_value].
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);
void clip_grad_value_(const Tensor& parameter, double clip_value);

}  // namespace rush::nn::utils
