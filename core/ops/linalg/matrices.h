// What the fronts of linear algebra share: checks of their arguments, and batches of matrices as kernels take them.
#pragma once
#include <string>

#include "core/iterator/tensor_iterator.h"
#include "core/ops/factory/factories.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"

namespace rush::native {

inline void check_matrices(const char* op, const Tensor& a) {
  RUSH_CHECK_VALUE(a.dim() >= 2, op, ": expected matrices (..., n, m), got shape ", a.sizes());
  const ScalarType type = a.scalar_type();
  const bool fits = type == kFloat32 || type == kFloat64 || type == kComplex64 || type == kComplex128;
  RUSH_CHECK_TYPE(fits, op, ": expected float32, float64, complex64 or complex128, got ", type);
}

inline void check_square(const char* op, const Tensor& a) {
  check_matrices(op, a);
  RUSH_CHECK_VALUE(a.size(-1) == a.size(-2), op, ": expected square matrices, got shape ", a.sizes());
}

inline DimVector batch_of(const Tensor& a) { return a.sizes().slice(0, a.sizes().size() - 2); }

inline DimVector with(DimVector sizes, IntArrayRef more) {
  for (int64_t size : more) sizes.push_back(size);
  return sizes;
}

// Row-major, with one batch dimension.
inline Tensor as_batch(const Tensor& a) {
  const Tensor straight = contiguous(a);
  return detail::make_view(straight, {checked_numel(batch_of(a)), a.size(-2), a.size(-1)},
                           {a.size(-2) * a.size(-1), a.size(-1), 1}, straight.storage_offset());
}

inline Tensor broadcast_batch(const Tensor& a, const DimVector& batch) {
  return as_batch(expand_as_strided(a, with(batch, {a.size(-2), a.size(-1)})));
}

inline Tensor empty_like_matrices(const Tensor& a, DimVector sizes) {
  return detail::empty_contiguous(sizes, a.scalar_type(), a.device());
}

inline Tensor new_info(const Tensor& batched) {
  return detail::empty_contiguous(batched.size(0), kInt32, batched.device());
}

// Throws for the first matrix whose computation failed.
inline void check_info(const char* op, const Tensor& info, bool batched, const char* what) {
  if (info.is_meta()) return;
  const Tensor host = info.cpu();
  const int32_t* codes = host.data_ptr<int32_t>();
  for (int64_t i = 0; i < host.numel(); ++i) {
    RUSH_CHECK_LINALG(codes[i] == 0, op, ": ", batched ? str("matrix ", i, " of the batch") : std::string("the matrix"),
                      " ", what);
  }
}

// B as matrices: a vector, or a batch of as many vectors as there are matrices, gets one column, or one row.
inline bool is_vector(const Tensor& a, const Tensor& b) {
  return b.dim() == 1 || (b.dim() == a.dim() - 1 && b.sizes() == a.sizes().slice(0, a.sizes().size() - 1));
}

// What two factors of an equation must share.
inline void check_same_kind(const char* op, const Tensor& a, const Tensor& b) {
  RUSH_CHECK_TYPE(a.scalar_type() == b.scalar_type(), op, ": expected A and B to have the same dtype, but got ",
                  a.scalar_type(), " and ", b.scalar_type());
  RUSH_CHECK_VALUE(a.device() == b.device(), op, ": devices differ: ", a.device(), " and ", b.device());
}

}  // namespace rush::native
