// Tracer: runs a function and notes the operators that it calls, as a Graph.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "autograd/compile/graph.h"

namespace rush::compiler {

// Note [Tracing]
// While a function is traced every call of its thread carries the key Tracer, which lies below Autograd. So the
// function runs as always and returns what it always does, and the fallback of that key notes the calls that are left
// when autocast and autograd have had their turn: those of the forward pass, and of the backward pass when the function
// runs one. An operator that is made of others (Registry::composite) is gone through; what the front of another one
// calls is its own affair, and is not noted.
//
// Tensors are known by their TensorImpl, or by their storage and geometry: autograd keeps aliases that no operator
// made. A tensor that is not known was made elsewhere, and is a constant of the graph. A known tensor is held while the
// program holds it, so that its address stays its own; once the trace alone has it, no call can be given it any more,
// and it is let go. So is a storage, once nothing but the trace has it: until then its address is that of no other.
//
// What a program does without operators cannot be noted. Three such things are known: a gradient that the backward pass
// leaves in a leaf (Graph::gradients), a step of an optimiser (host_call), and a number that is read from a tensor,
// after which the program may do anything: there the trace ends, Note [Functions that are cut].
class Tracer {
 public:
  // Asked of each operator: whether it is noted as it is, although it is made of others. It may throw for one that the
  // graph must not have, and then throws where that is called.
  using TakesWhole = bool (*)(const OpBase& op);

  explicit Tracer(const std::vector<Tensor>& inputs, TakesWhole takes_whole = nullptr);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // Runs `program`, which returns its outputs. Throws what it throws.
  std::vector<Tensor> run(const std::function<std::vector<Tensor>()>& program);
  // Why the graph does not stand for the function; nothing when it does. In English, for a warning. The graph is then
  // that of what the function did before.
  const std::string& obstacle() const { return obstacle_; }
  // The graph. It holds no gradient that was there before: others will be, and the program may let go of it.
  Graph take_graph();
  // What the function called, up to the obstacle: calls that did nothing, too.
  std::vector<Graph::Call> take_calls() { return std::move(calls_); }

  // The one that traces this thread's calls now; null for none.
  static Tracer* current();
  // Notes that the program does this here, with the gradients of these leaves; does it, and notes nothing of how.
  void host_call(const char* name, const std::vector<Tensor>& leaves, const std::function<void()>& call);

  // Ends the trace of this thread, if there is one, before something that it cannot note: `why` says what.
  static void end_before(const char* why);

  // The fallback of the key.
  static void trace_call(const OpBase& op, KeySet keys, Stack& stack);

 private:
  void record(const OpBase& op, Stack& stack);
  Graph::Argument argument_of(const Value& value);
  Graph::Argument result_of(const Value& value);
  bool is_another_leaf(const Tensor& tensor, Graph::Id id) const;
  Graph::Id id_of(const Tensor& tensor);
  Graph::Id add(const Tensor& tensor, bool is_made = false);
  Graph::Id known(const Tensor& tensor) const;
  Graph::Id view_of_known(const Tensor& tensor);
  // Lets go of what nobody else holds.
  void let_go();
  // What the program still holds of what calls made.
  std::vector<Graph::Id> alive();
  // The trace ends before a call with these arguments.
  void cut(std::string why, const std::vector<Graph::Argument>& arguments);
  void set_gradients(std::vector<Graph::Gradient>& gradients);
  // Calls visit(id, tensor) for what no call makes: the inputs, then the constants so far.
  template <class Visit>
  void for_each_given(const Visit& visit) const {
    for (size_t i = 0; i < inputs_.size(); ++i) visit(graph_.inputs[i], inputs_[i]);
    for (const auto& [id, tensor] : graph_.constants) visit(id, tensor);
  }
  // Whether this new constant is a leaf's gradient, or a leaf whose gradient is one.
  void find_earlier_gradient(Graph::Id id, const Tensor& constant);
  bool ran_backward() const;
  std::string name_of_maker(Graph::Id made) const;
  uint64_t random_numbers_drawn() const;  // from the default generators of all devices that were seen
  void trace_backward(const std::vector<Tensor>& outputs);
  // The constants that the nodes behind the outputs have saved.
  std::vector<Graph::Id> saved_constants(const std::vector<Tensor>& outputs) const;
  std::string what_became_another() const;
  std::string what_escaped(const std::vector<Tensor>& outputs);

  struct Held {
    Tensor tensor;
    Graph::Id id;
  };
  // Held as well, since others may be of the same memory: so its address stays its own.
  struct KnownStorage {
    Storage storage;
    int32_t memory;
    std::vector<Graph::Id> ids;  // of the tensors in it
  };
  // Of a tensor from elsewhere, when it was first seen.
  struct FirstSeen {
    explicit FirstSeen(const Tensor& tensor);
    Tensor tensor;
    intrusive_ptr<Node> grad_fn;
    bool requires_grad;
    DimVector sizes, strides;
  };
  const std::vector<Tensor> inputs_;
  const TakesWhole takes_whole_;
  Graph graph_;
  std::unordered_map<const TensorImpl*, Held> held_;
  std::unordered_map<const StorageImpl*, KnownStorage> storages_;
  std::vector<Graph::Call> calls_;                 // those of take_calls
  std::unordered_set<Graph::Id> made_;             // by calls
  std::unordered_set<const TensorImpl*> results_;  // the addresses of what calls gave
  std::vector<FirstSeen> first_seen_;
  std::vector<Device> devices_ = {kCPU};
  bool has_accumulated_ = false;  // into a gradient that was there before
  size_t let_go_at_ = 256;
  std::string obstacle_;
};

// While this thread is traced: notes the call and does it. Otherwise does nothing, and is false.
bool host_call(const char* name, const std::function<void()>& call,
               const std::function<std::vector<Tensor>()>& leaves = nullptr);

}  // namespace rush::compiler
