// The products that have a kernel: mm, bmm, mv, dot and those added to a tensor.
#include "core/ops/linalg/matmul.h"

#include "core/ops/linalg/factors.h"
#include "core/ops/register.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"

namespace rush {

namespace native {

static void check_factors(const char* op, const Tensor& a, int64_t a_dims, const Tensor& b, int64_t b_dims) {
  if (a_dims == 3) {
    check_factor_batches(op, a, b);
  } else {
    RUSH_CHECK_VALUE(a.dim() == a_dims && b.dim() == b_dims, op, ": expected factors of ", a_dims, " and ", b_dims,
                     " dimensions, got shapes ", a.sizes(), " and ", b.sizes());
    check_factor_shapes(op, a, b);
  }
  check_factor_dtypes(op, a, b);
  RUSH_CHECK_VALUE(a.device() == b.device(), op, ": devices differ: ", a.device(), " and ", b.device());
}

// Matrices and vectors as batches of matrices, without touching the graph.
static Tensor batch_of_matrix(const Tensor& t) {
  return detail::make_view(t, {1, t.size(0), t.size(1)}, {t.numel(), t.stride(0), t.stride(1)}, t.storage_offset());
}
static Tensor batch_of_column(const Tensor& t) {
  return detail::make_view(t, {1, t.size(0), 1}, {t.numel(), t.stride(0), 1}, t.storage_offset());
}
static Tensor batch_of_row(const Tensor& t) {
  return detail::make_view(t, {1, 1, t.size(0)}, {t.numel(), 1, t.stride(0)}, t.storage_offset());
}

// out = a b. A product without elements, or of no columns by no rows, multiplies nothing, and even bool, which has no
// products, has it.
static void product_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  if (out.numel() == 0) return;
  if (a.sizes()[2] == 0) {
    out.zero_();
    return;
  }
  kernels::gemm(out.device().type, out, a, b, 0, 1);
}

static Tensor mm(const Tensor& self, const Tensor& mat2) {
  check_factors("mm", self, 2, mat2, 2);
  const Tensor out = detail::empty_contiguous({self.size(0), mat2.size(1)}, self.scalar_type(), self.device());
  product_into(batch_of_matrix(out), batch_of_matrix(self), batch_of_matrix(mat2));
  return out;
}

static Tensor bmm(const Tensor& self, const Tensor& mat2) {
  check_factors("bmm", self, 3, mat2, 3);
  const Tensor out =
      detail::empty_contiguous({self.size(0), self.size(1), mat2.size(2)}, self.scalar_type(), self.device());
  product_into(out, self, mat2);
  return out;
}

static Tensor mv(const Tensor& self, const Tensor& vec) {
  check_factors("mv", self, 2, vec, 1);
  const Tensor out = detail::empty_contiguous(self.size(0), self.scalar_type(), self.device());
  product_into(batch_of_column(out), batch_of_matrix(self), batch_of_column(vec));
  return out;
}

static Tensor dot(const Tensor& self, const Tensor& tensor) {
  check_factors("dot", self, 1, tensor, 1);
  const Tensor out = detail::empty_contiguous({}, self.scalar_type(), self.device());
  const Tensor cell = detail::make_view(out, {1, 1, 1}, {1, 1, 1}, 0);
  kernels::gemm(self.device().type, cell, batch_of_row(self), batch_of_column(tensor), 0, 1);
  return out;
}

// What a product is added to: a new tensor of shape `sizes`, a copy of self unless that is not read.
static Tensor new_sum(const char* op, const Tensor& self, const Tensor& factor, IntArrayRef sizes, const Scalar& beta) {
  check_addend(op, self, factor, sizes);
  Tensor out = detail::empty_contiguous(sizes, self.scalar_type(), self.device());
  // A fraction scales integers as the integer that it is cut to.
  const bool unread = is_integral(self.scalar_type(), true) ? beta.toLong() == 0 : beta.equal(0);
  if (!unread) copy_(out, self, false);
  return out;
}

// Whether self is one row, added as it is to every row of the product as it is.
static bool is_bias(const Tensor& self, int64_t columns, const Scalar& beta, const Scalar& alpha) {
  return self.dim() == 1 && self.size(0) == columns && self.is_contiguous() && beta.equal(1) && alpha.equal(1);
}

static Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
                    const Scalar& alpha) {
  check_factors("addmm", mat1, 2, mat2, 2);
  const DimVector sizes = {mat1.size(0), mat2.size(1)};
  if (is_bias(self, sizes[1], beta, alpha)) {
    check_addend("addmm", self, mat1, sizes);
    const Tensor out = detail::empty_contiguous(sizes, self.scalar_type(), self.device());
    kernels::gemm_bias(self.device().type, batch_of_matrix(out), batch_of_matrix(mat1), batch_of_matrix(mat2), self);
    return out;
  }
  const Tensor out = new_sum("addmm", self, mat1, sizes, beta);
  kernels::gemm(self.device().type, batch_of_matrix(out), batch_of_matrix(mat1), batch_of_matrix(mat2), beta, alpha);
  return out;
}

static Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta, const Scalar& alpha) {
  check_factors("addmv", mat, 2, vec, 1);
  const Tensor out = new_sum("addmv", self, mat, mat.size(0), beta);
  kernels::gemm(self.device().type, batch_of_column(out), batch_of_matrix(mat), batch_of_column(vec), beta, alpha);
  return out;
}

static Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                      const Scalar& alpha) {
  check_factors("baddbmm", batch1, 3, batch2, 3);
  const Tensor out = new_sum("baddbmm", self, batch1, {batch1.size(0), batch1.size(1), batch2.size(2)}, beta);
  kernels::gemm(self.device().type, out, batch1, batch2, beta, alpha);
  return out;
}

// In place: through a new tensor, since self may share memory with a factor. Self must have the product's shape.
template <auto& op>
static Tensor& add_product_(Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  return copy_(self, op(self, a, b, beta, alpha), false);
}

// Straight into self, where it is of the product's shape and shares no memory. A float32 takes the products of 16-bit
// factors as they are summed; a CPU has them as products of float32.
static Tensor& addmm_(Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  check_factors("addmm_", mat1, 2, mat2, 2);
  const bool widens = self.scalar_type() == kFloat32 && mat1.is_floating_point() && mat1.element_size() == 2;
  if (widens && kernels::gemm.runs_on_cpu(self.device().type))
    return addmm_(self, as_dtype(mat1, kFloat32), as_dtype(mat2, kFloat32), beta, alpha);
  const DimVector sizes = {mat1.size(0), mat2.size(1)};
  const bool apart = !self.is_alias_of(mat1) && !self.is_alias_of(mat2) && !may_overlap(self.sizes(), self.strides());
  const bool fits = self.sizes() == IntArrayRef(sizes) && self.device() == mat1.device();
  if (!apart || !fits || !(widens || self.scalar_type() == mat1.scalar_type())) {
    return add_product_<ops::addmm>(self, mat1, mat2, beta, alpha);
  }
  kernels::gemm(self.device().type, batch_of_matrix(self), batch_of_matrix(mat1), batch_of_matrix(mat2), beta, alpha);
  return self;
}

}  // namespace native

void register_matmul_ops(Registry& r) {
  r.native(ops::mm, native::mm);
  r.native(ops::bmm, native::bmm);
  r.native(ops::mv, native::mv);
  r.native(ops::dot, native::dot);
  r.native(ops::addmm, native::addmm);
  r.native(ops::addmm_, native::addmm_);
  r.native(ops::addmv, native::addmv);
  r.native(ops::addmv_, native::add_product_<ops::addmv>);
  r.native(ops::baddbmm, native::baddbmm);
  r.native(ops::baddbmm_, native::add_product_<ops::baddbmm>);
}

Tensor Tensor::mm(const Tensor& mat2) const { return ops::mm(*this, mat2); }
Tensor Tensor::bmm(const Tensor& mat2) const { return ops::bmm(*this, mat2); }
Tensor Tensor::mv(const Tensor& vec) const { return ops::mv(*this, vec); }
Tensor Tensor::dot(const Tensor& tensor) const { return ops::dot(*this, tensor); }

#define RUSH_ADD_PRODUCT_METHODS(name)                                                                       \
  Tensor Tensor::name(const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) const {     \
    return ops::name(*this, a, b, beta, alpha);                                                              \
  }                                                                                                          \
  Tensor& Tensor::name##_(const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) const { \
    return ops::name##_(self(), a, b, beta, alpha);                                                          \
  }
RUSH_ADD_PRODUCT_METHODS(addmm)
RUSH_ADD_PRODUCT_METHODS(addmv)
RUSH_ADD_PRODUCT_METHODS(baddbmm)
RUSH_ADD_PRODUCT_METHODS(addbmm)
RUSH_ADD_PRODUCT_METHODS(addr)
#undef RUSH_ADD_PRODUCT_METHODS

}  // namespace rush
