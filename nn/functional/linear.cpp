#include "nn/functional/linear.h"

#include "core/ops/nn/linear.h"
#include "nn/functional/optional_tensor.h"

namespace rush::nn::functional {

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  return rush::linear(input, weight, optional_tensor(bias));
}

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight, const Tensor& bias) {
  return rush::bilinear(input1, input2, weight, optional_tensor(bias));
}

}  // namespace rush::nn::functional
