// torch::xpu: there is no backend for SYCL.
#pragma once
#include "torch/types.h"

namespace torch::xpu {
inline size_t device_count() { return 0; }
inline bool is_available() { return false; }
inline void manual_seed(uint64_t /*seed*/) { RUSH_CHECK(false, "xpu: this program has no backend for SYCL"); }
inline void manual_seed_all(uint64_t /*seed*/) { RUSH_CHECK(false, "xpu: this program has no backend for SYCL"); }
inline void synchronize(int64_t /*device_index*/) { RUSH_CHECK(false, "xpu: this program has no backend for SYCL"); }
}  // namespace torch::xpu
