#include "autograd/compile/uses.h"

#include <algorithm>

namespace rush::compiler {

Uses::Uses(const Graph& graph) : graph_(graph) {
  const auto note = [](std::vector<size_t>& calls, size_t i) {
    if (calls.empty() || calls.back() != i) calls.push_back(i);
  };
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    const Graph::Call& call = graph.calls[i];
    for (const Graph::Id id : Graph::tensors_of(call.arguments)) {
      note(readers_[id], i);
      if (call.host) note(writers_[graph.info(id).memory], i);  // what it does is not known
    }
    for (const Graph::Id id : call.written) note(writers_[graph.info(id).memory], i);
    for (const Graph::Id id : Graph::tensors_of(call.results)) makers_.emplace(id, i);  // a later one gives it back
  }
  for (const Graph::Id id : graph.read_at_end()) seen_.insert(id);
}

std::optional<size_t> Uses::maker(Graph::Id id) const {
  const auto found = makers_.find(id);
  return found == makers_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<size_t> Uses::only_reader(Graph::Id id) const {
  const std::vector<size_t>& all = readers(id);
  if (all.size() != 1 || is_seen_outside(id)) return std::nullopt;
  return all[0];
}

bool Uses::is_free_after(Graph::Id id, size_t call) const {
  for (size_t i = 0; i < graph_.tensors.size(); ++i) {
    if (graph_.tensors[i].memory != graph_.info(id).memory) continue;
    const auto each = static_cast<Graph::Id>(i);
    const bool is_read_later = !readers(each).empty() && readers(each).back() > call;
    if (!maker(each) || is_read_later || is_seen_outside(each)) return false;
  }
  return true;
}

bool Uses::is_read_between(Graph::Id id, size_t first, size_t last) const {
  for (size_t i = 0; i < graph_.tensors.size(); ++i) {
    if (graph_.tensors[i].memory != graph_.info(id).memory) continue;
    for (const size_t call : readers(static_cast<Graph::Id>(i))) {
      if (first < call && call < last) return true;
    }
  }
  return false;
}

bool Uses::is_written(Graph::Id id, size_t first, size_t last) const {
  return std::ranges::any_of(writers(id), [&](size_t call) { return first < call && call < last; });
}

void exchange_calls(Graph& graph, std::map<size_t, std::vector<Graph::Call>> instead) {
  std::vector<Graph::Call> calls;
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    if (const auto found = instead.find(i); found != instead.end()) {
      std::ranges::move(found->second, std::back_inserter(calls));
    } else {
      calls.push_back(std::move(graph.calls[i]));
    }
  }
  graph.calls = std::move(calls);
}

}  // namespace rush::compiler
