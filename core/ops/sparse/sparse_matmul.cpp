// Products with sparse matrices. All layouts are multiplied as CSR.
#include "core/ops/basic.h"
#include "core/ops/linalg/factors.h"
#include "core/ops/nn/linear.h"
#include "core/ops/register.h"
#include "core/ops/sparse/sparse_kernels.h"
#include "core/ops/sparse/sparse_parts.h"

namespace rush {

namespace native {

namespace {

void check_sparse_factors(const char* op, const Tensor& a, const Tensor& b, int64_t b_dims) {
  RUSH_CHECK_VALUE(a.dim() == 2 && b.dim() == b_dims, op, ": expected factors of 2 and ", b_dims,
                   " dimensions, got shapes ", a.sizes(), " and ", b.sizes());
  check_factor_shapes(op, a, b);
  check_factor_dtypes(op, a, b);
  RUSH_CHECK_TYPE(is_differentiable(a.scalar_type()), op, ": sparse products are of floating point or complex, not ",
                  a.scalar_type());
  RUSH_CHECK_VALUE(a.device() == b.device(), op, ": devices differ: ", a.device(), " and ", b.device());
}

CsrMatrix csr_of(const Tensor& matrix, const char* op) {
  const Tensor csr = as_csr(matrix, op);
  const SparseCsrTensorImpl& parts = compressed_parts(csr);
  return {parts.compressed_indices(), parts.plain_indices(), parts.values(), csr.size(0), csr.size(1)};
}

void as_int64(CsrMatrix& matrix) {
  matrix.crow = matrix.crow.to(kInt64);
  matrix.col = matrix.col.to(kInt64);
}

Tensor sparse_times_sparse(const Tensor& self, const Tensor& mat2) {
  CsrMatrix a = csr_of(self, "mm"), b = csr_of(mat2, "mm"), c;
  if (a.col.scalar_type() != b.col.scalar_type()) {
    as_int64(a);
    as_int64(b);
  }
  kernels::sparse_matmul(self.device().type, c, a, b);
  const Tensor product = make_compressed(kSparseCsr, {a.rows, b.columns}, c.crow, c.col, c.values);
  switch (self.layout()) {
    case kSparse: return as_coo(product);
    case kSparseCsc: return recompress(product);
    default: return product;
  }
}

// out = beta out + alpha mat1 mat2, a dense `out` of (n, m), row-major.
void sparse_product_into(const char* op, const Tensor& out, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                         const Scalar& alpha) {
  kernels::sparse_mm(out.device().type, out, csr_of(mat1, op), contiguous(mat2), beta, alpha);
}

Tensor new_product(const char* op, const Tensor& mat1, const Tensor& mat2) {
  const Tensor out = detail::empty_contiguous({mat1.size(0), mat2.size(1)}, mat1.scalar_type(), mat1.device());
  sparse_product_into(op, out, mat1, mat2, 0, 1);
  return out;
}

}  // namespace

static Tensor sparse_mm(const Tensor& self, const Tensor& mat2) {
  check_sparse_factors("mm", self, mat2, 2);
  if (is_dense(self)) return contiguous(new_product("mm", transpose(mat2, 0, 1), self.t()).t());
  return is_dense(mat2) ? new_product("mm", self, mat2) : sparse_times_sparse(self, mat2);
}

static Tensor sparse_mv(const Tensor& self, const Tensor& vec) {
  RUSH_CHECK_VALUE(is_dense(vec) && !is_dense(self), "mv: expected a sparse matrix and a dense vector, got layouts ",
                   self.layout(), " and ", vec.layout());
  check_sparse_factors("mv", self, vec, 1);
  return new_product("mv", self, vec.unsqueeze(1)).select(1, 0);
}

static Tensor sparse_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                           const Scalar& alpha) {
  check_sparse_factors("addmm", mat1, mat2, 2);
  const DimVector sizes{mat1.size(0), mat2.size(1)};
  check_addend("addmm", self, mat1, sizes);
  if (is_dense(self) && !is_dense(mat1) && is_dense(mat2)) {
    Tensor out = detail::empty_contiguous(sizes, self.scalar_type(), self.device());
    if (!beta.equal(0)) copy_(out, self, false);
    sparse_product_into("addmm", out, mat1, mat2, beta, alpha);
    return out;
  }
  const Tensor product = ops::mm(mat1, mat2) * alpha;
  if (!beta.equal(0)) return self * beta + product;
  return is_dense(self) && !is_dense(product) ? product.to_dense() : product;
}

static Tensor& sparse_addmm_(Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                             const Scalar& alpha) {
  return ops::copy_(self, sparse_addmm(self, mat1, mat2, beta, alpha), false);
}

static Tensor sparse_sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                                   const Scalar& alpha) {
  constexpr const char* op = "sparse_sampled_addmm";
  RUSH_CHECK_VALUE(self.layout() == kSparseCsr && is_dense(mat1) && is_dense(mat2), op,
                   ": expected a tensor of layout ", kSparseCsr, " and dense factors, got layouts ", self.layout(),
                   ", ", mat1.layout(), " and ", mat2.layout());
  check_sparse_factors(op, mat1, mat2, 2);
  RUSH_CHECK_VALUE(self.size(0) == mat1.size(0) && self.size(1) == mat2.size(1), op, ": self has sizes ", self.sizes(),
                   ", the product has (", mat1.size(0), ", ", mat2.size(1), ")");
  check_addend(op, self, mat1, self.sizes());
  CsrMatrix pattern = csr_of(self, op);
  const bool keeps = !beta.equal(0);
  const Tensor values = keeps ? clone_contiguous(pattern.values)
                              : detail::empty_contiguous(pattern.nnz(), self.scalar_type(), self.device());
  pattern.values = Tensor();
  kernels::sparse_sampled_mm(self.device().type, values, pattern, contiguous(mat1), contiguous(mat2.t()), beta, alpha);
  return with_values(self, values);
}

Tensor linear_sparse(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
  const Tensor product = input.matmul(weight.t());
  return bias ? product + *bias : product;
}

}  // namespace native

void register_sparse_matmul_ops(Registry& r) {
  r.sparse(ops::mm, native::sparse_mm);
  r.sparse(ops::mv, native::sparse_mv);
  r.sparse(ops::addmm, native::sparse_addmm);
  r.sparse(ops::addmm_, native::sparse_addmm_);
  r.sparse(ops::linear, native::linear_sparse);
  r.composite(ops::_sparse_mm, native::same_as<ops::mm>);
  r.composite(ops::_sparse_addmm, native::same_as<ops::addmm>);
  r.sparse(ops::sparse_sampled_addmm, native::sparse_sampled_addmm);
}

}  // namespace rush
