#include "autograd/backward_pass.h"

#include <algorithm>

#include "autograd/accumulate_grad.h"
#include "autograd/debug/anomaly.h"
#include "autograd/meta.h"
#include "core/graphs/graph.h"
#include "core/ops/basic.h"
#include "core/profiler/record.h"

namespace rush {

namespace {

// Whether `sizes` broadcasts to `grad`, so that the gradient can be summed to it.
bool broadcasts_to(IntArrayRef sizes, IntArrayRef grad) {
  if (sizes.size() > grad.size()) return false;
  const size_t lead = grad.size() - sizes.size();
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != grad[lead + i] && sizes[i] != 1) return false;
  }
  return true;
}

Tensor fit_to_output(Tensor grad, const GradMetadata& expected, const Node& node) {
  if (!(grad.sizes() == IntArrayRef(expected.sizes))) {
    RUSH_CHECK(broadcasts_to(expected.sizes, grad.sizes()), "backward: ", node.name(), " expects a gradient of shape ",
               expected.sizes, ", got ", grad.sizes());
    grad = sum_to_size(grad, expected.sizes);
  }
  if (grad.scalar_type() != expected.dtype) {
    if (grad.is_complex() && !is_complex(expected.dtype)) grad = real(grad);
    grad = grad.to(expected.dtype);
  }
  // A 0-dimensional CPU tensor takes part in computations on a GPU, and its gradient is made there.
  if (RUSH_UNLIKELY(!(grad.device() == expected.device))) {
    RUSH_CHECK_VALUE(grad.dim() == 0, "backward: ", node.name(), " expects a gradient on ", expected.device,
                     ", got one on ", grad.device());
    grad = grad.to(expected.device);
  }
  return grad;
}

// Where a node runs. While a graph is captured, and `capturing` is a queue, leaves' gradients are added there: an
// accumulator that an earlier forward pass has left alive knows a stream that takes no part in the capture.
const Stream& stream_for(const Node& node, const Stream& capturing) {
  const bool moves = RUSH_UNLIKELY(capturing.is_queue()) && node.stream().device == capturing.device;
  return moves && dynamic_cast<const AccumulateGrad*>(&node) ? capturing : node.stream();
}

// While it lives, errors and profiles name the node, and then the outer one again, which may have started this pass.
class CurrentNode {
 public:
  explicit CurrentNode(Node& node)
      : outer_(current_node),
        profiled_(
            profiler::EventKind::Backward, [&] { return node.name(); }, static_cast<int64_t>(node.sequence_nr())) {
    current_node = &node;
  }
  ~CurrentNode() { current_node = outer_; }
  CurrentNode(const CurrentNode&) = delete;

 private:
  Node* const outer_;
  const profiler::Scope profiled_;
};

}  // namespace

void run_hooks(const std::vector<std::shared_ptr<NodeHook>>& hooks, Tensors& grads) {
  for (size_t i = 0, count = hooks.size(); i < count; ++i) {
    const std::shared_ptr<NodeHook> hook = hooks[i];
    (*hook)(grads);
  }
}

BackwardPass::BackwardPass(const std::vector<Edge>& inputs, const BackwardOptions& options)
    : inputs_(inputs),
      options_(options),
      recording_(options.create_graph),
      captured_(inputs.size()),
      capturing_(graphs::capturing_stream()) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_leaf = inputs[i].node->next_edges().empty();  // whose gradient may be accumulated
    if (!options.accumulate || !is_leaf) captures_[inputs[i].node.get()].push_back(i);
  }
  if (!captures_.empty() && !options.ends_at_inputs) leading_ = nodes_leading_to(inputs, inputs);
}

void BackwardPass::deliver(const Edge& edge, Tensor grad, const Node* maker, ReadyNodes& ready) {
  const Stream producer = maker ? maker->stream() : BackwardStreams::of_caller(grad);
  const Stream& known = stream_for(*edge.node, capturing_);
  const Stream& consumer = known.is_queue() ? known : producer;
  hand_over(grad, producer, consumer);
  const StreamGuard guard(consumer);
  ready.add(edge, fit_to_output(std::move(grad), edge.node->output_metadata(edge.slot), *edge.node));
}

Tensors BackwardPass::apply(Node& node, Tensors grads) {
  const Stream& stream = stream_for(node, capturing_);
  const StreamGuard on_stream(stream);
  watched_.before(node);
  if (node.next_edges().empty() || !captures_.empty()) streams_.ends_on(stream);
  const bool ends_here = options_.ends_at_inputs && captures_.contains(&node);
  if (!ends_here) run_hooks(node.pre_hooks(), grads);
  auto* end = !ends_here && node.next_edges().empty() ? dynamic_cast<AccumulateGrad*>(&node) : nullptr;
  if (end) run_hooks(get_meta(end->variable)->hooks, grads);  // what grad() hands out has passed them, too
  Tensors results;
  if (!capture(node, grads)) return results;
  {
    const CurrentNode current(node);
    results = autograd::AnomalyMode::is_enabled() ? autograd::apply_watched(node, grads) : node.apply(grads);
  }
  grads.clear();
  run_hooks(node.post_hooks(), results);
  if (!options_.retain_graph) node.release_saved();
  return results;
}

bool BackwardPass::capture(Node& node, const Tensors& grads) {
  const auto found = captures_.find(&node);
  if (found == captures_.end()) return options_.accumulate || !dynamic_cast<AccumulateGrad*>(&node);
  for (size_t i : found->second) captured_[i] = grads[inputs_[i].slot];
  return std::ranges::any_of(node.next_edges(), [&](const Edge& edge) { return leading_.contains(edge.node.get()); });
}

Tensors BackwardPass::finish() {
  watched_.finish();
  streams_.join_caller();
  return std::move(captured_);
}

}  // namespace rush
