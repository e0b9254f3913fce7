// Distances between all pairs of vectors.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, const Tensor&, double, std::optional<int64_t>)> cdist{
    "aten::cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, double)> pdist{"aten::pdist(Tensor self, float p=2.) -> Tensor"};
}  // namespace ops

/// The p-norm of the difference of each vector of x1 and each of x2: (..., n, d), (..., m, d) -> (..., n, m); leading
/// dimensions broadcast, p in [0, inf]. `compute_mode`, by which PyTorch chooses between two methods of different
/// rounding, is accepted; differences are always taken one by one. Throws TypeError unless both are of one floating
/// dtype.
inline Tensor cdist(const Tensor& x1, const Tensor& x2, double p = 2,
                    std::optional<int64_t> compute_mode = std::nullopt) {
  return ops::cdist(x1, x2, p, compute_mode);
}

/// The distances between the rows of one matrix: (n, d) -> (n (n - 1) / 2), those of row 0 to 1, 2, ..., then of row 1.
inline Tensor pdist(const Tensor& self, double p = 2) { return ops::pdist(self, p); }

namespace kernels {
// out (B, n, m) from x1 (B, n, d) and x2 (B, m, d), all row-major.
inline constinit Kernel<void(const Tensor& out, const Tensor& x1, const Tensor& x2, double p)> cdist{"cdist"};
}  // namespace kernels

}  // namespace rush
