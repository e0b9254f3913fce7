#include "core/ops/matmul.h"

#include "core/dispatch/registry.h"
#include "core/ops/register.h"
#include "core/ops/view.h"

namespace rush {

namespace native {

// A matrix as a batch of one, without touching the graph.
static Tensor as_batch(const Tensor& matrix) {
  const int64_t batch_stride = matrix.numel();
  return detail::make_view(matrix, {1, matrix.size(0), matrix.size(1)},
                           {batch_stride, matrix.stride(0), matrix.stride(1)}, matrix.storage_offset());
}

static Tensor mm(const Tensor& self, const Tensor& mat2) {
  RUSH_CHECK_VALUE(self.dim() == 2 && mat2.dim() == 2, "mm: expected two matrices, got shapes ", self.sizes(), " and ",
                   mat2.sizes());
  RUSH_CHECK_VALUE(self.size(1) == mat2.size(0), "mm: cannot multiply ", self.sizes(), " by ", mat2.sizes(), ": ",
                   self.size(1), " columns against ", mat2.size(0), " rows");
  RUSH_CHECK_TYPE(self.scalar_type() == mat2.scalar_type(), "mm: dtypes differ: ", self.scalar_type(), " and ",
                  mat2.scalar_type());
  const Tensor out = detail::empty_contiguous({self.size(0), mat2.size(1)}, self.scalar_type(), self.device());
  kernels::gemm(self.device().type, as_batch(out), as_batch(self), as_batch(mat2), 0, 1);
  return out;
}

}  // namespace native

void register_matmul_ops(Registry& r) { r.native(ops::mm, native::mm); }

Tensor Tensor::mm(const Tensor& mat2) const { return ops::mm(*this, mat2); }

}  // namespace rush
