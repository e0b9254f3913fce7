// Calls for a graph that are written with tensors, and traced on the meta device.
#pragma once
#include <functional>
#include <vector>

#include "autograd/compile/graph.h"

namespace rush::compiler {

/// What `function` calls on tensors that are like `inputs` of the graph, as calls that read those, and make its first
/// results, `results`; where one is kNone, nothing is made of its number. The calls are not in the graph yet, but
/// their tensors are. Nothing where a result has other strides than it has in the graph.
std::vector<Graph::Call> traced_calls(Graph& graph, const std::vector<Graph::Id>& inputs,
                                      const std::vector<Graph::Id>& results,
                                      const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function);

}  // namespace rush::compiler
