#include "autograd/compile/uses.h"

#include <algorithm>

namespace rush::compiler {

Uses::Uses(const Graph& graph)
    : graph_(graph),
      makers_(graph.tensors.size()),
      readers_(graph.tensors.size()),
      writers_(graph.tensors.size()),
      is_seen_(graph.tensors.size(), false) {
  const auto see = [&](Graph::Id id) {
    if (id != Graph::kNone) is_seen_[static_cast<size_t>(id)] = true;
  };
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    const Graph::Call& call = graph.calls[i];
    const auto write = [&](Graph::Id id) {
      std::vector<size_t>& writers = writers_[static_cast<size_t>(graph.tensors[static_cast<size_t>(id)].memory)];
      if (writers.empty() || writers.back() != i) writers.push_back(i);
    };
    Graph::for_each_tensor(call.arguments, [&](Graph::Id id) {
      std::vector<size_t>& readers = readers_[static_cast<size_t>(id)];
      if (readers.empty() || readers.back() != i) readers.push_back(i);
      if (call.host) write(id);  // what it does is not known
    });
    for (const Graph::Id id : call.written) write(id);
    Graph::for_each_tensor(call.results, [&](Graph::Id id) {
      std::optional<size_t>& maker = makers_[static_cast<size_t>(id)];
      if (!maker) maker = i;  // a later one gives the same tensor back
    });
  }
  std::ranges::for_each(graph.outputs, see);
  for (const Graph::Gradient& each : graph.gradients) see(each.gradient);
}

std::optional<size_t> Uses::only_reader(Graph::Id id) const {
  const std::vector<size_t>& all = readers(id);
  if (all.size() != 1 || is_seen_outside(id)) return std::nullopt;
  return all[0];
}

bool Uses::is_free_after(Graph::Id id, size_t call) const {
  for (size_t i = 0; i < graph_.tensors.size(); ++i) {
    if (graph_.tensors[i].memory != graph_.tensors[static_cast<size_t>(id)].memory) continue;
    const auto each = static_cast<Graph::Id>(i);
    const bool is_read_later = !readers(each).empty() && readers(each).back() > call;
    if (!maker(each) || is_read_later || is_seen_outside(each)) return false;
  }
  return true;
}

bool Uses::is_written(Graph::Id id, size_t first, size_t last) const {
  return std::ranges::any_of(writers(id), [&](size_t call) { return first < call && call < last; });
}

}  // namespace rush::compiler
