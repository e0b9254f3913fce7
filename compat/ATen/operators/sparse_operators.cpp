#include "ATen/operators/sparse_operators.h"

namespace rush {
inline namespace aten {

namespace {
Tensor rows_with_values(const Tensor& matrix) { return std::get<0>(_unique2(matrix._indices()[0])); }
}  // namespace

Tensor sspaddmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  RUSH_CHECK_VALUE(self.is_sparse() && mat1.is_sparse() && !mat2.is_sparse(),
                   "sspaddmm: needs a sparse matrix, a sparse one and a dense one");
  RUSH_CHECK_VALUE(mat1.dim() == 2 && mat2.dim() == 2 && mat1.size(1) == mat2.size(0) && self.dim() == 2 &&
                       self.size(0) == mat1.size(0) && self.size(1) == mat2.size(1),
                   "sspaddmm: mat1 and mat2 shapes cannot be multiplied and added to self, got ", mat1.sizes(), " and ",
                   mat2.sizes(), " for a self of ", self.sizes());
  const Tensor rows = rows_with_values(mat1);
  const int64_t count = rows.numel(), n = mat2.size(1);
  const Tensor indices = stack({rows.repeat_interleave(n), arange(n, rows.options()).repeat({count})});
  const Tensor products = _sparse_mm(mat1, mat2).index_select(0, rows).reshape({count * n});
  return sparse_coo_tensor(cat({self._indices(), indices}, 1), cat({self._values().mul(beta), products.mul(alpha)}),
                           self.sizes());
}
Tensor smm(const Tensor& self, const Tensor& mat2) {
  const Tensor nothing = sparse_coo_tensor({self.size(0), mat2.size(1)}, mat2.options().layout(kSparse));
  return sspaddmm(nothing, self, mat2, 0, 1);
}
Tensor hspmm(const Tensor& mat1, const Tensor& mat2) {
  const Tensor rows = rows_with_values(mat1);
  const Tensor values = _sparse_mm(mat1, mat2).index_select(0, rows);
  return sparse_coo_tensor(rows.unsqueeze(0), values, {mat1.size(0), mat2.size(1)});
}
const Tensor& sparse_resize_(const Tensor& self, IntArrayRef size, int64_t sparse_dim, int64_t dense_dim) {
  RUSH_CHECK_VALUE(self.is_sparse(), "sparse_resize_: needs a sparse tensor");
  RUSH_CHECK_VALUE(sparse_dim + dense_dim == static_cast<int64_t>(size.size()), "sparse_resize_: ", sparse_dim,
                   " sparse and ", dense_dim, " dense dimensions are not those of ", size);
  if (self._nnz() == 0) {
    DimVector shape{0};
    for (size_t d = static_cast<size_t>(sparse_dim); d < size.size(); ++d) shape.push_back(size[d]);
    const Tensor indices = empty({sparse_dim, 0}, self._indices().options());
    self.set_data(sparse_coo_tensor(indices, empty(IntArrayRef(shape), self._values().options()), size));
    return self;
  }
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool kept = sparse_dim == self.sparse_dim() && dense_dim == self.dense_dim() &&
                      (d < sparse_dim ? size[d] >= self.size(d) : size[d] == self.size(d));
    RUSH_CHECK_VALUE(kept, "sparse_resize_: a tensor of ", self.sizes(), " with values cannot get the sizes ", size,
                     ": sparse_resize_and_clear_ removes the values");
  }
  self.set_data(sparse_coo_tensor(self._indices(), self._values(), size, {}, self.is_coalesced()));
  return self;
}
const Tensor& sparse_resize_and_clear_(const Tensor& self, IntArrayRef size, int64_t sparse_dim, int64_t dense_dim) {
  const IntArrayRef old = self.sizes();
  self.set_data(sparse_coo_tensor(old, self.options()));
  return sparse_resize_(self, size, sparse_dim, dense_dim);
}
const Tensor& resize_as_sparse_(const Tensor& self, const Tensor& the_template) {
  if (self.sizes() == the_template.sizes() && self.sparse_dim() == the_template.sparse_dim()) return self;
  return sparse_resize_(self, the_template.sizes(), the_template.sparse_dim(), the_template.dense_dim());
}
Tensor sparse_resize(const Tensor& self, IntArrayRef size, int64_t sparse_dim, int64_t dense_dim) {
  return sparse_resize_(self.detach().clone(), size, sparse_dim, dense_dim);
}
Tensor sparse_resize_and_clear(const Tensor& self, IntArrayRef size, int64_t sparse_dim, int64_t dense_dim) {
  return sparse_resize_and_clear_(self.detach().clone(), size, sparse_dim, dense_dim);
}
Tensor resize_as_sparse(const Tensor& self, const Tensor& the_template) {
  return resize_as_sparse_(self.detach().clone(), the_template);
}
}  // namespace aten
}  // namespace rush
