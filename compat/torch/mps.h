// torch::mps: there is no backend for Metal.
#pragma once
#include "torch/types.h"

namespace torch::mps {
inline bool is_available() { return false; }
inline void manual_seed(uint64_t /*seed*/) { RUSH_CHECK(false, "mps: this program has no backend for Metal"); }
inline void synchronize() { RUSH_CHECK(false, "mps: this program has no backend for Metal"); }
inline void commit() { RUSH_CHECK(false, "mps: this program has no backend for Metal"); }
}  // namespace torch::mps
