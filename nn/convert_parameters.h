// All parameters as one vector, and back.
#pragma once
#include <vector>

#include "core/tensor.h"

namespace rush::nn::utils {

/// Their elements, one after another: (sum of numel). Throws ValueError when they lie on different devices.
Tensor parameters_to_vector(const std::vector<Tensor>& parameters);
/// Copies to each parameter its elements of `vec`. Throws ValueError, changing nothing, if the numbers of elements
/// differ.
void vector_to_parameters(const Tensor& vec, const std::vector<Tensor>& parameters);

}  // namespace rush::nn::utils
