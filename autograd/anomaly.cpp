#include "autograd/anomaly.h"

#include "autograd/grad_mode.h"
#include "core/ops/pointwise.h"
#include "core/ops/reduce.h"
#include "core/ops/unary.h"

namespace rush {

namespace {

bool starts_with_any(const std::string& text, std::initializer_list<std::string_view> beginnings) {
  for (std::string_view beginning : beginnings) {
    if (text.compare(0, beginning.size(), beginning) == 0) return true;
  }
  return false;
}

// The way of every call through the dispatcher, which says nothing about this one. The names of function templates'
// instances begin with their results.
bool is_dispatch(const std::string& frame) {
  return starts_with_any(frame, {"rush::autograd::capture_forward_call", "rush::autograd::remember_forward_call"}) ||
         frame.find("rush::Derive<") != frame.npos || frame.find("rush::Op<") != frame.npos;
}

// The end of a message about `node`.
std::string origin_of(const Node& node) {
  if (!node.forward_call()) {
    return "; its forward call is not known: anomaly mode must be on in the forward pass too";
  }
  return str("; its forward call was ", node.forward_call()->describe());
}

void check_nan(const Node& node, const Tensors& results) {
  const NoGradGuard no_grad;
  for (size_t i = 0; i < results.size(); ++i) {
    const Tensor& grad = results[i];
    if (!grad.defined() || grad.is_meta() || !is_differentiable(grad.scalar_type())) continue;
    RUSH_CHECK(!isnan(grad).any().item<bool>(), "backward: ", node.name(), " returned nan in gradient ", i,
               " of sizes ", grad.sizes(), origin_of(node));
  }
}

}  // namespace

std::string ForwardCall::describe() const {
  std::string text = what;
  const char* separator = " called by ";
  bool inside = true;
  for (const std::string& frame : stack.frames()) {
    inside = inside && is_dispatch(frame);
    if (inside) continue;
    text += separator;
    text += frame;
    separator = " < ";
    if (starts_with_any(frame, {"main ("})) break;  // below it is the C library
  }
  if (cause) text += "; that was part of the derivative of " + cause->describe();
  return text;
}

namespace autograd {

std::shared_ptr<const ForwardCall> capture_forward_call(std::string_view what) {
  auto cause = current_node ? current_node->forward_call() : nullptr;
  return std::make_shared<const ForwardCall>(ForwardCall{std::string(what), StackTrace::capture(), std::move(cause)});
}

Tensors apply_watched(Node& node, const Tensors& grads) {
  Tensors results;
  try {
    results = node.apply(grads);
  } catch (Error& error) {
    // Keeps its type: only the text that all errors have is replaced.
    if (node.forward_call()) error = Error(str(error.what(), origin_of(node)));
    throw;
  }
  if (AnomalyMode::should_check_nan()) check_nan(node, results);
  return results;
}

}  // namespace autograd
}  // namespace rush
