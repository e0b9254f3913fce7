// Lab 5, the engine: this file takes the place of autograd/engine.cpp. What each function has to do stands in
// autograd/ready_nodes.h, autograd/engine.h and docs/labs/engine.md. Write them in this order; `./rush lab 5` checks
// them in this order.
#include "autograd/engine.h"

#include "autograd/backward_pass.h"
#include "autograd/ready_nodes.h"
#include "core/ops/pointwise/binary.h"

namespace rush {

// Adds `grad` to `total`. Where nobody can tell, `total.add_(grad)` does it without new memory.
void accumulate(Tensor& total, Tensor grad) {
  RUSH_THROW(NotImplementedError, "begin here: make `total`, which is ", total.defined() ? "defined" : "undefined",
             ", the sum of itself and of a gradient of sizes ", grad.sizes());
}

// A gradient has come for output number edge.slot of edge.node.
void ReadyNodes::add(const Edge& edge, Tensor grad) {
  RUSH_THROW(NotImplementedError, "next: find or make the node's entry in `entries`, which has ", entries.size(),
             ", and accumulate the gradient in its slot ", edge.slot);
}

// The node that is to run next, with all gradients that have come for it.
ReadyNodes::Entry ReadyNodes::take() {
  RUSH_THROW(NotImplementedError, "next: take the node with the highest sequence number off the ", entries.size(),
             " in `entries`");
}

// The nodes that a pass from the roots to the inputs has to run.
std::unordered_set<Node*> nodes_leading_to(const std::vector<Edge>& roots, const std::vector<Edge>& inputs) {
  RUSH_THROW(NotImplementedError, "next: find the nodes that lead from ", roots.size(), " roots to ", inputs.size(),
             " inputs");
}

// The loop. `pass` does what goes on around a node: pass.deliver(edge, gradient, maker, ready) brings a gradient to the
// shape of its output and calls ready.add; pass.apply(*node, gradients) runs the node; pass.finish() gives the result.
Tensors run_backward(const std::vector<Edge>& roots, const Tensors& gradients, const std::vector<Edge>& inputs,
                     const BackwardOptions& options) {
  BackwardPass pass(inputs, options);
  RUSH_THROW(NotImplementedError, "last: deliver the ", gradients.size(), " gradients of the ", roots.size(),
             " roots; then, while nodes are ready, take one, apply it, and deliver what it gives along its edges");
}

}  // namespace rush
