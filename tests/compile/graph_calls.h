// What tests count in a graph.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string_view>

#include "rushlight.h"

namespace rush::testing {

// The graph's calls of the operator with this name.
inline size_t calls_of(const Graph& graph, std::string_view name) {
  return static_cast<size_t>(
      std::ranges::count_if(graph.calls, [&](const Graph::Call& call) { return call.op && call.op->name() == name; }));
}

// The graph's loops: calls of several element-wise operators in one.
inline size_t fused_calls(const Graph& graph) {
  return static_cast<size_t>(
      std::ranges::count_if(graph.calls, [](const Graph::Call& call) { return call.fused != nullptr; }));
}

}  // namespace rush::testing
