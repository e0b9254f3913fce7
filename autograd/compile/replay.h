// Replay: runs a function whose operators have been computed already.
#pragma once
#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "autograd/compile/graph.h"

namespace rush::compiler {

// Note [Functions that are cut]
// A function that reads a number from a tensor may do anything with it, and one that keeps a tensor which it does not
// return does so in its own C++. Such a function is cut there: the graph ends before the call, and its outputs are all
// tensors that the program still held then, among them what autograd saved. At each call of the compiled function the
// graph runs first. Then the function runs from its start, as always, but its operators are not computed: each is given
// what the graph made, or, where the program had let go of a tensor by the cut, a tensor of the same kind without
// memory. So nothing is done twice, and autograd builds its own graph on the way. From the cut on the function runs as
// it stands. A host call that the graph has done, such as an optimiser's step, is not done again either.
//
// Up to the cut the function must call what it called when it was traced: what lies in that is that it costs what the
// calls cost apart from their kernels. Where nothing was fused before the cut, it is not worth that, and all runs as it
// stands.

/// What a traced function did until it was cut.
struct CutTrace {
  std::vector<Graph::TensorInfo> tensors;
  std::vector<Graph::Call> calls;       // of operators and of the host, also those that did nothing
  std::vector<Graph::Id> outputs;       // what the program still held
  std::map<Graph::Id, Tensor> numbers;  // that the program gave, as tensors
  std::map<Graph::Id, Tensor> taken;    // other tensors from elsewhere

  CutTrace(const Graph& graph, std::vector<Graph::Call> called);
  /// Whether both called the same operators for the same tensors and numbers.
  bool is_same(const CutTrace& other) const;
};

/// One run of a function that is cut: see Note [Functions that are cut].
class Replay {
 public:
  // `outputs` are those of the trace, as the graph has made them.
  Replay(const CutTrace& trace, const std::vector<Tensor>& outputs);

  // Runs the function. Throws what it throws, and Error where it calls something else than in the trace.
  std::vector<Tensor> run(const std::function<std::vector<Tensor>()>& function);

  // Whether this thread replays now.
  static bool is_running();
  // Gives a call what was computed for it. False where there is nothing to replay.
  static bool answer(const OpBase& op, Stack& stack);
  static bool answer(const char* host_call);

 private:
  const Graph::Call& next(std::string_view name);
  void check_numbers(const Graph::Call& call, const Stack& arguments) const;
  // What a call gives that was given these arguments; `view` is what it made of them where it is a view.
  Value result(const Graph::Argument& result, const Graph::Call& call, const Stack& arguments, const Value& view);
  Tensor tensor(Graph::Id id, const Graph::Call& call, const Stack& arguments, const Tensor& view);

  const CutTrace& trace_;
  std::unordered_map<Graph::Id, Tensor> made_;
  std::vector<Tensor> held_;  // as the tracer held them: autograd asks whether others have a gradient
  size_t next_ = 0;
};

}  // namespace rush::compiler
