// Lab 15, a graph of a training step: this file takes the place of optim/graphs/graphed_step.cpp. What each function
// has to do stands in docs/labs/graphed_step.md. Write them in this order; `./rush lab 15` checks them in this order.
#include "optim/graphs/graphed_step.h"

#include "autograd/grad_mode.h"
#include "core/amp/autocast.h"
#include "core/device/backend.h"
#include "core/error/error.h"
#include "core/ops/factory/factories.h"
#include "core/ops/view/copy.h"

namespace rush::graphs::detail {

namespace {

// Where the graph's inputs are.
Device device_of(const std::vector<Tensor>& inputs) {
  for (const Tensor& input : inputs) {
    if (input.device().is_accelerator()) return input.device();
  }
  return concrete_device(accelerator());
}

}  // namespace

// This one is written.
StepGraphs::StepGraphs(const GraphedStepOptions& options) : options_(options) {
  RUSH_CHECK_VALUE(options.warmup >= 1, "GraphedStep: warmup must be at least 1, got ", options.warmup);
}

// This one as well: how many graphs there are.
size_t StepGraphs::captured() const {
  size_t count = 0;
  for (const auto& step : steps_) count += step->graph ? 1 : 0;
  return count;
}

// What was made for inputs of these shapes and dtypes, or is made now: tensors on the device for the graph to read.
StepGraphs::ShapedStep& StepGraphs::step_for(const std::vector<Tensor>& inputs) {
  RUSH_THROW(NotImplementedError, "begin here: find the element of steps_, which has ", steps_.size(),
             ", whose inputs are like these ", inputs.size(), ", or add one with inputs on ", device_of(inputs));
}

// The step as it stands, on the stream that is captured later. The loss has no history.
Tensor StepGraphs::run(const Step& /*step*/, ShapedStep& shaped) {
  RUSH_THROW(
      NotImplementedError, "next: call step(shaped.inputs), which are ", shaped.inputs.size(),
      ", on capture_stream(); that waits for the caller's stream before, and the caller's waits for it afterwards");
}

// Records the step into shaped.graph, and its loss into shaped.loss. Nothing runs.
void StepGraphs::capture(const Step& /*step*/, ShapedStep& shaped) {
  RUSH_THROW(NotImplementedError, "next: call step(shaped.inputs) within a Capture of a new Graph, from the pool ",
             pool_, "; it has run ", shaped.calls, " times");
}

// A call: copies the inputs to where the graph reads them, and runs, captures or replays the step.
Tensor StepGraphs::call(const Step& step, const std::vector<Tensor>& inputs) {
  for (const Tensor& input : inputs) RUSH_CHECK_VALUE(input.defined(), "GraphedStep: an input is undefined");
  const DeviceGuard device(device_of(inputs));
  ShapedStep& shaped = step_for(inputs);
  const NoGradGuard no_grad;
  for (size_t i = 0; i < inputs.size(); ++i) shaped.inputs[i].copy_(inputs[i], /*non_blocking=*/true);
  if (shaped.calls++ < options_.warmup) {
    const EnableGradGuard recording;
    return run(step, shaped);
  }
  {
    const EnableGradGuard recording;
    if (!shaped.graph) capture(step, shaped);
  }
  RUSH_THROW(NotImplementedError, "last: replay the graph, of which there are now ", captured(),
             ", and return shaped.loss; then look at streams: last_ is of the last call");
}

}  // namespace rush::graphs::detail
