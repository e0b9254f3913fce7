// The calls that start a backward pass.
#include "autograd/engine.h"
#include "core/device/out_of_memory.h"
#include "core/error/warning.h"
#include "core/ops/factory/factories.h"

namespace rush::autograd {

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
      RUSH_CHECK(input.requires_grad(), "backward: element ", ends.size(), " of `inputs` does not require a gradient");
      input.retain_grad();  // of a tensor that is no leaf
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

}  // namespace rush::autograd
