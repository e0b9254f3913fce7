// The batches that a loader gives.
#pragma once
#include <type_traits>
#include <vector>

namespace rush::testing {

using Batches = std::vector<std::vector<int>>;

// The batches of one epoch.
template <class Loader>
auto epoch(Loader& loader) {
  std::vector<std::remove_cvref_t<decltype(*loader.begin())>> batches;
  for (auto& batch : loader) batches.push_back(batch);
  return batches;
}

}  // namespace rush::testing
