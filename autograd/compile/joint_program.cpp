#include "autograd/compile/joint_program.h"

#include <algorithm>

#include "autograd/compile/graph_module.h"
#include "autograd/grad_mode.h"
#include "autograd/saved.h"
#include "core/ops/factory/factories.h"

namespace rush::compiler {

namespace {

// What the calls of the backward pass read, or give, that those before made or were given.
std::vector<Graph::Id> crossing(const Graph& graph) {
  std::vector<Graph::Id> found;
  for (const Graph::Gradient& each : graph.backward->found) found.push_back(each.gradient);
  std::vector<Graph::Id> ids = read_from_before(graph, graph.backward->first_call, found);
  std::erase_if(ids, [&](Graph::Id id) { return std::ranges::count(graph.backward->given, id) > 0; });
  return ids;
}

Graph first_part(const Graph& graph) {
  Graph part = graph;
  part.backward.reset();
  if (!graph.backward) return part;
  part.calls.resize(graph.backward->first_call);
  for (const Graph::Id id : crossing(graph)) part.outputs.push_back(id);
  return part;
}

Graph second_part(const Graph& graph) {
  Graph part = graph;
  part.backward.reset();
  part.calls.erase(part.calls.begin(), part.calls.begin() + static_cast<std::ptrdiff_t>(graph.backward->first_call));
  part.inputs = crossing(graph);
  for (const Graph::Id id : graph.backward->given) {
    if (id != Graph::kNone) part.inputs.push_back(id);
  }
  part.outputs.clear();
  for (const Graph::Gradient& each : graph.backward->found) part.outputs.push_back(each.gradient);
  return part;
}

// A gradient with the strides that it had in the trace; zeros where none arrives.
Tensor as_traced(const Tensor& grad, const Graph::TensorInfo& info) {
  if (grad.defined() && grad.strides() == IntArrayRef(info.strides)) return grad;
  Tensor same = detail::empty_strided(info.sizes, info.strides, info.dtype, info.device);
  return grad.defined() ? same.copy_(grad) : same.zero_();
}

}  // namespace

// See Note [The backward pass of a compiled function].
struct CompiledBackward : Node {
  std::shared_ptr<Program> program;
  SavedList saved;

  Tensors apply(const Tensors& grads) override {
    RUSH_CHECK(!GradMode::is_enabled(),
               "compile: the backward pass of a compiled function cannot be recorded (create_graph)");
    Tensors inputs = saved.get();
    const std::vector<Graph::Id>& ids = program->graph().inputs;
    for (const Tensor& grad : grads) {
      inputs.push_back(as_traced(grad, program->graph().tensors[static_cast<size_t>(ids[inputs.size()])]));
    }
    return program->run(inputs);
  }
  RUSH_SAVED(saved)
};

JointProgram::JointProgram(const Graph& graph, const Make& make)
    : forward_(make(first_part(graph), "forward")), outputs_(graph.outputs.size()) {
  if (!graph.backward) return;
  backward_ = make(second_part(graph), "backward");
  cut_ = *graph.backward;
  for (const Graph::Gradient& each : cut_.found) {
    const auto input = std::ranges::find(graph.inputs, each.leaf);
    const auto constant = std::ranges::find(graph.constants, each.leaf, &Graph::Constant::id);
    leaves_.push_back(constant == graph.constants.end() ? Tensor() : constant->tensor);
    input_of_.push_back(static_cast<size_t>(input - graph.inputs.begin()));
  }
}

std::vector<Tensor> JointProgram::run(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> results = forward_->run(inputs);
  if (!backward_) return results;
  auto node = make_intrusive<CompiledBackward>();
  node->program = backward_;
  for (size_t i = 0; i < leaves_.size(); ++i)
    node->add_next_edge(gradient_edge(leaves_[i].defined() ? leaves_[i] : inputs[input_of_[i]]));
  std::vector<Tensor> saved(results.begin() + static_cast<std::ptrdiff_t>(outputs_), results.end());
  results.resize(outputs_);
  for (size_t i = 0; i < outputs_; ++i) {
    if (cut_.given[i] == Graph::kNone) continue;
    // What the graph keeps or returns twice stays without this history: it would hold the node that holds it.
    results[i] = detail::make_alias(results[i]);
    set_history(results[i], node);
  }
  node->saved = SavedList(saved);
  return results;
}

}  // namespace rush::compiler
