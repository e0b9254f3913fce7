#include "optim/step_optimizer.h"

#include "autograd/compile/tracer.h"

#include <limits>

#include "autograd/grad_mode.h"
#include "optim/graphs/device_numbers.h"
#include "optim/step_lists.h"

namespace rush::optim {

// ---- options

void OptionChecks::operator()(const char* name, double value, Range range) const {
  if (range == Range::NotNegative) check_not_negative(optimizer_, name, value);
}

void OptionChecks::operator()(const char*, const std::tuple<double, double>& value, Range range) const {
  if (range == Range::NotNegative) check_betas(optimizer_, value);
}

void OptionNumbers::operator()(const char* name, double value, Range) {
  // Options can be changed after they were checked: a list among them may have grown.
  RUSH_CHECK_VALUE(num_numbers < kMost, "optimizer options: more than ", kMost, " numbers at ", name);
  numbers[num_numbers++] = value;
}

void OptionNumbers::operator()(const char* name, const std::tuple<double, double>& value, Range) {
  (*this)(name, std::get<0>(value));
  (*this)(name, std::get<1>(value));
}

void OptionNumbers::operator()(const char* name, bool value) {
  RUSH_CHECK_VALUE(num_flags < kMost, "optimizer options: more than ", kMost, " flags at ", name);
  flags[num_flags++] = value;
}

void OptionNumbers::operator()(const char* name, const std::optional<double>& value, Range) {
  (*this)(name, value.value_or(std::numeric_limits<double>::quiet_NaN()));
}

void OptionNumbers::operator()(const char* name, const std::vector<double>& values) {
  for (const double value : values) (*this)(name, value);
}

// ---- states

bool StepParamState::counts_there(bool capturable) {
  const Tensor* product = mu_product_slots().counter;
  return step_counter().defined() == capturable && (!product || product->defined() == capturable);
}

void StepParamState::count_there(const Tensor& param, bool capturable) {
  Tensor& counter = step_counter();
  if (capturable && !counter.defined()) counter = make_device_number(param, step(), kInt64);
  if (!capturable && counter.defined()) step(std::exchange(counter, Tensor()).item<int64_t>());
  const auto [on_host, product] = mu_product_slots();
  if (!product) return;
  if (capturable && !product->defined()) *product = make_device_number(param, *on_host, kFloat64);
  if (!capturable && product->defined()) *on_host = std::exchange(*product, Tensor()).item<double>();
}

void StepParamState::read_counters() {
  if (step_counter().defined()) step(step_counter().item<int64_t>());
  const auto [on_host, product] = mu_product_slots();
  if (product && product->defined()) *on_host = product->item<double>();
}

// ---- steps

Tensor StepOptimizer::step(LossClosure closure) {
  const auto without_closure = [this] { step(); };
  if (!closure && compiler::host_call("optimizer.step", without_closure, [this] { return parameters(); })) return {};
  const Tensor loss = evaluate(closure);
  const NoGradGuard no_grad;
  StepLists lists(describe(*defaults_).name, *this);
  for (size_t group = 0; group < param_groups_.size(); ++group) gather(group, lists);
  lists.run();
  return loss;
}

void StepOptimizer::gather(size_t group, StepLists& lists) const {
  lists.gather(group, describe(param_groups_[group].options()));
}

void StepOptimizer::visit_state(StateFields& fields, std::unique_ptr<OptimizerParamState>& slot, const Tensor& param,
                                const OptimizerOptions& options) const {
  const StepDescription step = describe(options);
  if (!slot) slot = step.make_state();
  auto& state = static_cast<StepParamState&>(*slot);
  state.read_counters();
  if (step.counts) fields("step", state.step());
  if (double* product = state.mu_product_slots().on_host) fields("mu_product", *product);
  const StateTensors tensors = state.tensors();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor like = step.like ? step.like(i, param) : param;
    if (tensors[i].tensor && like.defined()) fields.tensor(tensors[i].name, *tensors[i].tensor, like, step.uses[i]);
  }
}

}  // namespace rush::optim
