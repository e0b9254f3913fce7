// JointProgram: a graph and, where its function leaves the backward pass to the caller, a second one for that.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "autograd/compile/program.h"

namespace rush::compiler {

// Note [The backward pass of a compiled function]
// A function that returns a tensor that requires a gradient is traced together with its backward pass, for gradients
// that the caller will give. The graph is cut where that begins: what the second part reads of the first is returned by
// it and kept by a node, CompiledBackward, which the outputs have as their history. It stands for all nodes of the
// function, has the function's inputs and the leaves that it used as its own, and runs the second graph as its `apply`.
// It cannot be differentiated again.
class JointProgram {
 public:
  // Makes the program of a part, "forward" or "backward".
  using Make = std::function<std::shared_ptr<Program>(Graph graph, const std::string& part, const ProgramEnds& ends)>;

  JointProgram(const Graph& graph, const Make& make);

  std::vector<Tensor> run(const std::vector<Tensor>& inputs);
  const Graph& graph() const { return forward_->graph(); }
  bool is_recorded() const { return forward_->is_recorded() && (!backward_ || backward_->is_recorded()); }
  const Graph* backward_graph() const { return backward_ ? &backward_->graph() : nullptr; }

 private:
  std::shared_ptr<Program> forward_;
  std::shared_ptr<Program> backward_;  // null where there is none
  Graph::Backward cut_;
  size_t outputs_ = 0;            // of the function; what else the first graph returns is kept
  std::vector<Tensor> leaves_;    // what the found gradients belong to; undefined for an input
  std::vector<size_t> input_of_;  // then its number
  std::vector<Tensor> saved_;     // what the backward pass reads of the program's tensors
};

}  // namespace rush::compiler
