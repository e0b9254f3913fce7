#include "autograd/compile/joint_program.h"

#include <algorithm>

#include "autograd/compile/graph_module.h"
#include "autograd/compile/uses.h"
#include "autograd/grad_mode.h"
#include "autograd/saved.h"
#include "core/ops/factory/factories.h"

namespace rush::compiler {

namespace {

// The calls of the forward pass, which also give what the backward pass reads of theirs, and those of the backward
// pass, which read that and then the gradients that are given.
std::pair<Graph, Graph> parts_of(const Graph& graph) {
  const auto& [first_call, given, found, saved] = *graph.backward;
  Graph whole = graph;
  whole.backward.reset();
  whole.outputs.clear();
  for (const Graph::Gradient& each : found) whole.outputs.push_back(each.gradient);
  auto [forward, backward] = split(whole, first_call);
  std::erase_if(backward.inputs, [&](Graph::Id id) { return std::ranges::count(graph.backward->given, id) > 0; });
  forward.outputs = graph.outputs;
  std::ranges::copy(backward.inputs, std::back_inserter(forward.outputs));
  std::ranges::remove_copy(given, std::back_inserter(backward.inputs), Graph::kNone);
  return {std::move(forward), std::move(backward)};
}

// The constants that autograd saved and the backward pass reads. Hooks may read others, which the program may write.
std::vector<Tensor> saved_of(const Graph& graph, const Graph& backward) {
  const Uses uses(backward);
  std::vector<Tensor> saved;
  for (const auto& [id, tensor] : graph.constants) {
    const bool is_earlier_gradient = std::ranges::count(graph.earlier_gradients, id, &Graph::Gradient::gradient) > 0;
    const bool is_saved = std::ranges::count(graph.backward->saved, id) > 0;
    if (is_saved && !is_earlier_gradient && !uses.readers(id).empty()) saved.push_back(tensor);
  }
  return saved;
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
  SavedList constants;  // whose values the program reads where they lie

  Tensors apply(const Tensors& grads) override {
    RUSH_CHECK(!GradMode::is_enabled(),
               "compile: the backward pass of a compiled function cannot be recorded (create_graph)");
    constants.get();  // throws where one was written
    Tensors inputs = saved.get();
    const std::vector<Graph::Id>& ids = program->graph().inputs;
    for (const Tensor& grad : grads) {
      inputs.push_back(as_traced(grad, program->graph().info(ids[inputs.size()])));
    }
    return program->run(inputs);
  }
  RUSH_SAVED(saved, constants)
};

JointProgram::JointProgram(const Graph& graph, const Make& make) : outputs_(graph.outputs.size()) {
  if (!graph.backward) {
    forward_ = make(graph, "forward", {outputs_});
    return;
  }
  auto [forward, backward] = parts_of(graph);
  saved_ = saved_of(graph, backward);
  const ProgramEnds ends{.returned = backward.outputs.size(), .kept = forward.outputs.size() - outputs_};
  forward_ = make(std::move(forward), "forward", {outputs_});
  backward_ = make(std::move(backward), "backward", ends);
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
  node->constants = SavedList(saved_);
  return results;
}

}  // namespace rush::compiler
