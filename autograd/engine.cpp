#include "autograd/engine.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "autograd/accumulate_grad.h"
#include "autograd/backward_streams.h"
#include "autograd/debug/anomaly.h"
#include "autograd/grad_mode.h"
#include "autograd/meta.h"
#include "core/device/out_of_memory.h"
#include "core/error/warning.h"
#include "core/graphs/graph.h"
#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/pointwise/unary.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"
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

// Whether nobody else sees the tensor's memory, and no two of its elements share any, as an expanded one's do.
bool sole_owner(const Tensor& t) {
  return t.use_count() == 1 && t.storage().use_count() == 1 && !t.is_view() && t.is_non_overlapping_and_dense();
}

// Where a node runs. While a graph is captured, leaves' gradients are added on the caller's stream: an accumulator
// that an earlier forward pass has left alive knows a stream that takes no part in the capture. `capturing` is no queue
// otherwise.
const Stream& stream_for(const Node& node, const Stream& capturing) {
  const bool moves = RUSH_UNLIKELY(capturing.is_queue()) && node.stream().device == capturing.device;
  return moves && dynamic_cast<const AccumulateGrad*>(&node) ? capturing : node.stream();
}

// Nodes whose gradients are arriving, the next to run on top.
class ReadyNodes {
 public:
  explicit ReadyNodes(const Stream& capturing) : capturing_(capturing) {}

  struct Entry {
    intrusive_ptr<Node> node;
    Tensors grads;  // one for each forward output of the node, undefined until it arrives
  };

  // `producer` is the stream that the gradient was made on.
  void deliver(const Edge& edge, Tensor grad, const Stream& producer) {
    Node* node = edge.node.get();
    const Stream& known = stream_for(*node, capturing_);
    const Stream& consumer = known.is_queue() ? known : producer;
    BackwardStreams::hand_over(grad, producer, consumer);
    const StreamGuard guard(consumer);
    grad = fit_to_output(std::move(grad), node->output_metadata(edge.slot), *node);
    const auto [at, added] = entries_.try_emplace(node);
    Entry& entry = at->second;
    if (added) {
      entry.node = edge.node;
      entry.grads.resize(node->num_outputs());
      heap_.push_back(node);
      std::push_heap(heap_.begin(), heap_.end(), runs_later);
    }
    Tensor& total = entry.grads[edge.slot];
    if (!total.defined()) {
      total = std::move(grad);
    } else if (!GradMode::is_enabled() && sole_owner(total)) {
      total.add_(grad);
    } else {
      total = total + grad;
    }
  }

  bool empty() const { return heap_.empty(); }

  Entry take() {
    std::pop_heap(heap_.begin(), heap_.end(), runs_later);
    const auto at = entries_.find(heap_.back());
    heap_.pop_back();
    Entry entry = std::move(at->second);
    entries_.erase(at);
    return entry;
  }

 private:
  static bool runs_later(const Node* a, const Node* b) { return a->sequence_nr() < b->sequence_nr(); }

  const Stream capturing_;
  std::vector<Node*> heap_;
  std::unordered_map<Node*, Entry> entries_;
};

// The nodes from which some input can be reached.
std::unordered_set<Node*> nodes_leading_to(const std::vector<Edge>& roots, const std::vector<Edge>& inputs) {
  std::unordered_set<Node*> leading;
  for (const Edge& input : inputs) leading.insert(input.node.get());
  // All reachable nodes, then in ascending order of their numbers: producers are decided before their consumers.
  std::unordered_set<Node*> seen;
  std::vector<Node*> all;
  const auto visit = [&](const Edge& edge) {
    if (edge.valid() && seen.insert(edge.node.get()).second) all.push_back(edge.node.get());
  };
  for (const Edge& root : roots) visit(root);
  for (size_t i = 0; i < all.size(); ++i) {
    for (const Edge& edge : all[i]->next_edges()) visit(edge);
  }
  std::sort(all.begin(), all.end(), [](const Node* a, const Node* b) { return a->sequence_nr() < b->sequence_nr(); });
  for (Node* node : all) {
    for (const Edge& edge : node->next_edges()) {
      if (edge.valid() && leading.count(edge.node.get())) leading.insert(node);
    }
  }
  return leading;
}

Tensors apply_node(Node& node, const Tensors& grads) {
  // Restored on the way out: a node may start a backward pass of its own.
  struct Restore {
    Node* outer = current_node;
    ~Restore() { current_node = outer; }
  } restore;
  current_node = &node;
  const profiler::Scope scope(
      profiler::EventKind::Backward, [&] { return node.name(); }, static_cast<int64_t>(node.sequence_nr()));
  return autograd::AnomalyMode::is_enabled() ? autograd::apply_watched(node, grads) : node.apply(grads);
}

void run_hooks(std::vector<std::unique_ptr<NodeHook>>& hooks, Tensors& grads) {
  for (auto& hook : hooks) (*hook)(grads);
}

}  // namespace

Tensors run_backward(const std::vector<Edge>& roots, const Tensors& gradients, const std::vector<Edge>& inputs,
                     const BackwardOptions& options) {
  const AutoGradMode recording(options.create_graph);
  std::unordered_set<Node*> leading;
  if (!inputs.empty()) leading = nodes_leading_to(roots, inputs);
  const auto wanted = [&](const Edge& edge) {
    return edge.valid() && (inputs.empty() || leading.count(edge.node.get()));
  };
  std::unordered_map<Node*, std::vector<size_t>> captures;
  if (!options.accumulate) {
    for (size_t i = 0; i < inputs.size(); ++i) captures[inputs[i].node.get()].push_back(i);
  }

  Tensors captured(inputs.size());
  BackwardStreams streams;
  const Stream capturing = graphs::capturing_stream();
  ReadyNodes ready(capturing);
  for (size_t i = 0; i < roots.size(); ++i) {
    if (wanted(roots[i])) ready.deliver(roots[i], gradients[i], BackwardStreams::of_caller(gradients[i]));
  }
  while (!ready.empty()) {
    auto [node, grads] = ready.take();
    const Stream& stream = stream_for(*node, capturing);
    const StreamGuard on_stream(stream);
    if (node->next_edges().empty() || !captures.empty()) streams.ends_on(stream);
    run_hooks(node->pre_hooks(), grads);
    if (const auto found = captures.find(node.get()); found != captures.end()) {
      for (size_t i : found->second) captured[i] = grads[inputs[i].slot];
      // A captured leaf is not accumulated into; another node may still lead to further inputs.
      if (node->next_edges().empty()) continue;
    }
    if (!options.accumulate && dynamic_cast<AccumulateGrad*>(node.get())) continue;
    Tensors results = apply_node(*node, grads);
    grads.clear();
    run_hooks(node->post_hooks(), results);
    if (!options.retain_graph) node->release_saved();
    const auto& edges = node->next_edges();
    for (size_t i = 0; i < edges.size() && i < results.size(); ++i) {
      if (!results[i].defined() || !wanted(edges[i])) continue;
      ready.deliver(edges[i], std::move(results[i]), node->stream());
    }
  }
  streams.join_caller();
  return captured;
}

namespace autograd {

namespace {

std::vector<Edge> root_edges(TensorList outputs, const char* op) {
  std::vector<Edge> roots;
  for (const Tensor& output : outputs) {
    RUSH_CHECK(
        output.defined() && output.requires_grad(), op, ": element ", roots.size(),
        " of tensors does not require grad and does not have a grad_fn: nothing that it was computed from requires "
        "one, or it was computed under NoGradGuard or from a detach()");
    roots.push_back(gradient_edge(output));
  }
  return roots;
}

Tensors root_gradients(TensorList outputs, TensorList given, const char* op) {
  RUSH_CHECK_VALUE(given.empty() || given.size() == outputs.size(), op, ": got ", given.size(), " gradients for ",
                   outputs.size(), " outputs");
  Tensors gradients;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    if (i < given.size() && given[i].defined()) {
      RUSH_CHECK_VALUE(given[i].sizes() == output.sizes(), op, ": the gradient has shape ", given[i].sizes(),
                       ", the output ", output.sizes());
      gradients.push_back(given[i]);
      continue;
    }
    RUSH_CHECK(
        output.numel() == 1, op, ": a gradient is needed for an output of shape ", output.sizes(),
        "; grad can be implicitly created only for scalar outputs: reduce it with sum() or mean(), or pass a gradient");
    RUSH_CHECK(!output.is_complex(), op, ": a complex output has no implicit gradient");
    gradients.push_back(ones_like(output));
  }
  return gradients;
}

}  // namespace

void backward(TensorList tensors, TensorList grad_tensors, std::optional<bool> retain_graph, bool create_graph,
              TensorList inputs) {
  if (create_graph) {
    RUSH_WARN_ONCE(
        "backward: with create_graph a gradient keeps the graph that leads to its parameter, and the parameter the "
        "gradient, so that neither is freed: use autograd::grad, or reset the gradients after use");
  }
  try {
    std::vector<Edge> ends;
    for (const Tensor& input : inputs) {
      RUSH_CHECK(input.requires_grad() && input.is_leaf(), "backward: `inputs` must be leaves that require a gradient");
      ends.push_back(gradient_edge(input));
    }
    run_backward(root_edges(tensors, "backward"), root_gradients(tensors, grad_tensors, "backward"), ends,
                 {retain_graph.value_or(create_graph), create_graph, true});
  } catch (const std::bad_alloc&) {  // translate_bad_alloc would be two frames more on the way to a node
    throw_out_of_memory("backward");
  }
}

Tensors grad(TensorList outputs, TensorList inputs, TensorList grad_outputs, std::optional<bool> retain_graph,
             bool create_graph, bool allow_unused) {
  RUSH_CHECK_VALUE(!inputs.empty(), "grad: `inputs` is empty");
  Tensors result;
  try {
    const std::vector<Edge> roots = root_edges(outputs, "grad");
    std::vector<Edge> ends;
    for (const Tensor& input : inputs) {
      RUSH_CHECK(input.requires_grad(), "grad: element ", ends.size(), " of the input tensors does not require grad");
      ends.push_back(gradient_edge(input));
    }
    result = run_backward(roots, root_gradients(outputs, grad_outputs, "grad"), ends,
                          {retain_graph.value_or(create_graph), create_graph, false});
  } catch (const std::bad_alloc&) {
    throw_out_of_memory("grad");
  }
  for (size_t i = 0; i < result.size(); ++i) {
    RUSH_CHECK(allow_unused || result[i].defined(), "grad: input ", i,
               " appears to not have been used in the graph; pass allow_unused=true to get an undefined gradient");
  }
  return result;
}

}  // namespace autograd
}  // namespace rush
