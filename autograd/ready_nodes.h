// ReadyNodes: the nodes whose gradients are arriving in a backward pass. See Note [The engine].
#pragma once
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autograd/node.h"

namespace rush {

// Adds `grad` to `total`, which is undefined before the first gradient. In place where no one can tell: where nobody
// else sees the memory of `total`, no two of its elements share any, and the pass itself is not recorded.
void accumulate(Tensor& total, Tensor grad);

struct ReadyNodes {
  struct Entry {
    intrusive_ptr<Node> node;
    Tensors grads;  // one for each forward output of the node, undefined until it arrives
  };

  // Adds a gradient to what has arrived at the edge's node, in the edge's slot.
  void add(const Edge& edge, Tensor grad);
  // Takes off the node with the highest sequence number, with its gradients. There must be one.
  Entry take();
  bool empty() const { return entries.empty(); }

  std::unordered_map<Node*, Entry> entries;
  std::vector<Node*> heap;  // of the same nodes: std::push_heap keeps the next one to take in front
};

// The nodes of the inputs, and of those that can be reached from the roots the ones that lead to such a node.
std::unordered_set<Node*> nodes_leading_to(const std::vector<Edge>& roots, const std::vector<Edge>& inputs);

}  // namespace rush
