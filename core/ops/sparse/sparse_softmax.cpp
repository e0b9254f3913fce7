// softmax over the entries of sparse tensors.
#include <limits>

#include "core/ops/basic.h"
#include "core/ops/nn/softmax.h"
#include "core/ops/reduce/unique.h"
#include "core/ops/register.h"
#include "core/ops/sparse/sparse_parts.h"

namespace rush {

namespace native {

namespace {

// For each entry of `coo` the number of its pool: entries that differ in dimension `dim` only share one. (nnz)
Tensor pools_of(const Tensor& coo, int64_t dim) {
  const Tensor indices = coo._indices();
  std::vector<Tensor> rows;
  DimVector sizes;
  for (int64_t d = 0; d < indices.size(0); ++d) {
    if (d == dim) continue;
    rows.push_back(indices.select(0, d));
    sizes.push_back(coo.size(d));
  }
  if (rows.empty()) return rush::zeros(indices.size(1), indices.options());
  return std::get<1>(rush::_unique2(places_of(rush::stack(rows), sizes), true, true));
}

// softmax, or its logarithm, of values (nnz, ...) among those of the same pool.
Tensor softmax_of_pools(const Tensor& values, const Tensor& pools, bool log) {
  DimVector sizes(values.sizes()), column(sizes.size(), 1);
  sizes[0] = pools.max().item().toLong() + 1;
  column[0] = pools.numel();
  const Tensor largest = rush::full(sizes, -std::numeric_limits<double>::infinity(), values.options())
                             .scatter_reduce(0, pools.view(column).expand(values.sizes()), values.detach(), "amax");
  const Tensor shifted = values - rush::index_select(largest, 0, pools);
  const Tensor powers = shifted.exp();
  const Tensor sums = rush::zeros(sizes, values.options()).index_add(0, pools, powers);
  if (log) return shifted - rush::index_select(sums.log(), 0, pools);
  return powers / rush::index_select(sums, 0, pools);
}

// Made of operators on the values, which have derivatives.
template <bool log>
Tensor sparse_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  constexpr const char* op = log ? "_sparse_log_softmax" : "_sparse_softmax";
  RUSH_CHECK_VALUE(self.layout() == kSparse, op, ": expected a tensor of layout ", kSparse, ", got ", self.layout());
  dim = wrap_dim(dim, self.dim(), op);
  const Tensor coo = self.coalesce();
  Tensor values = ops::_values(coo);
  if (dtype) values = values.to(*dtype);
  RUSH_CHECK_NOT_IMPLEMENTED(values.is_floating_point(), op, ": expected a floating tensor, got ",
                             values.scalar_type());
  const int64_t sparse_dim = coo.sparse_dim();
  if (dim >= sparse_dim) {
    const int64_t value_dim = dim - sparse_dim + 1;
    values = log ? rush::log_softmax(values, value_dim) : rush::softmax(values, value_dim);
  } else if (values.numel() > 0) {
    values = softmax_of_pools(values, pools_of(coo, dim), log);
  }
  return rush::_sparse_coo_tensor_unsafe(coo._indices(), values, self.sizes(), {}, true);
}

}  // namespace

}  // namespace native

void register_sparse_softmax_ops(Registry& r) {
  r.composite(ops::_sparse_softmax_int, native::sparse_softmax<false>);
  r.composite(ops::_sparse_log_softmax_int, native::sparse_softmax<true>);
}

}  // namespace rush
