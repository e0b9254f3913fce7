// Program: runs a graph.
#pragma once
#include <vector>

#include "autograd/compile/graph.h"

namespace rush::compiler {

/// A graph that is ready to run. Its calls go to the operators' kernels below autograd and autocast, and a tensor is
/// let go after the last call that reads it.
class Program {
 public:
  explicit Program(Graph graph);

  /// Runs it on inputs that are like those it was traced with. Returns its outputs, which require no gradient.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs);
  const Graph& graph() const { return graph_; }

 private:
  void find_last_uses();
  void run_call(const Graph::Call& call);
  void push(const Graph::Argument& argument);
  void take(const Graph::Argument& result, Value& value);
  Tensor at(Graph::Id id) const { return id == Graph::kNone ? Tensor() : tensors_[static_cast<size_t>(id)]; }
  void set_gradient(Graph::Id leaf, Graph::Id gradient);

  const Graph graph_;
  std::vector<std::vector<Graph::Id>> last_used_;  // tensors that no call after this one reads
  std::vector<Graph::Id> gets_gradient_;  // leaves that a run makes a gradient for: it frees the last run's first
  std::vector<Tensor> tensors_;           // by their numbers, while a run needs them
  Stack stack_;
};

}  // namespace rush::compiler
