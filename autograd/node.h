// Node: one function of the graph that the backward pass walks, and the edges between nodes.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/device/stream.h"
#include "core/intrusive_ptr.h"
#include "core/small_list.h"
#include "core/tensor.h"

namespace rush {

class Node;
class Saved;
struct ForwardCall;
using Tensors = std::vector<Tensor>;

// A gradient flows along an edge into gradient number `slot` of `node`.
struct Edge {
  intrusive_ptr<Node> node;
  uint32_t slot = 0;
  bool valid() const { return static_cast<bool>(node); }  // whether a gradient is wanted
};

// What a node knows of one of its forward outputs, so that the gradient arriving for it can be brought to its shape.
struct GradMetadata {
  DimVector sizes;
  ScalarType dtype = kFloat32;
  Device device;
};

// Called with each saved tensor of a node, by name: to free them, to draw the graph, to print them.
class SavedVisitor {
 public:
  virtual void visit(const char* name, Saved& saved) = 0;  // `name` is the member's

 protected:
  ~SavedVisitor() = default;
};

// Callables that see, and may replace, the gradients that go into or come out of a node.
struct NodeHook {
  virtual ~NodeHook() = default;
  // `grads` are replaced in place.
  virtual void operator()(Tensors& grads) = 0;
};

// Note [The graph]
// A forward call on tensors that require gradients makes a Node, whose edges point at the nodes that made its inputs
// (AccumulateGrad for leaves). `apply` turns the gradients of the call's outputs into those of its inputs, one for each
// edge, in order; where an edge is not valid the gradient is not needed (`needs(i)`) and may be undefined. Since
// `apply` calls public operators, its own computation can be recorded: that is double backward.
//
// Nodes are numbered as they are made. A node has a higher number than those that its edges lead to, so descending
// numbers are an order in which every consumer comes before its producers: the engine needs no other. It is made after
// them, except for the function of a view whose base was written since, which is made when the edge to it is; the node
// takes a new number then.
class Node : public IntrusiveTarget {
 public:
  // A leaf finds its accumulator again through a pointer that does not own it.
  static constexpr bool revivable = true;

  explicit Node(uint64_t sequence_nr = next_sequence_nr()) : sequence_nr_(sequence_nr) {}
  ~Node() override;

  // "MulBackward", the struct's name.
  virtual std::string name() const;
  virtual Tensors apply(const Tensors& grads) = 0;  // gradients of the outputs -> of the inputs
  // Visits what was saved for `apply`; RUSH_SAVED writes it.
  virtual void visit_saved(SavedVisitor&) {}
  // Frees what was saved, after a backward pass that does not retain the graph.
  virtual void release_saved();
  // The sequence number, and where the results of `apply` go, in their order. An edge may give the node a new number.
  uint64_t sequence_nr() const { return sequence_nr_; }
  // For an accumulator: it runs as soon as the nodes that lead to it have, of which this is the least number.
  void run_after(uint64_t least) { sequence_nr_ = least - 1; }
  const SmallList<Edge, 2>& next_edges() const { return next_edges_; }
  void add_next_edge(Edge edge) {
    if (edge.valid() && RUSH_UNLIKELY(edge.node->sequence_nr_ > sequence_nr_)) sequence_nr_ = next_sequence_nr();
    next_edges_.push_back(std::move(edge));
  }
  // Whether the gradient of input `i` is asked for.
  bool needs(size_t i) const { return i < next_edges_.size() && next_edges_[i].valid(); }

  // Registers a forward output and returns its number.
  uint32_t add_output(const Tensor& output);
  size_t num_outputs() const { return outputs_.size(); }                       // that were registered
  const GradMetadata& output_metadata(size_t i) const { return outputs_[i]; }  // `i` is not checked
  // The stream that the forward call ran on, which `apply` runs on too; no queue where it was on the CPU.
  const Stream& stream() const { return stream_; }
  // Called before `apply` with the gradients that go in, and after it with those that come out.
  std::vector<std::shared_ptr<NodeHook>>& pre_hooks() { return pre_hooks_; }
  std::vector<std::shared_ptr<NodeHook>>& post_hooks() { return post_hooks_; }

  // The operator call that made this node and its stack; null unless anomaly mode was on (autograd/debug/anomaly.h).
  const std::shared_ptr<const ForwardCall>& forward_call() const { return forward_call_; }
  void set_forward_call(std::shared_ptr<const ForwardCall> call) { forward_call_ = std::move(call); }

  // Deletes it, and what only it refers to, without recursion and without memory: destructors call it.
  void destroy() override;

 private:
  static uint64_t next_sequence_nr();

  union {
    uint64_t sequence_nr_;
    Node* next_destroyed_;  // once nobody refers to it: the next one that waits to be deleted
  };
  SmallList<Edge, 2> next_edges_;
  SmallList<GradMetadata, 1> outputs_;
  Stream stream_;
  std::vector<std::shared_ptr<NodeHook>> pre_hooks_;   // on the gradients of the outputs, before apply
  std::vector<std::shared_ptr<NodeHook>> post_hooks_;  // on the gradients of the inputs, after apply
  std::shared_ptr<const ForwardCall> forward_call_;
};

// The node whose `apply` this thread is in; null outside the backward pass. Errors name it.
inline thread_local constinit Node* current_node = nullptr;

// The edge that a gradient of `tensor` flows along: to its grad_fn, to its accumulator if it is a leaf that requires a
// gradient, invalid otherwise.
Edge gradient_edge(const Tensor& tensor);
// Makes `node` the function that computed `output`, unless the dtype carries no gradient.
void set_history(const Tensor& output, const intrusive_ptr<Node>& node);

}  // namespace rush
