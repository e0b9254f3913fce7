#include "core/ops/linalg/distance.h"

#include "core/ops/basic.h"
#include "core/ops/linalg/matrices.h"
#include "core/ops/register.h"
#include "core/ops/view/triangular.h"

namespace rush {

namespace native {

static Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode) {
  RUSH_CHECK_VALUE(x1.dim() >= 2 && x2.dim() >= 2 && x1.size(-1) == x2.size(-1),
                   "cdist: expected (..., n, d) and (..., m, d), got shapes ", x1.sizes(), " and ", x2.sizes());
  RUSH_CHECK_TYPE(x1.is_floating_point() && x1.scalar_type() == x2.scalar_type(),
                  "cdist: expected two tensors of one floating dtype, got ", x1.scalar_type(), " and ",
                  x2.scalar_type());
  RUSH_CHECK_VALUE(x1.device() == x2.device(), "cdist: devices differ: ", x1.device(), " and ", x2.device());
  RUSH_CHECK_VALUE(p >= 0, "cdist: p must not be negative, got ", p);
  RUSH_CHECK_VALUE(!mode || (*mode >= 0 && *mode <= 2), "cdist: compute_mode must be 0, 1 or 2, got ",
                   mode.value_or(0));
  const DimVector batch = broadcast_shapes(batch_of(x1), batch_of(x2), "cdist");
  const Tensor out = empty_like_matrices(x1, with(batch, {x1.size(-2), x2.size(-2)}));
  kernels::cdist(x1.device().type, as_batch(out), broadcast_batch(x1, batch), broadcast_batch(x2, batch), p);
  return out;
}

static Tensor pdist(const Tensor& self, double p) {
  RUSH_CHECK_VALUE(self.dim() == 2, "pdist: expected a matrix, got shape ", self.sizes());
  const int64_t rows = self.size(0);
  const Tensor all = ops::cdist(self, self, p, std::nullopt).flatten();  // (rows * rows)
  const Tensor above_diagonal = triu_indices(rows, rows, 1, TensorOptions(kInt64).device(self.device()));
  return all.index_select(0, above_diagonal[0] * rows + above_diagonal[1]);
}

}  // namespace native

void register_distance_ops(Registry& r) {
  r.native(ops::cdist, native::cdist);
  r.composite(ops::pdist, native::pdist);
}

}  // namespace rush
