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

void set_decay_options(rush::optim::AdamW& optimizer, rush::optim::LambdaLR& schedule,
                       const rush::optim::AdamWOptions& options, double factor) {
  std::vector<rush::optim::OptimizerParamGroup>& groups = optimizer.param_groups();
  std::vector<rush::optim::OptimizerParamGroup> fresh = decay_groups({}, options);
  for (size_t i = 0; i < groups.size(); ++i) {
    groups[i].set_options(fresh[i].options().clone());
    groups[i].options().set_lr(options.lr() * factor);
    groups[i].initial_lr() = options.lr();
  }
  rush::optim::StateDict state = schedule.state_dict();
  state.find("base_lrs")->fill_(options.lr());
  state.find("last_lrs")->fill_(options.lr() * factor);
  schedule.load_state_dict(state);
}

}  // namespace examples
