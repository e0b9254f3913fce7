#include "examples/decay_groups.h"

#include <memory>

namespace examples {

std::vector<rush::optim::OptimizerParamGroup> decay_groups(const std::vector<rush::Tensor>& parameters,
                                                           const rush::optim::AdamWOptions& options) {
  std::vector<rush::Tensor> matrices, vectors;
  for (const rush::Tensor& parameter : parameters) (parameter.dim() >= 2 ? matrices : vectors).push_back(parameter);
  rush::optim::AdamWOptions without_decay = options;
  without_decay.weight_decay(0);
  std::vector<rush::optim::OptimizerParamGroup> groups;
  groups.emplace_back(matrices, std::make_unique<rush::optim::AdamWOptions>(options));
  groups.emplace_back(vectors, std::make_unique<rush::optim::AdamWOptions>(without_decay));
  return groups;
}

}  // namespace examples
