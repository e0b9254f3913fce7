#pragma once
#include "torch/types.h"

namespace c10 {
/// The dimension that `dim` counts, from the end where it is negative. Throws IndexError. Without dimensions there is
/// still one, 0 or -1, if `wrap_scalar`.
inline int64_t maybe_wrap_dim(int64_t dim, int64_t dims, bool wrap_scalar = true) {
  RUSH_CHECK_INDEX(dims > 0 || wrap_scalar, "Dimension specified as ", dim, " but tensor has no dimensions");
  return rush::wrap_dim(dim, dims, "maybe_wrap_dim");
}
}  // namespace c10
