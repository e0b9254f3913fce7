#include "autograd/debug/anomaly.h"

#include <algorithm>

#include "core/dispatch/find_nan.h"

namespace rush {

namespace {

// The way of every call through the dispatcher, which says nothing about this one.
bool is_dispatch(const std::string& frame) {
  for (std::string_view name : {"forward_call(", "rush::Derive<", "rush::Op<"}) {
    if (frame.find(name) != frame.npos) return true;
  }
  return false;
}

// The calls outside the dispatcher, from the caller of the operator to main.
std::vector<std::string> callers(std::vector<std::string> frames) {
  const auto inside = std::find_if(frames.begin(), frames.end(), is_dispatch);
  const auto first = std::find_if_not(inside, frames.end(), is_dispatch);
  frames.erase(frames.begin(), inside == frames.end() ? frames.begin() : first);  // all are kept without symbols
  // Below main is the C library.
  const auto main =
      std::find_if(frames.begin(), frames.end(), [](const std::string& f) { return f.rfind("main (", 0) == 0; });
  if (main != frames.end()) frames.erase(main + 1, frames.end());
  return frames;
}

std::string origin_of(const Node& node) {
  if (!node.forward_call()) {
    return "; its forward call is not known: anomaly mode must be on in the forward pass too";
  }
  return str("; its forward call was ", node.forward_call()->describe());
}

void check_nan(const Node& node, const Tensors& results) {
  for (size_t i = 0; i < results.size(); ++i) {
    RUSH_CHECK(!has_nan(results[i]), "backward: ", node.name(), " returned nan in gradient ", i, " of sizes ",
               results[i].sizes(), origin_of(node));
  }
}

}  // namespace

std::string ForwardCall::describe() const {
  std::string text = what;
  const char* separator = " called by ";
  for (const std::string& frame : callers(stack.frames())) {
    text += separator + frame;
    separator = " < ";
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
    if (node.forward_call()) error = Error(str(error.msg(), origin_of(node)));
    throw;
  }
  if (AnomalyMode::should_check_nan()) check_nan(node, results);
  return results;
}

}  // namespace autograd
}  // namespace rush
