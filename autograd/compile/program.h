// Program: runs a graph.
#pragma once
#include <memory>
#include <vector>

#include "autograd/compile/fused_loop.h"
#include "autograd/compile/graph.h"
#include "autograd/grad_mode.h"
#include "core/dispatch/key.h"

namespace rush::compiler {

class RecordedCalls;
class ResultCheck;

/// Which of a program's outputs go to its function's caller, and which of its inputs are kept for it by another
/// program, the forward pass before this backward pass: so many, from the first.
struct ProgramEnds {
  size_t returned;
  size_t kept = 0;
};

/// A graph that is ready to run. Its calls go to the operators' kernels below autograd and autocast, and a tensor is
/// let go after the last call that reads it.
class Program {
 public:
  /// Where the graph before it was fused is given, too, each run compares what it computes with what that does: see
  /// Note [Checked programs].
  explicit Program(Graph graph, std::optional<Graph> unfused = std::nullopt);
  ~Program();

  /// Runs it on inputs that are like those it was traced with. Returns its outputs, which require no gradient. Throws
  /// DifferenceError where a checked one finds a difference.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs);
  const Graph& graph() const { return graph_; }
  /// Has its calls recorded by their device, if there is one of the `places`: Note [Recorded calls].
  void record_calls(const ProgramEnds& ends, size_t fewest_kernels, std::shared_ptr<size_t> places);
  /// Whether runs are replayed by a device now.
  bool is_recorded() const;

  // The same call by call, for those who look at tensors between calls: none is let go before the scope ends.
  class Scope {
   public:
    Scope(Program& program, const std::vector<Tensor>& inputs);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Program& program_;
    const NoGradGuard no_grad_;
    const DispatchStateGuard below_;
  };
  void run_call(const Graph::Call& call, bool gates_in_place = false);
  // Those from `begin` to before `end`; what no call after them reads is let go.
  void run_calls(size_t begin, size_t end);
  const std::vector<Graph::Id>& last_used(size_t i) const { return last_used_[i]; }  // by that call
  const std::vector<Tensor>& tensors() const { return tensors_; }                    // by their numbers
  void set(Graph::Id id, const Tensor& tensor) { tensors_[static_cast<size_t>(id)] = tensor; }
  // Undoes what calls did to tensors().
  void go_back_to(const std::vector<Tensor>& tensors);
  Tensor at(Graph::Id id) const { return id == Graph::kNone ? Tensor() : tensors_[static_cast<size_t>(id)]; }

 private:
  bool may_be_read_by_host(Graph::Id leaf) const;
  void find_last_uses();
  void prepare_loops();  // in parallel: a GPU's are compiled
  void push(const Graph::Argument& argument);
  void take(const Graph::Argument& result, Value& value);
  void set_gradient(Graph::Id leaf, Graph::Id gradient);
  bool gates_in_place(size_t i) const;

  const Graph graph_;
  std::vector<std::vector<Graph::Id>> last_used_;  // tensors that no call after this one reads
  std::vector<FusedLoop::Reuses> reuses_;          // of each call that is a loop
  std::vector<Graph::Id> gets_gradient_;  // leaves that a run makes a gradient for: it frees the last run's first
  std::vector<Tensor> tensors_;           // by their numbers, while a run needs them
  Stack stack_;
  std::unique_ptr<ResultCheck> check_;  // of a checked one
  std::unique_ptr<RecordedCalls> recorded_;
};

}  // namespace rush::compiler
