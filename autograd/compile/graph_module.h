// Graphs in a program's own hands: traced, read, changed, cut into stages and run.
#pragma once
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/compile/graph.h"

namespace rush {

namespace compiler {
class Program;
}

/// The calls of `function` on these inputs, below autograd and before any pass. Throws Error where the function does
/// what a graph cannot hold, such as reading a number from a tensor. Its own results are let go. make_fx, with
/// pre_dispatch=False.
Graph make_fx(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
              const std::vector<Tensor>& inputs);

/// A graph as a function of its inputs. torch.fx.GraphModule.
class GraphModule {
 public:
  explicit GraphModule(Graph graph);
  ~GraphModule();
  GraphModule(GraphModule&&) noexcept;
  GraphModule& operator=(GraphModule&&) noexcept;

  /// Runs the calls on tensors that are like those of the trace. The results require no gradient. Throws ValueError
  /// where a tensor is of other sizes, strides, dtype or device.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs);
  const Graph& graph() const;  ///< as it was given

 private:
  std::unique_ptr<compiler::Program> program_;
};

/// Puts a call of the operator before call `at`, whose arguments are values and tensors of the graph, in the order of
/// its schema; what is left out takes its default. Returns the numbers of the tensors that it makes; their kinds are
/// asked of the meta device. Throws IndexError for a call or a tensor that is not there, and what the operator throws
/// on the meta device. torch.fx.Graph.call_function under inserting_before.
std::vector<Graph::Id> insert_call(Graph& graph, size_t at, std::string_view op,
                                   std::vector<Graph::Argument> arguments);
/// An argument that is a tensor of the graph.
Graph::Argument tensor_argument(Graph::Id id);

/// The calls before call `at`, and the others. The outputs of the first are the inputs of the second. Throws
/// IndexError. torch.fx.passes.split_module, for two stages.
std::pair<Graph, Graph> split(const Graph& graph, size_t at);

/// Multiplications and additions of a call, as profiles count them (docs/profiling.md): 2 m k n of a product of (m, k)
/// by (k, n), 0 of operators that are not counted and of loops. torch.utils.flop_counter.
double flops(const Graph& graph, const Graph::Call& call);

}  // namespace rush
