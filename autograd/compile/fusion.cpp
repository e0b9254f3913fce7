#include "autograd/compile/fusion.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <numeric>
#include <optional>

#include "autograd/compile/fusion_group.h"

namespace rush::compiler {

bool FusionGroup::fits_memory(const std::vector<Graph::Id>& used, const std::vector<Graph::Id>& written) const {
  // What the loop writes is read at the same place of the loop alone.
  const auto fits = [&](Graph::Id id) {
    const auto [first, last] = written_.equal_range(info(id).memory);
    return std::all_of(first, last, [&](const auto& each) {
      return each.second == made_by_loop(id) || are_apart(info(each.second), info(id));
    });
  };
  // And what it reads at another place it does not write: an element may be written before it is read.
  const auto is_apart = [&](Graph::Id read) {
    return std::ranges::none_of(written, [&](Graph::Id id) {
      return id != read && info(id).memory == info(read).memory && !are_apart(info(id), info(read));
    });
  };
  return std::ranges::all_of(used, fits) && std::ranges::all_of(used, is_apart) && std::ranges::all_of(read_, is_apart);
}

bool FusionGroup::is_independent_of(const Graph::Call& call) const {
  if (!call.op || touches_followers(call)) return false;
  bool independent = true;
  Graph::for_each_tensor(call.arguments, [&](Graph::Id id) { independent &= !written_.contains(info(id).memory); });
  for (const Graph::Id id : call.written) independent &= !memories_.contains(info(id).memory);
  return independent;
}

std::vector<bool> seen_outside(const Graph& graph, const std::vector<size_t>& inside) {
  std::vector<bool> seen(graph.tensors.size(), false);
  const auto see = [&](Graph::Id id) {
    if (id != Graph::kNone) seen[static_cast<size_t>(id)] = true;
  };
  for (size_t i = 0; i < graph.calls.size(); ++i) {
    if (std::ranges::binary_search(inside, i)) continue;
    Graph::for_each_tensor(graph.calls[i].arguments, see);
  }
  std::ranges::for_each(graph.outputs, see);
  for (const Graph::Gradient& each : graph.gradients) see(each.gradient);
  return seen;
}

void fuse_element_wise_calls(Graph& graph, size_t fewest_kernels) {
  std::vector<Graph::Call> calls;
  std::vector<size_t> members, followers;
  std::optional<FusionGroup> group;
  std::deque<size_t> rest(graph.calls.size());
  std::iota(rest.begin(), rest.end(), size_t{0});
  const auto close = [&] {
    if (group->kernels() >= fewest_kernels) {
      std::ranges::copy(group->calls(seen_outside(graph, members)), std::back_inserter(calls));
    } else {
      for (const size_t i : members) calls.push_back(graph.calls[i]);
    }
    rest.insert(rest.begin(), followers.begin(), followers.end());  // they may make loops of their own
    members.clear();
    followers.clear();
    group.reset();
  };
  while (!rest.empty() || group) {
    if (rest.empty()) {
      close();
      continue;
    }
    const size_t i = rest.front();
    rest.pop_front();
    const Graph::Call& call = graph.calls[i];
    const auto kernels = fusible_kernels(graph, call);
    if (group && (kernels ? group->add(call, *kernels) : group->add_view(call))) {
      members.push_back(i);
    } else if (group && !kernels && group->is_independent_of(call)) {
      calls.push_back(call);
    } else if (group && group->add_follower(call, kernels.has_value())) {
      followers.push_back(i);
    } else if (group) {
      rest.push_front(i);
      close();
    } else if (kernels && group.emplace(graph).add(call, *kernels)) {
      members.push_back(i);
    } else {
      group.reset();
      calls.push_back(call);
    }
  }
  graph.calls = std::move(calls);
}

}  // namespace rush::compiler
