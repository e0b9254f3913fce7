// Products that are made of other operators: matmul, inner, outer, tensordot, addbmm, addr, vdot.
#include <algorithm>

#include "core/iterator/output_checks.h"
#include "core/ops/basic.h"
#include "core/ops/linalg/factors.h"
#include "core/ops/linalg/matrices.h"
#include "core/ops/pointwise/sum_check.h"
#include "core/ops/register.h"
#include "core/print/bracketed.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

static Tensor vdot(const Tensor& self, const Tensor& other) { return self.conj().dot(other); }

static Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  RUSH_CHECK_VALUE(self.dim() == other.dim(), "linalg_cross: expected tensors of as many dimensions, got shapes ",
                   self.sizes(), " and ", other.sizes());
  RUSH_CHECK_VALUE(self.size(dim) == 3 && other.size(dim) == 3, "linalg_cross: dimension ", dim,
                   " must have size 3 in both, got shapes ", self.sizes(), " and ", other.sizes());
  RUSH_CHECK_VALUE(self.device() == other.device(), "linalg_cross: expected tensors on one device, got ", self.device(),
                   " and ", other.device());
  const DimVector sizes = broadcast_shapes(self.sizes(), other.sizes(), "linalg_cross");
  const ScalarType dtype = result_type({self, other});
  const Tensor out = detail::empty_contiguous(sizes, dtype, self.device());
  const auto prepared = [&](const Tensor& x) { return x.to(dtype).expand(sizes).contiguous(); };
  if (out.numel() > 0) {
    const AlongDim shape(sizes, wrap_dim(dim, out.dim(), "linalg_cross"));
    kernels::cross(out.device().type, out, prepared(self), prepared(other), shape);
  }
  return out;
}

static Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  if (!dim) {
    const IntArrayRef sizes = self.sizes();
    const auto first = std::find(sizes.begin(), sizes.end(), int64_t{3});
    RUSH_CHECK_VALUE(first != sizes.end(), "cross: no dimension of size 3 in shape ", sizes);
    dim = first - sizes.begin();
  }
  return ops::linalg_cross(self, other, *dim);
}

static void check_vectors(const char* op, const Tensor& a, const Tensor& b) {
  RUSH_CHECK_VALUE(a.dim() == 1 && b.dim() == 1, op, ": expected two vectors, got shapes ", a.sizes(), " and ",
                   b.sizes());
}

static Tensor outer(const Tensor& self, const Tensor& vec2) {
  check_vectors("outer", self, vec2);
  return self.unsqueeze(1).mul(vec2);
}

// The number converted to the result's dtype: a bool is true or false, an integer has no fraction, a 16-bit number few
// digits.
static Scalar scalar_of(const Scalar& scalar, ScalarType dtype) {
  if (dtype == kBool) return Scalar(scalar.toBool());
  if (dtype == kBFloat16) return Scalar(static_cast<float>(scalar.to<BFloat16>()));
  if (dtype == kFloat16) return Scalar(static_cast<float>(scalar.to<Half>()));
  return is_integral(dtype, false) ? Scalar(scalar.toLong()) : scalar;
}

static Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
                   const Scalar& alpha) {
  check_vectors("addr", vec1, vec2);
  const DimVector sizes = {vec1.size(0), vec2.size(0)};
  check_expands("addr", self.sizes(), sizes);
  const ScalarType dtype = result_type({self, vec1, vec2});
  check_factor("addr", "beta", dtype, beta);
  check_factor("addr", "alpha", dtype, alpha);
  const Scalar scale = scalar_of(alpha, dtype), keep = scalar_of(beta, dtype);
  // Of 16 bits the product is rounded before it is added, as PyTorch rounds it.
  if (keep.equal(1) && !is_integral(dtype, true) && element_size(dtype) > 2)
    return self.addcmul(vec1.unsqueeze(1), vec2, scale);
  const Tensor product = vec1.mul(scale).unsqueeze(1).mul(vec2);
  if (!keep.equal(0)) return self.mul(keep).add(product).to(dtype);  // a factor of bool times a number is int64
  if (!self.requires_grad()) return product.to(dtype);
  // Zeros even where self is NaN, that have a gradient all the same.
  return self.masked_fill(scalar_tensor(true, TensorOptions(kBool).device(self.device())), 0).add(product).to(dtype);
}

static Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
                     const Scalar& alpha) {
  check_factor_batches("addbmm", batch1, batch2);
  const int64_t rows = batch1.size(1), columns = batch2.size(2);
  if (batch1.size(0) == 0 || batch1.element_size() != 2) {
    const int64_t inner = multiply_sizes("addbmm", batch1.size(0), batch1.size(2));
    const Tensor left = batch1.transpose(0, 1).reshape({rows, inner});  // (B, M, K) -> (M, B*K)
    return ops::addmm(self, left, batch2.reshape({inner, columns}), beta, alpha);
  }
  // One product after the other: 16-bit sums are rounded between them, as PyTorch rounds them.
  Tensor sum = ops::addmm(self, batch1.select(0, 0), batch2.select(0, 0), beta, alpha);
  // On meta a batch may have more matrices than a loop can go through.
  constexpr int64_t kMostOnMeta = 65536;
  const int64_t batches = batch1.is_meta() ? std::min(batch1.size(0), kMostOnMeta) : batch1.size(0);
  for (int64_t b = 1; b < batches; ++b) {
    sum = ops::addmm(sum, batch1.select(0, b), batch2.select(0, b), 1, alpha);
  }
  return sum;
}

template <auto& op>
static Tensor& assign_(Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  return self.copy_(op(self, a, b, beta, alpha));
}

static Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return self.mul(other);
  RUSH_CHECK_VALUE(self.sizes().back() == other.sizes().back(), "inner: the last dimension must match on both input ",
                   "tensors but got shapes ", bracketed(self.sizes()), " and ", bracketed(other.sizes()));
  return ops::tensordot(self, other, -1, -1);
}

static int64_t product_of_sizes(const Tensor& t, IntArrayRef dims) {
  int64_t product = 1;
  for (int64_t d : dims) product = multiply_sizes("tensordot", product, t.sizes()[d]);
  return product;
}

static Tensor tensordot(const Tensor& self, const Tensor& other, IntArrayRef dims_self, IntArrayRef dims_other) {
  RUSH_CHECK_VALUE(dims_self.size() == dims_other.size(), "tensordot: got ", dims_self.size(),
                   " dimensions of self and ", dims_other.size(), " of other");
  const DimVector summed = wrap_dims(dims_self, self.dim(), "tensordot");
  const DimVector summed_other = wrap_dims(dims_other, other.dim(), "tensordot");
  Tensor a = self, b = other;
  for (size_t i = 0; i < summed.size(); ++i) {
    const int64_t size = self.sizes()[summed[i]], other_size = other.sizes()[summed_other[i]];
    RUSH_CHECK_VALUE(size == other_size || size == 1 || other_size == 1, "tensordot: dimension ", dims_self[i],
                     " of self, ", self.sizes(), ", and dimension ", dims_other[i], " of other, ", other.sizes(),
                     ", differ in size");
    // A dimension of one meets every element of the other's: that one is summed alone.
    if (size == 1 && other_size != 1) b = b.sum(summed_other[i], true, b.scalar_type());
    if (other_size == 1 && size != 1) a = a.sum(summed[i], true, a.scalar_type());
  }
  const DimVector kept = other_dims(self, summed), kept_other = other_dims(other, summed_other);
  const int64_t rows = product_of_sizes(a, kept), columns = product_of_sizes(b, kept_other);
  const int64_t depth = product_of_sizes(a, summed);
  DimVector sizes;
  for (int64_t d : kept) sizes.push_back(self.sizes()[d]);
  for (int64_t d : kept_other) sizes.push_back(other.sizes()[d]);
  const Tensor matrix = a.permute(with(kept, summed)).reshape({rows, depth});
  const Tensor matrix_other = b.permute(with(summed_other, kept_other)).reshape({depth, columns});
  return matrix.mm(matrix_other).reshape(sizes);
}

// Note [When matmul folds]
// A batch (..., n, k) times one matrix (k, m) is one product of (... n, k) by (k, m), provided that the leading
// dimensions can be seen as one without a copy. It is also folded when the matrix requires a gradient: the gradient of
// a batched product would first hold a matrix for every element of the batch, only to be summed. A sparse matrix cannot
// be expanded, so it is always folded, also where it stands before the batch.
static bool folds(const Tensor& batch, const Tensor& matrix) {
  if (matrix.requires_grad() || batch.numel() == 0 || matrix.layout() != kStrided) return true;
  return view_strides(batch.sizes(), batch.strides(), {batch.numel() / batch.sizes().back(), batch.sizes().back()})
      .has_value();
}

static Tensor matmul_folded(const Tensor& batch, const Tensor& other) {
  DimVector sizes(batch.sizes());
  const int64_t depth = sizes.back();
  sizes.pop_back();
  const Tensor rows = batch.reshape({checked_numel(sizes), depth});
  if (other.dim() == 1) return rows.mv(other).view(sizes);
  sizes.push_back(other.size(1));
  return rows.mm(other).view(sizes);
}

static Tensor matmul_batched(const Tensor& self, const Tensor& other) {
  const Tensor a = self.dim() == 1 ? self.unsqueeze(0) : self;
  const Tensor b = other.dim() == 1 ? other.unsqueeze(1) : other;
  const DimVector batch = broadcast_shapes(batch_of(a), batch_of(b), "matmul");
  const int64_t count = checked_numel(batch);
  const auto as_batch = [&](const Tensor& t) {
    const int64_t rows = t.size(-2), columns = t.size(-1);
    return t.expand(with(batch, {rows, columns})).reshape({count, rows, columns});
  };
  DimVector sizes(batch);
  if (self.dim() > 1) sizes.push_back(a.size(-2));
  if (other.dim() > 1) sizes.push_back(b.size(-1));
  return as_batch(a).bmm(as_batch(b)).view(sizes);
}

static Tensor matmul(const Tensor& self, const Tensor& other) {
  RUSH_CHECK_VALUE(self.dim() >= 1 && other.dim() >= 1, "matmul: both arguments need to be at least 1D, but they are ",
                   self.dim(), "D and ", other.dim(), "D");
  check_factor_shapes("matmul", self, other);
  check_factor_dtypes("matmul", self, other);
  if (self.dim() <= 2 && other.dim() <= 2) {
    if (self.dim() == 2) return other.dim() == 2 ? self.mm(other) : self.mv(other);
    return other.dim() == 1 ? self.dot(other) : self.unsqueeze(0).mm(other).squeeze(0);
  }
  if (other.dim() <= 2 && folds(self, other)) return matmul_folded(self, other);
  if (self.dim() == 2 && self.layout() != kStrided) return matmul_folded(other.mT(), self.t()).mT();
  return matmul_batched(self, other);
}

}  // namespace native

void register_product_ops(Registry& r) {
  r.composite(ops::vdot, native::vdot);
  r.native(ops::linalg_cross, native::linalg_cross);
  r.composite(ops::cross, native::cross);
  r.composite(ops::outer, native::outer);
  r.composite(ops::ger, native::outer);
  r.composite(ops::addr, native::addr);
  r.composite(ops::addr_, native::assign_<ops::addr>);
  r.composite(ops::addbmm, native::addbmm);
  r.composite(ops::addbmm_, native::assign_<ops::addbmm>);
  r.composite(ops::inner, native::inner);
  r.composite(ops::tensordot, native::tensordot);
  r.composite(ops::matmul, native::matmul);
}

Tensor Tensor::cross(const Tensor& other, std::optional<int64_t> dim) const { return ops::cross(*this, other, dim); }
Tensor Tensor::vdot(const Tensor& other) const { return ops::vdot(*this, other); }
Tensor Tensor::outer(const Tensor& vec2) const { return ops::outer(*this, vec2); }
Tensor Tensor::ger(const Tensor& vec2) const { return ops::ger(*this, vec2); }
Tensor Tensor::inner(const Tensor& other) const { return ops::inner(*this, other); }
Tensor Tensor::matmul(const Tensor& other) const { return ops::matmul(*this, other); }

}  // namespace rush
