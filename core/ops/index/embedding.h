// Embeddings: rows of a table looked up by number.
#pragma once
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, const Tensor&, int64_t, bool, bool)> embedding{
    "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool "
    "sparse=False) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, int64_t, int64_t, bool)> embedding_dense_backward{
    "aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool "
    "scale_grad_by_freq) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, int64_t, int64_t, bool)> embedding_sparse_backward{
    "aten::embedding_sparse_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx, bool "
    "scale_grad_by_freq) -> Tensor"};
}  // namespace ops

/// The rows of `weight` (n, d) at `indices`: the indices' shape with d behind it. The row `padding_idx` gets no
/// gradient; with `scale_grad_by_freq` a row's gradient is divided by how often the row was looked up. With
/// `sparse` the table's gradient is a COO tensor of the rows that were looked up. Throws IndexError for an index
/// outside [0, n).
inline Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t padding_idx = -1,
                        bool scale_grad_by_freq = false, bool sparse = false) {
  return ops::embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse);
}
/// The gradient of embedding's table of `num_weights` rows: each row the sum of the gradients of its look-ups.
inline Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                                       int64_t padding_idx, bool scale_grad_by_freq) {
  return ops::embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq);
}
/// The same as a COO tensor with an entry for each look-up, not coalesced: no memory for the other rows. Throws
/// NotImplementedError with `scale_grad_by_freq`, as PyTorch does.
inline Tensor embedding_sparse_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights,
                                        int64_t padding_idx, bool scale_grad_by_freq) {
  return ops::embedding_sparse_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq);
}

}  // namespace rush
