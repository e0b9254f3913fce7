#include "nn/convert_parameters.h"

#include "autograd/grad_mode.h"
#include "core/ops/view/join.h"

namespace rush::nn::utils {

Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> flat;
  for (const Tensor& parameter : parameters) {
    RUSH_CHECK_VALUE(parameter.defined(), "parameters_to_vector: a parameter is undefined");
    RUSH_CHECK_VALUE(parameter.device() == parameters[0].device(), "parameters_to_vector: found parameters on ",
                     parameters[0].device(), " and on ", parameter.device());
    flat.push_back(parameter.reshape(-1));
  }
  return cat(flat);
}

void vector_to_parameters(const Tensor& vec, const std::vector<Tensor>& parameters) {
  int64_t total = 0;
  for (const Tensor& parameter : parameters) {
    RUSH_CHECK_VALUE(parameter.defined(), "vector_to_parameters: a parameter is undefined");
    total += parameter.numel();
  }
  RUSH_CHECK_VALUE(vec.defined(), "vector_to_parameters: the vector is undefined");
  RUSH_CHECK_VALUE(vec.dim() == 1 && vec.numel() == total, "vector_to_parameters: the parameters hold ", total,
                   " elements, the vector has shape ", vec.sizes());
  const NoGradGuard no_grad;
  int64_t start = 0;
  for (const Tensor& parameter : parameters) {
    parameter.copy_(vec.narrow(0, start, parameter.numel()).view(parameter.sizes()));
    start += parameter.numel();
  }
}

}  // namespace rush::nn::utils
