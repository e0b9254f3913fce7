#include "autograd/compile/traced_part.h"

#include <map>

#include "autograd/compile/graph_module.h"
#include "autograd/compile/lowering.h"
#include "autograd/grad_mode.h"

namespace rush::compiler {

namespace {

// The calls of `part` in `graph`, where `ids` has the numbers of its inputs and outputs there. What they make is on the
// device of `like`, and from its line of the program.
std::vector<Graph::Call> moved(Graph part, Graph& graph, const Graph::TensorInfo& like,
                               std::map<Graph::Id, Graph::Id> ids) {
  const Device device = like.device;
  const void* const made_before = like.made_before;
  for (size_t i = 0; i < part.tensors.size(); ++i) {
    Graph::TensorInfo info = part.tensors[i];
    const Graph::Id memory = info.memory;
    if (info.device.is_meta()) info.device = device;
    info.made_before = made_before;
    const bool is_view = memory != static_cast<Graph::Id>(i);
    if (is_view) info.storage_offset += graph.info(ids.at(memory)).storage_offset - part.info(memory).storage_offset;
    const auto [known, is_new] = ids.try_emplace(static_cast<Graph::Id>(i), Graph::kNone);
    if (is_new) known->second = graph.add(std::move(info));
    if (is_view) share_memory(graph, known->second, ids.at(memory));
  }
  for (const auto& [id, tensor] : part.constants) graph.constants.push_back({ids.at(id), tensor});
  for (Graph::Call& call : part.calls) {
    call.rename(ids);
    for (Graph::Argument& argument : call.arguments) {
      if (argument.value.is<Device>()) argument.value = device;
    }
    for (Graph::Argument& result : call.results) {
      for (Graph::Id& id : result.tensors) id = ids.at(id);
    }
  }
  return std::move(part.calls);
}

}  // namespace

std::vector<Graph::Call> traced_calls(Graph& graph, const std::vector<Graph::Id>& inputs,
                                      const std::vector<Graph::Id>& results,
                                      const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function) {
  std::vector<Tensor> tensors;
  for (const Graph::Id id : inputs) tensors.push_back(on_meta({Tensor(), {id}}, graph).as<Tensor>());
  const NoGradGuard no_grad;
  const DispatchStateGuard below(KeySet(DispatchKey::Autograd) | DispatchKey::Autocast);
  Graph part = make_fx(function, tensors);
  std::map<Graph::Id, Graph::Id> ids;
  for (size_t i = 0; i < inputs.size(); ++i) ids[part.inputs[i]] = inputs[i];
  for (size_t i = 0; i < part.outputs.size() && i < results.size(); ++i) {
    if (results[i] == Graph::kNone) continue;
    if (part.info(part.outputs[i]).strides != graph.info(results[i]).strides) return {};
    ids[part.outputs[i]] = results[i];
  }
  return moved(std::move(part), graph, graph.info(results[0]), std::move(ids));
}

}  // namespace rush::compiler
