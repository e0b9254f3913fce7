#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "autograd/compile/compile.h"
#include "autograd/grad_mode.h"
#include "core/memory/claim.h"
#include "core/ops/factory/factories.h"
#include "nn/state/archive.h"
#include "optim/graphs/device_numbers.h"

namespace rush::optim {

void OptimizerOptions::visit(StateFields&) {
  RUSH_THROW(NotImplementedError, "optimizer: these options have no state dict; override visit");
}

Optimizer::Optimizer(const std::vector<OptimizerParamGroup>& param_groups, std::unique_ptr<OptimizerOptions> defaults)
    : defaults_(std::move(defaults)) {
  defaults_->check();
  for (const OptimizerParamGroup& group : param_groups) add_param_group(group);
  RUSH_CHECK_VALUE(!parameters().empty(),
                   "optimizer: there are no parameters to optimize; a module lists those that register_parameter "
                   "and register_module were called for");
}

Optimizer::Optimizer(Optimizer&& other) noexcept { *this = std::move(other); }

// Graphs that hold the numbers find their optimiser through them.
Optimizer& Optimizer::operator=(Optimizer&& other) noexcept {
  if (this == &other) return *this;
  if (device_numbers_) device_numbers_->set_owner(nullptr);
  param_groups_ = std::move(other.param_groups_);
  state_ = std::move(other.state_);
  defaults_ = std::move(other.defaults_);
  device_numbers_ = std::move(other.device_numbers_);
  found_inf_ = std::move(other.found_inf_);
  was_stepped_ = other.was_stepped_;
  if (device_numbers_) device_numbers_->set_owner(this);
  return *this;
}

Optimizer::~Optimizer() {
  if (device_numbers_) device_numbers_->set_owner(nullptr);
}

void Optimizer::add_param_group(const OptimizerParamGroup& param_group) {
  std::unordered_set<const TensorImpl*> known;
  for (const Tensor& param : parameters()) known.insert(param.impl());
  for (const Tensor& param : param_group.params()) {
    RUSH_CHECK_VALUE(param.defined(), "optimizer: cannot optimize an undefined tensor");
    RUSH_CHECK_VALUE(
        param.is_leaf(), "optimizer: can't optimize a non-leaf Tensor, one of shape ", param.sizes(),
        " that is the result of a computation; convert and move it before requires_grad_(), or pass its detach()");
    RUSH_CHECK_VALUE(known.insert(param.impl()).second, "optimizer: a parameter of shape ", param.sizes(),
                     " appears twice");
  }
  for (const Tensor& param : param_group.params()) rush::detail::claim_memory(param, MemoryUse::Parameter);
  OptimizerParamGroup group(param_group);
  if (!group.has_options()) group.set_options(defaults_->clone());
  group.options().check();
  param_groups_.push_back(std::move(group));
  if (was_stepped_) compiler::change_unseen_state();  // graphs that are there do not clear these gradients
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> all;
  for (const OptimizerParamGroup& group : param_groups_)
    all.insert(all.end(), group.params().begin(), group.params().end());
  return all;
}

void detail::zero_grads(const std::vector<Tensor>& params, bool set_to_none) {
  for (const Tensor& param : params) {
    if (!param.grad().defined()) continue;
    Tensor& grad = param.mutable_grad();
    grad = set_to_none ? Tensor() : grad.detach().zero_();
  }
}

Tensor Optimizer::evaluate(const LossClosure& closure) {
  was_stepped_ = true;
  const bool capturing = graphs::is_capturing();
  for (size_t i = 0; i < param_groups_.size(); ++i) {
    RUSH_CHECK_VALUE(!std::isnan(param_groups_[i].options().get_lr()), "optimizer: the lr of parameter group ", i,
                     " is NaN");
    RUSH_CHECK(!capturing || param_groups_[i].options().get_capturable(),
               "optimizer: a step cannot be captured in a graph without the option capturable (of all optimisers "
               "but LBFGS)");
  }
  if (!closure) return {};
  const EnableGradGuard recording;
  return closure();
}

// ---- steps that a graph may take

bool Optimizer::step_supports_amp_scaling() const {
  return std::all_of(param_groups_.begin(), param_groups_.end(),
                     [](const OptimizerParamGroup& group) { return group.options().get_capturable(); });
}

const Tensor& Optimizer::numbers_on_device(size_t group, Device device) {
  if (!device_numbers_) device_numbers_ = std::make_shared<DeviceNumbers>(this);
  return device_numbers_->of_group(group, device);
}

void Optimizer::note_captured_step(TensorList params, std::initializer_list<TensorList> states) {
  if (!graphs::is_capturing()) return;
  std::vector<Tensor> all;
  for (const TensorList& list : states) all.insert(all.end(), list.begin(), list.end());
  std::vector<Tensor> written;  // the memory only: not the gradients that hang on the parameters
  for (const Tensor& param : params) written.push_back(param.detach());
  graphs::before_replay(std::make_shared<CapturedStep>(device_numbers_, std::move(written), std::move(all)));
}

Tensor Optimizer::found_inf_on(Device device) const {
  return found_inf_.defined() ? found_inf_.to(device, /*non_blocking=*/true) : Tensor();
}

// ---- state dicts

void Optimizer::visit_state(StateFields&, std::unique_ptr<OptimizerParamState>&, const Tensor&,
                            const OptimizerOptions&) const {
  RUSH_THROW(NotImplementedError, "optimizer: its state has no state dict; override visit_state");
}

void Optimizer::visit(StateFields& fields, std::vector<OptimizerParamGroup>& groups, State& state) const {
  // The options come first: they decide which state there has to be.
  int64_t position = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    const StateFields::Scope scope(fields, str("param_groups.", g, "."));
    groups[g].options().visit(fields);
    fields("initial_lr", groups[g].initial_lr());
    std::vector<int64_t> positions;
    for (size_t i = 0; i < groups[g].params().size(); ++i) positions.push_back(position++);
    std::vector<int64_t> saved = positions;
    fields.fixed("params", saved);
    if (saved != positions) fields.problem("params", "numbers them in another order");
  }
  position = 0;
  for (OptimizerParamGroup& group : groups) {
    for (const Tensor& param : group.params()) {
      const StateFields::Scope scope(fields, str("state.", position++, "."));
      if (fields.reading() ? !fields.any_left() : !state.contains(param.impl())) continue;
      visit_state(fields, state[param.impl()], param, group.options());
    }
  }
}

StateDict Optimizer::state_dict() const {
  StateDict dict("state");
  StateFields fields(&dict);
  std::vector<OptimizerParamGroup> groups(param_groups_);
  State state;
  for (const auto& [param, slot] : state_) {
    if (slot) state[param] = slot->clone();
  }
  visit(fields, groups, state);
  return dict;
}

void Optimizer::save(serialize::OutputArchive& archive) const { serialize::save_state(archive, state_dict()); }

void Optimizer::load(const serialize::InputArchive& archive) {
  load_state_dict(serialize::load_state(archive, "state", {"state.", "param_groups."}));
}

void Optimizer::load_state_dict(const StateDict& dict) {
  StateFields fields(dict);
  std::vector<OptimizerParamGroup> groups(param_groups_);
  State state;
  visit(fields, groups, state);
  fields.finish("Optimizer::load_state_dict");
  for (const OptimizerParamGroup& group : groups) group.options().check();
  for (size_t g = 0; g < groups.size(); ++g) param_groups_[g] = std::move(groups[g]);
  state_ = std::move(state);
}

}  // namespace rush::optim
