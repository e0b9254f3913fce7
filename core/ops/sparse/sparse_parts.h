// What the fronts of sparse operators share: the parts of a sparse tensor, and one made of parts.
#pragma once
#include "core/ops/sparse/sparse.h"
#include "core/ops/sparse/sparse_tensor_impl.h"

namespace rush {

namespace ops {
// The values that `self`, dense or sparse, has at the columns of `indices` (sparse_dim, nnz): (nnz, ...), 0 where a
// sparse one has no entry. The gradient is sparse where self is.
inline constinit Op<Tensor(const Tensor&, const Tensor&)> sparse_values_at{
    "rush::sparse_values_at(Tensor self, Tensor indices) -> Tensor"};
}  // namespace ops

// Below autograd: a tensor's own parts. The first throws ValueError naming the operator unless the layout is COO.
namespace native {
const SparseTensorImpl& coo_parts(const Tensor& tensor, const char* op);
const SparseCsrTensorImpl& compressed_parts(const Tensor& tensor);
inline bool is_dense(const Tensor& tensor) { return tensor.layout() == kStrided; }

Tensor make_coo(IntArrayRef sizes, const Tensor& indices, const Tensor& values, bool coalesced);
Tensor make_compressed(Layout layout, IntArrayRef sizes, const Tensor& compressed, const Tensor& plain,
                       const Tensor& values);
// One of this layout without entries; `blocks` are the sizes of a block.
Tensor make_empty_sparse(Layout layout, IntArrayRef sizes, int64_t sparse_dim, ScalarType dtype, Device device,
                         IntArrayRef blocks = {1, 1});
// A tensor of the same layout and entries with other values, of any dtype.
Tensor with_values(const Tensor& tensor, const Tensor& values);
// Makes `self` hold the entries of `other`, of its layout, sizes and dtype.
void replace_parts(const Tensor& self, const Tensor& other);
// The values, whatever the layout.
const Tensor& stored_values(const Tensor& tensor);

// For each column of `indices` (d, n) its place among all of `sizes`, of d dimensions, in row-major order: (n). They
// lie within the sizes.
Tensor places_of(const Tensor& indices, IntArrayRef sizes);
// `tensor`, dense and row-major, with its first `sparse_dim` dimensions as one.
Tensor with_places(const Tensor& tensor, int64_t sparse_dim);
// The columns (d, n) of places (n).
Tensor indices_of(const Tensor& places, IntArrayRef sizes);
// `tensor`, COO, coalesced: itself if it is.
Tensor coalesced(const Tensor& tensor);

// The size of a block, {1, 1} in layouts without.
DimVector block_sizes(const Tensor& tensor);
// Where each of `count` rows begins among `rows` (nnz), which ascend: (count + 1). And back: the row of each entry.
Tensor compress_rows(const Tensor& rows, int64_t count);
Tensor expand_rows(const Tensor& compressed, int64_t nnz);

// Any sparse tensor as COO, any sparse matrix as CSR, with the same elements: itself, or with parts that it shares,
// where it can be. Throws ValueError naming the operator for what is not a matrix without dense dimensions.
Tensor as_coo(const Tensor& tensor);
Tensor as_csr(const Tensor& matrix, const char* op);
// The CSC of a CSR's matrix, or the CSR of a CSC's: with the same elements, sorted the other way.
Tensor recompress(const Tensor& matrix);
// `tensor`, COO, in another layout, that of `like` with its blocks.
Tensor in_layout_of(const Tensor& tensor, const Tensor& like);
Tensor from_coo(const Tensor& tensor, Layout layout, IntArrayRef blocks, const char* op);

// sum of a sparse tensor, made of operators that have derivatives.
Tensor sum_sparse(const Tensor& self, std::optional<ScalarType> dtype);
Tensor sum_sparse_dim(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype);
// linear of a sparse input or weight, likewise.
Tensor linear_sparse(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias);
}  // namespace native

}  // namespace rush
