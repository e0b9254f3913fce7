#include <cmath>

#include "core/ops/basic.h"
#include "core/ops/linalg/linalg.h"
#include "core/ops/reduce/vector_norm.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

namespace {

void check_matrix_norm(const Tensor& self, const DimVector& dims, IntArrayRef dim) {
  RUSH_CHECK_VALUE(dims.size() == 2 && dims[0] != dims[1],
                   "linalg_matrix_norm: expected two different dimensions, got ", dim);
  RUSH_CHECK_TYPE(is_differentiable(self.scalar_type()), "linalg_matrix_norm: expected floating point or complex, got ",
                  self.scalar_type());
}

Tensor converted(const Tensor& self, std::optional<ScalarType> dtype) { return dtype ? self.to(*dtype) : self; }

// The singular values of the matrices in `dims`, in a new last dimension.
Tensor singular_values(const Tensor& self, const DimVector& dims) {
  return ops::linalg_svdvals(self.movedim(IntArrayRef(dims), {-2, -1}), std::nullopt);
}

// With the dimensions `dims` back as ones.
Tensor restore(const Tensor& norm, const Tensor& self, const DimVector& dims, bool keepdim) {
  if (!keepdim) return norm;
  DimVector sizes(self.sizes());
  for (int64_t d : dims) sizes[d] = 1;
  return norm.reshape(sizes);
}

// The largest or smallest along `dim`; the largest of none is 0, which no norm falls below.
Tensor extreme(const Tensor& norms, int64_t dim, bool largest, bool keepdim) {
  if (!largest) return norms.amin(dim, keepdim);
  return norms.size(dim) == 0 ? norms.sum(dim, keepdim) : norms.amax(dim, keepdim);
}

Tensor linalg_matrix_norm(const Tensor& input, const Scalar& ord, IntArrayRef dim, bool keepdim,
                          std::optional<ScalarType> dtype) {
  const Tensor self = converted(input, dtype);
  const DimVector dims = wrap_dims(dim, self.dim(), "linalg_matrix_norm");
  check_matrix_norm(self, dims, dim);
  const double order = ord.toDouble(), size = std::abs(order);
  RUSH_CHECK_VALUE(size == 1 || size == 2 || std::isinf(size),
                   "linalg_matrix_norm: ord must be 1, 2 or inf, of either sign, got ", order);
  if (size == 2) {
    const Tensor values = singular_values(self, dims);
    return restore(extreme(values, -1, order > 0, false), self, dims, keepdim);
  }
  // Sums over the first dimension and the extreme over the second for columns, the other way round for rows.
  const int64_t summed = size == 1 ? dims[0] : dims[1], left = size == 1 ? dims[1] : dims[0];
  const Tensor sums = ops::linalg_vector_norm(self, 1, summed, true, std::nullopt);
  const Tensor norm = extreme(sums, left, order > 0, true);
  return keepdim ? norm : norm.squeeze(IntArrayRef(dims));
}

Tensor linalg_matrix_norm_by_name(const Tensor& input, std::string_view ord, IntArrayRef dim, bool keepdim,
                                  std::optional<ScalarType> dtype) {
  const Tensor self = converted(input, dtype);
  const DimVector dims = wrap_dims(dim, self.dim(), "linalg_matrix_norm");
  check_matrix_norm(self, dims, dim);
  if (ord == "fro") return ops::linalg_vector_norm(self, 2, IntArrayRef(dims), keepdim, std::nullopt);
  RUSH_CHECK_VALUE(ord == "nuc", "linalg_matrix_norm: ord must be 'fro' or 'nuc', got '", ord, "'");
  return restore(singular_values(self, dims).sum(-1), self, dims, keepdim);
}

Tensor linalg_norm(const Tensor& self, const std::optional<Scalar>& ord, OptionalIntArrayRef dim, bool keepdim,
                   std::optional<ScalarType> dtype) {
  if (!ord) return ops::linalg_vector_norm(self, 2, dim, keepdim, dtype);
  const int64_t dims = dim ? static_cast<int64_t>(dim->size()) : self.dim();
  RUSH_CHECK_VALUE(dims == 1 || dims == 2, "linalg_norm: with an ord, expected one dimension or two, got ", dims,
                   dim ? " in dim" : " of the tensor");
  if (dims == 1) return ops::linalg_vector_norm(self, *ord, dim, keepdim, dtype);
  const DimVector both = dim ? DimVector(*dim) : DimVector{-2, -1};
  return ops::linalg_matrix_norm(self, *ord, both, keepdim, dtype);
}

Tensor linalg_norm_by_name(const Tensor& self, std::string_view ord, OptionalIntArrayRef dim, bool keepdim,
                           std::optional<ScalarType> dtype) {
  RUSH_CHECK_VALUE(dim ? dim->size() == 2 : self.dim() == 2, "linalg_norm: ord '", ord,
                   "' needs matrices: two dimensions in dim, or a tensor of two");
  const DimVector dims = dim ? DimVector(*dim) : DimVector{-2, -1};
  return ops::linalg_matrix_norm_str_ord(self, ord, dims, keepdim, dtype);
}

}  // namespace
}  // namespace native

void register_matrix_norm_ops(Registry& r) {
  r.composite(ops::linalg_matrix_norm, native::linalg_matrix_norm);
  r.composite(ops::linalg_matrix_norm_str_ord, native::linalg_matrix_norm_by_name);
  r.composite(ops::linalg_norm, native::linalg_norm);
  r.composite(ops::linalg_norm_ord_str, native::linalg_norm_by_name);
}

}  // namespace rush
