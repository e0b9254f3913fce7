// Matrix products.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, const Tensor&)> mm{"aten::mm(Tensor self, Tensor mat2) -> Tensor"};
}  // namespace ops

// (n, k) x (k, m) -> (n, m). Throws ValueError on other shapes, TypeError when the dtypes differ.
inline Tensor mm(const Tensor& self, const Tensor& mat2) { return ops::mm(self, mat2); }

namespace kernels {
// c = beta * c + alpha * a b, for each matrix of a batch: (B, n, k) x (B, k, m) -> (B, n, m). Any strides; c is dense.
// With beta 0, c need not be initialised.
inline constinit Kernel<void(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta,
                             const Scalar& alpha)>
    gemm{"mm"};
}  // namespace kernels

}  // namespace rush
