// Sparse tensors: how they are made, their parts, and what only they can do. Note [Sparse tensors] says what they are.
// Operators that dense tensors have too, such as add and mm, are declared with their family.
#pragma once
#include "core/dispatch/op.h"
#include "core/ops/factory/factories.h"

namespace rush {

// The layouts, and what the indices of each are called.
#define RUSH_FORALL_COMPRESSED_LAYOUTS(X) X(csr, crow, col) X(csc, ccol, row) X(bsr, crow, col) X(bsc, ccol, row)

namespace ops {
using SparsePartOp = Op<Tensor(const Tensor&)>;
using SparseCountOp = Op<int64_t(const Tensor&)>;
using SparseCompressedOp = Op<Tensor(const Tensor&, const Tensor&, const Tensor&, RUSH_FACTORY_ARGS)>;
using SparseCompressedSizeOp = Op<Tensor(const Tensor&, const Tensor&, const Tensor&, IntArrayRef, RUSH_FACTORY_ARGS)>;
using ToSparseOp = Op<Tensor(const Tensor&, std::optional<int64_t>)>;
using ToSparseBlocksOp = Op<Tensor(const Tensor&, IntArrayRef, std::optional<int64_t>)>;
using SparseAddmmOp = Op<Tensor(const Tensor&, const Tensor&, const Tensor&, const Scalar&, const Scalar&)>;
using SparseSoftmaxOp = Op<Tensor(const Tensor&, int64_t, std::optional<ScalarType>)>;

// ---- making ----
inline constinit Op<Tensor(IntArrayRef, RUSH_FACTORY_ARGS)> sparse_coo_tensor_size{
    "aten::sparse_coo_tensor.size(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=False) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, RUSH_FACTORY_ARGS, std::optional<bool>)>
    sparse_coo_tensor_indices{"aten::sparse_coo_tensor.indices(Tensor indices, Tensor values, *, " RUSH_FACTORY_SCHEMA
                              ", bool? is_coalesced=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, IntArrayRef, RUSH_FACTORY_ARGS, std::optional<bool>)>
    sparse_coo_tensor{
        "aten::sparse_coo_tensor.indices_size(Tensor indices, Tensor values, int[] size, *, " RUSH_FACTORY_SCHEMA
        ", bool? is_coalesced=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, IntArrayRef, RUSH_FACTORY_ARGS, std::optional<bool>)>
    _sparse_coo_tensor_unsafe{
        "aten::_sparse_coo_tensor_unsafe(Tensor indices, Tensor values, SymInt[] size, *, " RUSH_FACTORY_SCHEMA
        ", bool? is_coalesced=None) -> Tensor"};
#define RUSH_COMPRESSED_SCHEMA(name, compressed, plain, size)                  \
  "aten::" name "(Tensor " compressed ", Tensor " plain ", Tensor values" size \
  ", *, ScalarType? dtype=None, "                                              \
  "Layout? layout=None, Device? device=None, bool? pin_memory=False) -> Tensor"
inline constinit SparseCompressedSizeOp sparse_compressed_tensor{RUSH_COMPRESSED_SCHEMA(
    "sparse_compressed_tensor.comp_plain_value_size", "compressed_indices", "plain_indices", ", SymInt[] size")};
inline constinit SparseCompressedOp sparse_compressed_tensor_parts{
    RUSH_COMPRESSED_SCHEMA("sparse_compressed_tensor.comp_plain_value", "compressed_indices", "plain_indices", "")};
#define RUSH_COMPRESSED_OPS(layout, compressed, plain)                                          \
  inline constinit SparseCompressedSizeOp sparse_##layout##_tensor{                             \
      RUSH_COMPRESSED_SCHEMA("sparse_" #layout "_tensor." #compressed "_" #plain "_value_size", \
                             #compressed "_indices", #plain "_indices", ", int[] size")};       \
  inline constinit SparseCompressedOp sparse_##layout##_tensor_parts{RUSH_COMPRESSED_SCHEMA(    \
      "sparse_" #layout "_tensor." #compressed "_" #plain "_value", #compressed "_indices", #plain "_indices", "")};
RUSH_FORALL_COMPRESSED_LAYOUTS(RUSH_COMPRESSED_OPS)
#undef RUSH_COMPRESSED_OPS
#undef RUSH_COMPRESSED_SCHEMA
inline constinit SparseCompressedSizeOp _sparse_compressed_tensor_unsafe{
    "aten::_sparse_compressed_tensor_unsafe(Tensor compressed_indices, Tensor plain_indices, Tensor values, SymInt[] "
    "size, *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};

// ---- parts ----
inline constinit SparseCountOp _nnz{"aten::_nnz(Tensor self) -> int"};
inline constinit SparseCountOp sparse_dim{"aten::sparse_dim(Tensor self) -> int"};
inline constinit SparseCountOp dense_dim{"aten::dense_dim(Tensor self) -> int"};
inline constinit Op<bool(const Tensor&)> is_coalesced{"aten::is_coalesced(Tensor self) -> bool"};
inline constinit SparsePartOp indices{"aten::indices(Tensor(a) self) -> Tensor(a)"};
inline constinit SparsePartOp values{"aten::values(Tensor(a) self) -> Tensor(a)"};
inline constinit SparsePartOp _indices{"aten::_indices(Tensor(a) self) -> Tensor(a)"};
inline constinit SparsePartOp _values{"aten::_values(Tensor(a) self) -> Tensor(a)"};
inline constinit SparsePartOp crow_indices{"aten::crow_indices(Tensor(a) self) -> Tensor(a)"};
inline constinit SparsePartOp col_indices{"aten::col_indices(Tensor(a) self) -> Tensor(a)"};
inline constinit SparsePartOp ccol_indices{"aten::ccol_indices(Tensor(a) self) -> Tensor(a)"};
inline constinit SparsePartOp row_indices{"aten::row_indices(Tensor(a) self) -> Tensor(a)"};
inline constinit SparsePartOp coalesce{"aten::coalesce(Tensor(a) self) -> Tensor(a)"};
inline constinit SparsePartOp _coalesce{"aten::_coalesce(Tensor self) -> Tensor"};
inline constinit Op<Tensor&(Tensor&, bool)> _coalesced_{
    "aten::_coalesced_(Tensor(a!) self, bool coalesced) -> Tensor(a!)"};

// ---- conversions ----
inline constinit Op<Tensor(const Tensor&, std::optional<ScalarType>, std::optional<bool>)> to_dense{
    "aten::to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, std::optional<ScalarType>, std::optional<bool>)> _to_dense{
    "aten::_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t)> to_sparse_sparse_dim{
    "aten::to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t)> _to_sparse_sparse_dim{
    "aten::_to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, std::optional<Layout>, OptionalIntArrayRef, std::optional<int64_t>)>
    to_sparse{
        "aten::to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, std::optional<Layout>, OptionalIntArrayRef, std::optional<int64_t>)>
    _to_sparse{
        "aten::_to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor"};
inline constinit ToSparseOp to_sparse_csr{"aten::to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor"};
inline constinit ToSparseOp to_sparse_csc{"aten::to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor"};
inline constinit ToSparseBlocksOp to_sparse_bsr{
    "aten::to_sparse_bsr(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor"};
inline constinit ToSparseBlocksOp to_sparse_bsc{
    "aten::to_sparse_bsc(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&)> sparse_mask{
    "aten::sparse_mask(Tensor self, Tensor mask) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t, bool)> _convert_indices_from_coo_to_csr{
    "aten::_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, bool, bool)> _convert_indices_from_csr_to_coo{
    "aten::_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *, bool out_int32=False, bool "
    "transpose=False) -> Tensor"};

// ---- arithmetic ----
inline constinit Op<Tensor(const Tensor&, const Tensor&)> _sparse_mm{
    "aten::_sparse_mm(Tensor sparse, Tensor dense) -> Tensor"};
inline constinit SparseAddmmOp _sparse_addmm{
    "aten::_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"};
inline constinit SparseAddmmOp sparse_sampled_addmm{
    "aten::sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"};
inline constinit Op<Tensor(const Tensor&)> _sparse_sum{"aten::_sparse_sum(Tensor self) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, ScalarType)> _sparse_sum_dtype{
    "aten::_sparse_sum.dtype(Tensor self, *, ScalarType dtype) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef)> _sparse_sum_dim{
    "aten::_sparse_sum.dim(Tensor self, int[1] dim) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef, ScalarType)> _sparse_sum_dim_dtype{
    "aten::_sparse_sum.dim_dtype(Tensor self, int[1] dim, *, ScalarType dtype) -> Tensor"};
inline constinit SparseSoftmaxOp _sparse_softmax_int{
    "aten::_sparse_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"};
inline constinit SparseSoftmaxOp _sparse_log_softmax_int{
    "aten::_sparse_log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"};
}  // namespace ops

/// A COO tensor with entry values[i] at indices[:, i]. `indices` (sparse_dim, nnz) is of an integer dtype, `values`
/// (nnz) or (nnz, ...). Without `size`, the smallest that holds all entries. `is_coalesced` says that they are;
/// otherwise the tensor counts as not coalesced. Throws ValueError on parts that do not fit each other or the size, or
/// are not coalesced though they should be, IndexError on an index outside the size, TypeError on indices that are not
/// integers. https://pytorch.org/docs/stable/generated/torch.sparse_coo_tensor.html
Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, IntArrayRef size,
                         const TensorOptions& options = {}, std::optional<bool> is_coalesced = std::nullopt);
Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, const TensorOptions& options = {},
                         std::optional<bool> is_coalesced = std::nullopt);
/// One without entries.
Tensor sparse_coo_tensor(IntArrayRef size, const TensorOptions& options);
/// As above, without the checks, which read the indices: for parts that are known to be right.
Tensor _sparse_coo_tensor_unsafe(const Tensor& indices, const Tensor& values, IntArrayRef size,
                                 const TensorOptions& options = {}, std::optional<bool> is_coalesced = std::nullopt);

/// Matrices in a compressed layout: that of the options, or the one in the name. `values` is (nnz), in the blocked
/// layouts (nnz, block rows, block columns). Indices are int32 or int64. Without `size`, the smallest. Throw as above,
/// and ValueError unless the compressed indices begin with 0, end with nnz and never fall, and the plain ones ascend in
/// each row, or column.
/// https://pytorch.org/docs/stable/generated/torch.sparse_compressed_tensor.html
Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices, const Tensor& values,
                                IntArrayRef size, const TensorOptions& options);
Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices, const Tensor& values,
                                const TensorOptions& options);
#define RUSH_COMPRESSED_TENSOR(layout, compressed, plain)                                                     \
  Tensor sparse_##layout##_tensor(const Tensor& compressed##_indices, const Tensor& plain##_indices,          \
                                  const Tensor& values, IntArrayRef size, const TensorOptions& options = {}); \
  Tensor sparse_##layout##_tensor(const Tensor& compressed##_indices, const Tensor& plain##_indices,          \
                                  const Tensor& values, const TensorOptions& options = {});
RUSH_FORALL_COMPRESSED_LAYOUTS(RUSH_COMPRESSED_TENSOR)
#undef RUSH_COMPRESSED_TENSOR
/// As above, without the checks.
Tensor _sparse_compressed_tensor_unsafe(const Tensor& compressed_indices, const Tensor& plain_indices,
                                        const Tensor& values, IntArrayRef size, const TensorOptions& options);

/// With the entries of one place added up and in lexicographic order. The sums do not depend on the number of threads.
inline Tensor coalesce(const Tensor& self) { return ops::coalesce(self); }

/// The dense tensor; with a `dtype`, converted to it. The gradient of a sparse tensor has its entries only, unless
/// `masked_grad` is false.
inline Tensor to_dense(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt,
                       std::optional<bool> masked_grad = std::nullopt) {
  return ops::to_dense(self, dtype, masked_grad);
}
/// In a sparse layout: a dense tensor's elements that are not zero (blocks with one), or a sparse one's entries.
inline Tensor to_sparse(const Tensor& self, std::optional<Layout> layout = std::nullopt,
                        OptionalIntArrayRef blocksize = std::nullopt, std::optional<int64_t> dense_dim = std::nullopt) {
  return ops::to_sparse(self, layout, blocksize, dense_dim);
}
/// What `self`, dense or sparse, has at the entries of `mask`, a sparse tensor of its sizes, in the mask's layout.
/// Throws ValueError for a dense mask or other sizes.
inline Tensor sparse_mask(const Tensor& self, const Tensor& mask) { return ops::sparse_mask(self, mask); }

/// `sparse` times `dense`, of which one or both are sparse matrices: dense, or sparse where both are. The gradient of a
/// sparse operand has its entries only. Throws ValueError on shapes that do not fit.
inline Tensor _sparse_mm(const Tensor& sparse, const Tensor& dense) { return ops::_sparse_mm(sparse, dense); }
/// beta self + alpha mat1 mat2, for a sparse mat1.
inline Tensor _sparse_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1,
                            const Scalar& alpha = 1) {
  return ops::_sparse_addmm(self, mat1, mat2, beta, alpha);
}
/// beta self + alpha mat1 mat2 at the entries of `self`, a sparse matrix in CSR; the operands are dense. Nothing else
/// of the product is computed. https://pytorch.org/docs/stable/generated/torch.sparse.sampled_addmm.html
inline Tensor sparse_sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1,
                                   const Scalar& alpha = 1) {
  return ops::sparse_sampled_addmm(self, mat1, mat2, beta, alpha);
}
/// The sum of all elements, dense; or over dimensions: sparse, or dense where no sparse dimension is left.
inline Tensor _sparse_sum(const Tensor& self) { return ops::_sparse_sum(self); }
inline Tensor _sparse_sum(const Tensor& self, ScalarType dtype) { return ops::_sparse_sum_dtype(self, dtype); }
inline Tensor _sparse_sum(const Tensor& self, IntArrayRef dim) { return ops::_sparse_sum_dim(self, dim); }
inline Tensor _sparse_sum(const Tensor& self, IntArrayRef dim, ScalarType dtype) {
  return ops::_sparse_sum_dim_dtype(self, dim, dtype);
}
/// softmax over the entries along `dim` of a COO tensor: what is not an entry counts as minus infinity.
inline Tensor _sparse_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt) {
  return ops::_sparse_softmax_int(self, dim, dtype);
}
inline Tensor _sparse_log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt) {
  return ops::_sparse_log_softmax_int(self, dim, dtype);
}

namespace sparse {
/// Python's names, in torch.sparse, of _sparse_mm and so on above.
inline Tensor mm(const Tensor& self, const Tensor& mat2) { return rush::_sparse_mm(self, mat2); }
inline Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1,
                    const Scalar& alpha = 1) {
  return rush::_sparse_addmm(self, mat1, mat2, beta, alpha);
}
inline Tensor sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1,
                            const Scalar& alpha = 1) {
  return rush::sparse_sampled_addmm(self, mat1, mat2, beta, alpha);
}
inline Tensor sum(const Tensor& self) { return rush::_sparse_sum(self); }
inline Tensor sum(const Tensor& self, IntArrayRef dim) { return rush::_sparse_sum(self, dim); }
inline Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt) {
  return rush::_sparse_softmax(self, dim, dtype);
}
inline Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype = std::nullopt) {
  return rush::_sparse_log_softmax(self, dim, dtype);
}
}  // namespace sparse

}  // namespace rush
