#include "optim/graphs/graphed_step.h"

#include "autograd/grad_mode.h"
#include "core/amp/autocast.h"
#include "core/device/backend.h"
#include "core/error/error.h"
#include "core/ops/factory/factories.h"
#include "core/ops/view/copy.h"

namespace rush::graphs::detail {

namespace {

Device device_of(const std::vector<Tensor>& inputs) {
  for (const Tensor& input : inputs) {
    if (input.device().is_accelerator()) return input.device();
  }
  return concrete_device(accelerator());
}

bool fit(const std::vector<Tensor>& own, const std::vector<Tensor>& inputs) {
  if (own.size() != inputs.size()) return false;
  for (size_t i = 0; i < own.size(); ++i) {
    if (!(own[i].sizes() == inputs[i].sizes()) || own[i].scalar_type() != inputs[i].scalar_type()) return false;
  }
  return true;
}

}  // namespace

StepGraphs::StepGraphs(const GraphedStepOptions& options) : options_(options) {
  RUSH_CHECK_VALUE(options.warmup >= 1, "GraphedStep: warmup must be at least 1, got ", options.warmup);
}

size_t StepGraphs::captured() const {
  size_t count = 0;
  for (const auto& step : steps_) count += step->graph ? 1 : 0;
  return count;
}

StepGraphs::ShapedStep& StepGraphs::step_for(const std::vector<Tensor>& inputs) {
  for (const auto& step : steps_) {
    if (fit(step->inputs, inputs)) return *step;
  }
  const Device device = device_of(inputs);
  auto made = std::make_unique<ShapedStep>();
  for (const Tensor& input : inputs) made->inputs.push_back(empty_like(input.detach(), input.options().device(device)));
  steps_.push_back(std::move(made));
  return *steps_.back();
}

Tensor StepGraphs::call(const Step& step, const std::vector<Tensor>& inputs) {
  for (const Tensor& input : inputs) RUSH_CHECK_VALUE(input.defined(), "GraphedStep: an input is undefined");
  const DeviceGuard device(device_of(inputs));
  const Stream now = current_stream(accelerator());
  // What the last call left on another stream comes first.
  if (last_.is_queue()) wait_stream(now, last_);
  last_ = now;
  ShapedStep& shaped = step_for(inputs);
  {
    const NoGradGuard no_grad;
    for (size_t i = 0; i < inputs.size(); ++i) shaped.inputs[i].copy_(inputs[i], /*non_blocking=*/true);
  }
  if (!shaped.graph && shaped.calls++ < options_.warmup) return run(step, shaped);
  if (!shaped.graph) capture(step, shaped);
  shaped.graph->replay();
  if (shaped.loss.defined()) shaped.loss.bump_version();
  return shaped.loss;
}

// As the step will be captured: on the same stream, with a cache of casts of its own.
Tensor StepGraphs::run(const Step& step, ShapedStep& shaped) {
  const Stream caller = current_stream(accelerator()), side = capture_stream();
  wait_stream(side, caller);
  Tensor loss;
  {
    const StreamGuard guard(side);
    autocast::clear_cache();
    loss = step(shaped.inputs);
    autocast::clear_cache();
    if (loss.defined()) loss = loss.detach();
  }
  wait_stream(caller, side);
  return loss;
}

void StepGraphs::capture(const Step& step, ShapedStep& shaped) {
  if (pool_ == 0) pool_ = make_pool_id();
  auto graph = std::make_unique<Graph>();
  {
    const Capture capture(*graph, pool_);
    autocast::clear_cache();
    shaped.loss = step(shaped.inputs);
    autocast::clear_cache();
    if (shaped.loss.defined()) shaped.loss = shaped.loss.detach();
  }
  shaped.graph = std::move(graph);
}

}  // namespace rush::graphs::detail
