// GraphedStep: a training step as a CUDA graph.
#pragma once
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/graphs/graph.h"
#include "core/tensor.h"

namespace rush::graphs {

/// When a step is captured.
struct GraphedStepOptions {
  /// How many calls with inputs of new shapes run as they are before the step is captured; at least 1. The first one
  /// makes what lives longer than a step: gradients, optimiser states, the plans of libraries.
  int warmup = 3;
};

namespace detail {

// One graph for each list of input shapes.
class StepGraphs {
 public:
  using Step = std::function<Tensor(const std::vector<Tensor>&)>;
  explicit StepGraphs(const GraphedStepOptions& options);
  Tensor call(const Step& step, const std::vector<Tensor>& inputs);
  void reset() { steps_.clear(); }
  size_t captured() const;

 private:
  struct ShapedStep {
    std::vector<Tensor> inputs;  // what the graph reads
    Tensor loss;                 // what it writes
    int calls = 0;
    std::unique_ptr<Graph> graph;  // null until it is captured
  };
  ShapedStep& step_for(const std::vector<Tensor>& inputs);
  Tensor run(const Step& step, ShapedStep& shaped);
  void capture(const Step& step, ShapedStep& shaped);

  GraphedStepOptions options_;
  std::vector<std::unique_ptr<ShapedStep>> steps_;
  MempoolId_t pool_ = 0;
  Stream last_;  // where the last call's work went
};

}  // namespace detail

// Note [Whole steps as graphs]
// A training step, as a function of the batch that returns the loss:
//
//   optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(1e-3).capturable(true));
//   graphs::GraphedStep step([&](const Tensor& x, const Tensor& y) {
//     optimizer.zero_grad();
//     const Tensor loss = cross_entropy(net(x), y);
//     loss.backward();
//     optimizer.step();
//     return loss;
//   });
//   for (const auto& batch : *loader) {
//     const Tensor loss = step(batch.data, batch.target);
//     schedule.step();
//   }
//
// The first calls run the function as it stands, on a stream beside the caller's; they are steps of the training like
// any other. Then it is called once more while the stream is captured, and from there on each call copies its inputs
// into the graph's, replays the graph and returns the same loss tensor with a new value. The losses are those of the
// same steps outside of a graph, bit for bit.
//   - What the function does on the host happens during the warm-up and the capture only: schedules step outside of it.
//   - It must not wait for the device. clip_grad_norm_ does, to return a number; get_total_norm and
//     clip_grads_with_norm_ do the same without. A scaler's step() does unless the optimiser is capturable.
//   - The optimiser must be capturable: Note [Capturable optimisers].
//   - Gradients live in the graph's memory: after a replay, param.grad() of the capture holds those of the replay, and
//     must not be written outside of the step.
//   - Inputs of other shapes or dtypes (the last batch of an epoch) warm up and are captured for themselves; all graphs
//     share one pool of memory. What the function does must not depend on anything else that changes.
//   - The loss is overwritten by the next call: clone it to keep it.
//   - Destroy it, or call reset(), before load_state_dict of the optimiser, and before anything else that gives
//     parameters or states new memory.
template <class F>
class GraphedStep {
 public:
  explicit GraphedStep(F step, const GraphedStepOptions& options = {}) : step_(std::move(step)), graphs_(options) {}

  /// Takes a step on copies of `inputs`, which may be on the CPU: pinned memory is copied without waiting for it.
  /// Throws what the function throws; in a capture, CudaError where it does something that cannot be captured, and no
  /// step was taken then.
  template <class... Inputs>
  requires(std::is_convertible_v<const Inputs&, const Tensor&>&&...) Tensor operator()(const Inputs&... inputs) {
    return call({static_cast<const Tensor&>(inputs)...}, std::index_sequence_for<Inputs...>());
  }
  /// Forgets all graphs; the next call warms up again.
  void reset() { graphs_.reset(); }
  /// How many graphs there are.
  size_t captured() const { return graphs_.captured(); }

 private:
  template <size_t... I>
  Tensor call(const std::vector<Tensor>& inputs, std::index_sequence<I...>) {
    return graphs_.call([this](const std::vector<Tensor>& own) { return step_(own[I]...); }, inputs);
  }

  F step_;
  detail::StepGraphs graphs_;
};

}  // namespace rush::graphs
