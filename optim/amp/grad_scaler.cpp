#include "optim/amp/grad_scaler.h"

#include "autograd/compile/tracer.h"
#include "autograd/grad_mode.h"
#include "core/graphs/graph.h"
#include "core/ops/basic.h"
#include "core/ops/optim/amp.h"
#include "optim/amp/gradient_lists.h"

namespace rush::amp {

namespace {

// Not 0 where one of them is not.
Tensor sum_on_one_device(const std::vector<Tensor>& found_inf) {
  Tensor sum = found_inf[0];
  for (size_t i = 1; i < found_inf.size(); ++i) sum = sum + found_inf[i].to(sum.device(), /*non_blocking=*/true);
  return sum;
}

struct SavedNumbers {
  double scale, growth_factor, backoff_factor;
  int64_t growth_interval, growth_tracker;
  void visit(StateFields& fields) {
    fields("scale", scale);
    fields("growth_factor", growth_factor);
    fields("backoff_factor", backoff_factor);
    fields("growth_interval", growth_interval);
    fields("_growth_tracker", growth_tracker);
  }
};

}  // namespace

Tensor GradScaler::scale(const Tensor& outputs) {
  if (!is_enabled()) return outputs;
  if (!scale_.defined()) {
    RUSH_CHECK(!graphs::is_capturing(),
               "GradScaler: the first scale(loss) cannot be captured in a graph; take a step before the capture");
    scale_ = full({}, options_.init_scale(), TensorOptions(kFloat32).device(outputs.device()));
    growth_tracker_ = full({}, initial_tracker_, TensorOptions(kInt32).device(outputs.device()));
  }
  return outputs * scale_.to(outputs.device(), /*non_blocking=*/true);
}

void GradScaler::unscale_(optim::Optimizer& optimizer) {
  const auto unscale = [this, &optimizer] { unscale_(optimizer); };
  if (compiler::host_call("scaler.unscale_", unscale, [&] { return optimizer.parameters(); })) return;
  if (!is_enabled()) return;
  check_started("unscale_");
  OptimizerState& state = states_[&optimizer];
  RUSH_CHECK(state.stage != Stage::Unscaled,
             "GradScaler: unscale_() was already called with this optimizer since the last update()");
  RUSH_CHECK(state.stage != Stage::Stepped, "GradScaler: unscale_() is called after step()");
  const NoGradGuard no_grad;
  // All memory is taken before the first gradient changes: nothing is unscaled twice when this fails and is repeated.
  native::WriteBack copies;
  std::vector<GradientList> lists = gradient_lists(optimizer, copies);
  const Tensor inv_scale = scale_.to(kFloat64).reciprocal().to(kFloat32);  // float32's own is not always exact
  std::vector<Tensor> all_found_inf;
  const auto found_inf_on = [&](Device device) -> const Tensor& {
    for (const Tensor& found_inf : all_found_inf) {
      if (found_inf.device() == device) return found_inf;
    }
    return all_found_inf.emplace_back(zeros({}, TensorOptions(kFloat32).device(device)));
  };
  for (GradientList& list : lists) {
    list.found_inf = found_inf_on(list.device);
    list.inv_scale = inv_scale.to(list.device, /*non_blocking=*/true);
  }
  for (const GradientList& list : lists) {
    _amp_foreach_non_finite_check_and_unscale_(list.grads, list.found_inf, list.inv_scale);
  }
  copies.run();
  state.found_inf = std::move(all_found_inf);
  state.stage = Stage::Unscaled;
}

Tensor GradScaler::step(optim::Optimizer& optimizer, const optim::Optimizer::LossClosure& closure) {
  const auto without_closure = [this, &optimizer] { step(optimizer); };
  if (!closure && compiler::host_call("scaler.step", without_closure, [&] { return optimizer.parameters(); }))
    return {};
  if (!is_enabled()) return optimizer.step(closure);
  RUSH_CHECK(!closure, "GradScaler: step() takes no closure: its loss would have to be scaled too");
  check_started("step");
  OptimizerState& state = states_[&optimizer];
  RUSH_CHECK(state.stage != Stage::Stepped,
             "GradScaler: step() was already called with this optimizer since the last update()");
  if (state.stage == Stage::Ready) unscale_(optimizer);
  RUSH_CHECK(!state.found_inf.empty(), "GradScaler: no parameter of the optimizer has a gradient");
  LastStep& last_step = last_steps_[&optimizer];  // made first, so that nothing can fail when the step is taken
  LastStep last;
  Tensor result;
  if (optimizer.step_supports_amp_scaling()) {
    last.found_inf = sum_on_one_device(state.found_inf);
    result = step_on_device(optimizer, last.found_inf);
  } else {
    for (const Tensor& found_inf : state.found_inf) last.skipped = found_inf.item<float>() != 0 || last.skipped;
    if (last.skipped) {
      optimizer.skip_step();
    } else {
      result = optimizer.step();
    }
  }
  last_step = last;
  state.stage = Stage::Stepped;
  return result;
}

Tensor GradScaler::step_on_device(optim::Optimizer& optimizer, const Tensor& found_inf) {
  struct Reset {
    optim::Optimizer& optimizer;
    ~Reset() { optimizer.set_found_inf(Tensor()); }
  } reset{optimizer};
  optimizer.set_found_inf(found_inf);
  return optimizer.step();
}

bool GradScaler::step_was_skipped(const optim::Optimizer& optimizer) const {
  const auto found = last_steps_.find(&optimizer);
  if (found == last_steps_.end()) return false;
  const LastStep& last = found->second;
  return last.found_inf.defined() ? last.found_inf.item<float>() != 0 : last.skipped;
}

void GradScaler::update() {
  if (compiler::host_call("scaler.update", [this] { update(); })) return;
  if (!is_enabled()) return;
  check_started("update");
  const NoGradGuard no_grad;
  Tensor found_inf;
  for (const auto& [optimizer, state] : states_) {
    for (const Tensor& found : state.found_inf) {
      const Tensor here = found.to(scale_.device(), /*non_blocking=*/true);
      found_inf = found_inf.defined() ? found_inf + here : here;
    }
  }
  RUSH_CHECK(found_inf.defined(), "GradScaler: update() was called without a step() or unscale_() before it");
  _amp_update_scale_(scale_, growth_tracker_, found_inf, options_.growth_factor(), options_.backoff_factor(),
                     options_.growth_interval());
  states_.clear();
}

optim::StateDict GradScaler::state_dict() const {
  if (!is_enabled()) return optim::StateDict("state");
  SavedNumbers numbers{get_scale(), get_growth_factor(), get_backoff_factor(), get_growth_interval(), growth_tracker()};
  return saved_state(numbers);
}

void GradScaler::load_state_dict(const optim::StateDict& dict) {
  if (!is_enabled()) return;
  RUSH_CHECK_VALUE(!dict.is_empty(), "GradScaler::load_state_dict: the state dict is empty, as a disabled scaler's is");
  SavedNumbers numbers{};
  StateFields fields(dict);
  numbers.visit(fields);
  fields.finish("GradScaler::load_state_dict");
  const GradScalerOptions options = GradScalerOptions(options_)
                                        .init_scale(numbers.scale)
                                        .growth_factor(numbers.growth_factor)
                                        .backoff_factor(numbers.backoff_factor)
                                        .growth_interval(numbers.growth_interval);
  options.check();
  options_ = options;
  initial_tracker_ = numbers.growth_tracker;
  if (!scale_.defined()) return;
  scale_.fill_(numbers.scale);
  growth_tracker_.fill_(numbers.growth_tracker);
}

}  // namespace rush::amp
