#include "core/ops/index/embedding.h"

#include "core/ops/basic.h"
#include "core/ops/index/embedding_indices.h"
#include "core/ops/index/index.h"
#include "core/ops/register.h"
#include "core/ops/sparse/sparse.h"

namespace rush {

namespace native {

Tensor embedding_indices(const Tensor& indices, const char* name, Device device, const char* op) {
  RUSH_CHECK_TYPE(is_integral(indices.scalar_type(), false) && has_arithmetic(indices.scalar_type()), op,
                  ": Expected tensor for argument #1 '", name,
                  "' to have one of the following scalar types: Long, Int; but got ",
                  traits_of(indices.scalar_type()).enumerator, " instead");
  return index_as_int64(indices, device, op);
}

namespace {

// Where the rows at `indices` begin in a table of `rows` rows.
Tensor row_offsets(const Tensor& indices, int64_t rows, int64_t stride, Device device, const char* op) {
  return offsets_of(embedding_indices(indices, "indices", device, op), {op, 0, rows, stride, false});
}

Tensor row_view(const Tensor& table) {
  return detail::make_view(table, table.size(1), table.stride(1), table.storage_offset());
}

Tensor embedding(const Tensor& weight, const Tensor& indices, int64_t /*padding_idx*/, bool /*scale_grad_by_freq*/,
                 bool /*sparse*/) {
  RUSH_CHECK_VALUE(weight.dim() == 2, "embedding: expected a table of two dimensions, got shape ", weight.sizes());
  const Tensor offsets = row_offsets(indices, weight.size(0), weight.stride(0), weight.device(), "embedding");
  DimVector sizes(indices.sizes());
  sizes.push_back(weight.size(1));
  const Tensor out = detail::empty_contiguous(sizes, weight.scalar_type(), weight.device());
  kernels::index_gather(weight.device().type, out, row_view(weight), offsets, 0);
  return out;
}

// How often each row of a table of `rows` rows is looked up: (rows, 1).
Tensor count_rows(const Tensor& indices, int64_t rows, Device device) {
  const TensorOptions options = TensorOptions(kInt64).device(device);
  const Tensor counts = zeros({rows, 1}, options);
  const Tensor offsets = row_offsets(indices, rows, 1, device, "embedding");
  kernels::index_scatter(device.type, row_view(counts), offsets, ones({}, options), 0, IndexWrite::Add, Tensor());
  return counts;
}

Tensor embedding_dense_backward(const Tensor& grad_output, const Tensor& indices, int64_t num_weights,
                                int64_t padding_idx, bool scale_grad_by_freq) {
  constexpr const char* op = "embedding_dense_backward";
  RUSH_CHECK_VALUE(grad_output.dim() == indices.dim() + 1 &&
                       IntArrayRef(indices.sizes()) == grad_output.sizes().slice(0, indices.sizes().size()),
                   op, ": a gradient of shape ", grad_output.sizes(), " does not fit indices of shape ",
                   indices.sizes());
  const DeviceType device = grad_output.device().type;
  const int64_t columns = grad_output.sizes().back();
  const Tensor grad = zeros({num_weights, columns}, grad_output.options());
  const Tensor offsets = row_offsets(indices, num_weights, columns, grad.device(), op);
  kernels::index_scatter(device, row_view(grad), offsets, contiguous(grad_output), 0, IndexWrite::Add, Tensor());
  if (padding_idx >= 0 && padding_idx < num_weights) {
    detail::make_view(grad, columns, 1, padding_idx * columns).zero_();
  }
  if (scale_grad_by_freq) {
    const Tensor inputs[] = {grad, count_rows(indices, num_weights, grad.device())};
    auto it = TensorIterator::pointwise(op, grad, inputs, Promotion::None, grad.scalar_type());
    kernels::scatter_mean(device, it);
  }
  return grad;
}

// Made of operators that have derivatives.
Tensor embedding_sparse_backward(const Tensor& grad, const Tensor& indices, int64_t num_weights, int64_t padding_idx,
                                 bool scale_grad_by_freq) {
  constexpr const char* op = "embedding_sparse_backward";
  RUSH_CHECK_VALUE(
      grad.dim() == indices.dim() + 1 && IntArrayRef(indices.sizes()) == grad.sizes().slice(0, indices.sizes().size()),
      op, ": a gradient of shape ", grad.sizes(), " does not fit indices of shape ", indices.sizes());
  RUSH_CHECK_NOT_IMPLEMENTED(!scale_grad_by_freq, op, ": not implemented with scale_grad_by_freq");
  Tensor rows = indices.reshape(-1).to(kInt64), values = grad.reshape({rows.numel(), grad.sizes().back()});
  if (padding_idx >= 0) {
    const Tensor kept = ops::nonzero(rows.ne(padding_idx)).select(1, 0);
    rows = ops::index_select(rows, 0, kept);
    values = ops::index_select(values, 0, kept);
  }
  return rush::_sparse_coo_tensor_unsafe(rows.unsqueeze(0), values, {num_weights, values.size(1)});
}

}  // namespace

}  // namespace native

void register_embedding_ops(Registry& r) {
  r.native(ops::embedding, native::embedding);
  r.native(ops::embedding_dense_backward, native::embedding_dense_backward);
  r.composite(ops::embedding_sparse_backward, native::embedding_sparse_backward);
}

}  // namespace rush
