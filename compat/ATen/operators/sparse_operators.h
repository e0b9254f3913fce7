// Sparse tensors in COO format: products that are sparse, and other sizes in place.
#pragma once
#include "ATen/operators/operator_names.h"

namespace rush {
inline namespace aten {

/// beta self + alpha mat1 mat2, for sparse self (m, n) and mat1 (m, k) and dense mat2 (k, n). The result is sparse and
/// not coalesced: it has the values of self, and whole rows where mat1 has values.
Tensor sspaddmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1,
                const Scalar& alpha = 1);
/// self mat2 as a sparse matrix, for sparse self and dense mat2.
Tensor smm(const Tensor& self, const Tensor& mat2);
/// mat1 mat2 with dense rows at the indices of mat1's rows that have values: one sparse dimension, one dense.
Tensor hspmm(const Tensor& mat1, const Tensor& mat2);

/// Gives a sparse tensor other sizes in place. One that has values keeps its numbers of dimensions and its dense sizes,
/// and gets no smaller. Throws ValueError otherwise.
const Tensor& sparse_resize_(const Tensor& self, IntArrayRef size, int64_t sparse_dim, int64_t dense_dim);
/// Likewise, to a tensor without values.
const Tensor& sparse_resize_and_clear_(const Tensor& self, IntArrayRef size, int64_t sparse_dim, int64_t dense_dim);
const Tensor& resize_as_sparse_(const Tensor& self, const Tensor& the_template);
Tensor sparse_resize(const Tensor& self, IntArrayRef size, int64_t sparse_dim, int64_t dense_dim);
Tensor sparse_resize_and_clear(const Tensor& self, IntArrayRef size, int64_t sparse_dim, int64_t dense_dim);
Tensor resize_as_sparse(const Tensor& self, const Tensor& the_template);

}  // namespace aten
}  // namespace rush
