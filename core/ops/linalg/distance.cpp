#include "core/ops/linalg/distance.h"

#include "core/iterator/tensor_iterator.h"
#include "core/ops/basic.h"
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
  const auto leading = [](const Tensor& t) { return t.sizes().slice(0, t.sizes().size() - 2); };
  DimVector sizes = broadcast_shapes(leading(x1), leading(x2), "cdist");
  const int64_t batch = checked_numel(sizes);
  const auto as_batch = [&](const Tensor& t) {
    DimVector full = sizes;
    full.push_back(t.size(-2));
    full.push_back(t.size(-1));
    return contiguous(expand_as_strided(t, full)).view({batch, t.size(-2), t.size(-1)});
  };
  const Tensor first = as_batch(x1), second = as_batch(x2);
  sizes.push_back(x1.size(-2));
  sizes.push_back(x2.size(-2));
  const Tensor out = detail::empty_contiguous(sizes, x1.scalar_type(), x1.device());
  kernels::cdist(x1.device().type, out.view({batch, x1.size(-2), x2.size(-2)}), first, second, p);
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
