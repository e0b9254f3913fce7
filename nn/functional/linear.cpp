#include "nn/functional/linear.h"

#include "core/ops/matmul.h"
#include "nn/functional/optional_tensor.h"

namespace rush::nn::functional {

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  return rush::linear(input, weight, optional_tensor(bias));
}

}  // namespace rush::nn::functional
