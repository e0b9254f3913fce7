// What a sparse tensor points to: its indices and its values.
#pragma once
#include "core/tensor.h"

namespace rush {

// Note [Sparse tensors]
// A sparse tensor keeps what is not zero, and where it is, in dense tensors: its parts.
//
// COO, kSparse: `indices` (sparse_dim, nnz) of int64 has a column for each entry, and `values` (nnz, ...) its value.
// The last dense_dim dimensions of the tensor are those of `values` behind the first: an entry may be a whole slice, as
// a row of an embedding's gradient is. Entries may stand for the same place; they count as their sum. A tensor is
// coalesced when none do and they are in lexicographic order of their indices.
//
// CSR, kSparseCsr, of a matrix (n, m): `compressed` (n + 1) says where the entries of each row begin in `plain`
// (nnz), their columns in ascending order, and `values` (nnz). CSC, kSparseCsc, is the same of its columns: the CSR of
// the transposed matrix. In BSR and BSC an entry is a block, `values` is (nnz, block rows, block columns), and indices
// count blocks. Indices are int64 or int32.
//
// These tensors carry the key Sparse. Their fronts stand in core/ops/sparse*.cpp and work on the
// parts with dense operators where they can. The parts are outside of autograd, which follows the sparse tensor.

class SparseTensorImpl final : public TensorImpl {
 public:
  /// The parts fit together; the code that makes one has checked them. `versions` is the storage that counts writes: a
  /// new one, or that of a tensor that this is an alias of.
  SparseTensorImpl(IntArrayRef sizes, const Tensor& indices, const Tensor& values, bool coalesced,
                   Storage versions = nullptr);

  const Tensor& indices() const { return indices_; }
  const Tensor& values() const { return values_; }
  int64_t sparse_dim() const { return indices_.size(0); }
  int64_t dense_dim() const { return dim() - sparse_dim(); }
  int64_t nnz() const { return indices_.size(1); }
  bool is_coalesced() const { return coalesced_; }
  void set_coalesced(bool coalesced) { coalesced_ = coalesced; }
  /// Replaces the entries, not the sizes.
  void set_parts(const Tensor& indices, const Tensor& values, bool coalesced);
  void set_data_of(const TensorImpl& other) override;

 private:
  Tensor indices_, values_;
  bool coalesced_;
};

/// All compressed layouts.
class SparseCsrTensorImpl final : public TensorImpl {
 public:
  /// As above.
  SparseCsrTensorImpl(Layout layout, IntArrayRef sizes, const Tensor& compressed, const Tensor& plain,
                      const Tensor& values, Storage versions = nullptr);

  const Tensor& compressed_indices() const { return compressed_; }
  const Tensor& plain_indices() const { return plain_; }
  const Tensor& values() const { return values_; }
  int64_t nnz() const { return plain_.size(0); }
  void set_parts(const Tensor& compressed, const Tensor& plain, const Tensor& values);
  void set_data_of(const TensorImpl& other) override;

 private:
  Tensor compressed_, plain_, values_;
};

namespace detail {
// Another handle on the same parts that autograd does not follow.
Tensor sparse_alias(const Tensor& tensor);
}  // namespace detail

}  // namespace rush
