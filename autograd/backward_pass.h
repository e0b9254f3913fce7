// BackwardPass: what a backward pass does around its nodes. Streams, shapes, hooks, and gradients to hand out.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "autograd/backward_streams.h"
#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/node_watcher.h"
#include "autograd/ready_nodes.h"

namespace rush {

// Gives the gradients to each hook. One may add others, for later, and may remove itself.
void run_hooks(const std::vector<std::shared_ptr<NodeHook>>& hooks, Tensors& grads);

// Until its end this thread records what it computes if options.create_graph is set, and nothing otherwise.
class BackwardPass {
 public:
  BackwardPass(const std::vector<Edge>& inputs, const BackwardOptions& options);
  BackwardPass(const BackwardPass&) = delete;

  // Brings a gradient to the shape, dtype and device of the forward output that it belongs to, and to the stream of the
  // edge's node, and adds it to `ready`. `maker` is the node that computed it, null for one that the caller gave.
  void deliver(const Edge& edge, Tensor grad, const Node* maker, ReadyNodes& ready);

  // Runs a node's hooks and the node itself: the gradients for its edges, none where the pass ends at it. What it saved
  // is freed unless the graph is to be kept.
  Tensors apply(Node& node, Tensors grads);

  // The gradients at the inputs, undefined where none has arrived. The caller's streams wait for them.
  Tensors finish();

 private:
  // Notes what has been asked for of a node's gradients. Whether the pass goes on behind it.
  bool capture(Node& node, const Tensors& grads);

  const std::vector<Edge>& inputs_;
  const BackwardOptions options_;
  const AutoGradMode recording_;
  std::unordered_map<Node*, std::vector<size_t>> captures_;  // numbers of inputs
  std::unordered_set<Node*> leading_;                        // what leads from an input to others
  Tensors captured_;
  BackwardStreams streams_;
  WatchedPass watched_;
  const Stream capturing_;  // no queue, unless a graph of a GPU's work is being captured
};

}  // namespace rush
