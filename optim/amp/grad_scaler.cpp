#include "optim/amp/grad_scaler.h"

#include <cmath>

#include "autograd/accumulate_grad.h"
#include "autograd/grad_mode.h"
#include "core/graphs/graph.h"
#include "core/ops/factory/factories.h"
#include "core/ops/optim/amp.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/pointwise/unary.h"
#include "core/ops/write_back.h"

namespace rush::amp {

namespace {

void check_options(const GradScalerOptions& o) {
  RUSH_CHECK_VALUE(o.init_scale() > 0 && std::isfinite(static_cast<float>(o.init_scale())),
                   "GradScaler: the scale must be above 0 and finite in float32, got ", o.init_scale());
  RUSH_CHECK_VALUE(o.growth_factor() > 1, "GradScaler: growth_factor must be above 1, got ", o.growth_factor());
  RUSH_CHECK_VALUE(o.backoff_factor() > 0 && o.backoff_factor() < 1,
                   "GradScaler: backoff_factor must be between 0 and 1, got ", o.backoff_factor());
  RUSH_CHECK_VALUE(o.growth_interval() >= 1, "GradScaler: growth_interval must be at least 1, got ",
                   o.growth_interval());
}

// Gradients that one call of the kernel takes, and what it takes with them.
struct GradList {
  Device device;
  ScalarType dtype;
  std::vector<Tensor> grads;
  Tensor found_inf, inv_scale;
};

GradList& list_for(std::vector<GradList>& lists, const Tensor& grad) {
  for (GradList& list : lists) {
    if (list.device == grad.device() && list.dtype == grad.scalar_type()) return list;
  }
  return lists.emplace_back(GradList{grad.device(), grad.scalar_type(), {}, {}, {}});
}

// Throws unless all fit their parameters. Dense copies stand for those that are not.
std::vector<GradList> grads_of(const optim::Optimizer& optimizer, native::WriteBack& copies) {
  std::vector<GradList> lists;
  for (size_t g = 0; g < optimizer.param_groups().size(); ++g) {
    const std::vector<Tensor>& params = optimizer.param_groups()[g].params();
    for (size_t i = 0; i < params.size(); ++i) {
      if (!params[i].grad().defined()) continue;
      check_gradient(params[i].grad(), params[i], "GradScaler: the gradient of parameter ", i, " of group ", g);
      const Tensor grad = gradient_values(params[i]);
      RUSH_CHECK_VALUE(grad.scalar_type() != kFloat16,
                       "GradScaler: a gradient is in float16; keep the weights in float32 and use autocast");
      RUSH_CHECK_TYPE(grad.is_floating_point(), "GradScaler: the gradient of parameter ", i, " of group ", g, " is of ",
                      grad.scalar_type(), "; only real gradients are unscaled");
      list_for(lists, grad).grads.push_back(copies.dense(grad));
    }
  }
  return lists;
}

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

GradScaler::GradScaler(const GradScalerOptions& options) : options_(options) {
  if (options.enabled()) check_options(options);
}

void GradScaler::check_started(const char* function) const {
  RUSH_CHECK(scale_.defined(), "GradScaler: ", function, "() was called before any scale(loss)");
}

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

std::vector<Tensor> GradScaler::scale(TensorList outputs) {
  std::vector<Tensor> scaled;
  for (const Tensor& output : outputs) scaled.push_back(scale(output));
  return scaled;
}

void GradScaler::unscale_(optim::Optimizer& optimizer) {
  if (!is_enabled()) return;
  check_started("unscale_");
  OptimizerState& state = states_[&optimizer];
  RUSH_CHECK(state.stage != Stage::Unscaled,
             "GradScaler: unscale_() was already called with this optimizer since the last update()");
  RUSH_CHECK(state.stage != Stage::Stepped, "GradScaler: unscale_() is called after step()");
  const NoGradGuard no_grad;
  // All memory is taken before the first gradient changes: nothing is unscaled twice when this fails and is repeated.
  native::WriteBack copies;
  std::vector<GradList> lists = grads_of(optimizer, copies);
  const Tensor inv_scale = scale_.to(kFloat64).reciprocal().to(kFloat32);  // float32's own is not always exact
  std::vector<Tensor> all_found_inf;
  const auto found_inf_on = [&](Device device) -> const Tensor& {
    for (const Tensor& found_inf : all_found_inf) {
      if (found_inf.device() == device) return found_inf;
    }
    return all_found_inf.emplace_back(zeros({}, TensorOptions(kFloat32).device(device)));
  };
  for (GradList& list : lists) {
    list.found_inf = found_inf_on(list.device);
    list.inv_scale = inv_scale.to(list.device, /*non_blocking=*/true);
  }
  for (const GradList& list : lists) {
    _amp_foreach_non_finite_check_and_unscale_(list.grads, list.found_inf, list.inv_scale);
  }
  copies.run();
  state.found_inf = std::move(all_found_inf);
  state.stage = Stage::Unscaled;
}

Tensor GradScaler::step(optim::Optimizer& optimizer, const optim::Optimizer::LossClosure& closure) {
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

void GradScaler::update(double new_scale) {
  if (!is_enabled()) return;
  check_started("update");
  check_options(GradScalerOptions(options_).init_scale(new_scale));
  scale_.fill_(new_scale);
  states_.clear();
}

double GradScaler::get_scale() const {
  if (!is_enabled()) return 1;
  return scale_.defined() ? scale_.item<double>() : options_.init_scale();
}

int64_t GradScaler::growth_tracker() const {
  return growth_tracker_.defined() ? growth_tracker_.item<int64_t>() : initial_tracker_;
}

void GradScaler::set_growth_factor(double factor) {
  check_options(GradScalerOptions(options_).growth_factor(factor));
  options_.growth_factor(factor);
}

void GradScaler::set_backoff_factor(double factor) {
  check_options(GradScalerOptions(options_).backoff_factor(factor));
  options_.backoff_factor(factor);
}

void GradScaler::set_growth_interval(int64_t interval) {
  check_options(GradScalerOptions(options_).growth_interval(interval));
  options_.growth_interval(interval);
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
  check_options(options);
  options_ = options;
  initial_tracker_ = numbers.growth_tracker;
  if (!scale_.defined()) return;
  scale_.fill_(numbers.scale);
  growth_tracker_.fill_(numbers.growth_tracker);
}

}  // namespace rush::amp
