#include "core/ops/attention.h"

#include <cmath>
#include <limits>

#include "core/dispatch/registry.h"
#include "core/ops/binary.h"
#include "core/ops/compare.h"
#include "core/ops/dropout.h"
#include "core/ops/factories.h"
#include "core/ops/masked.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"
#include "core/ops/register.h"
#include "core/ops/softmax.h"
#include "core/ops/triangular.h"
#include "core/ops/view.h"

namespace rush {

namespace native {

Tensor attention_weights(const Tensor& query, const Tensor& key, const std::optional<Tensor>& mask, bool is_causal,
                         double scale) {
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  Tensor scores = (query * scale).matmul(key.transpose(-2, -1));  // (..., L, S)
  if (is_causal) {
    const Tensor later = ones({query.size(-2), key.size(-2)}, TensorOptions(kBool).device(query.device())).triu(1);
    return scores.masked_fill(later, hidden).softmax(-1);
  }
  if (!mask) return scores.softmax(-1);
  scores = mask->scalar_type() == kBool ? scores.masked_fill(mask->logical_not(), hidden) : scores + *mask;
  // Rows whose every score is -inf have no softmax: they are made 0 before it, and their weights after.
  const Tensor empty = scores.eq(hidden).all(-1, true);
  return scores.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0);
}

namespace {

constexpr const char* kOp = "scaled_dot_product_attention";

void check_attention(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                     double dropout_p, bool is_causal) {
  RUSH_CHECK_VALUE(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2, kOp,
                   ": expected at least 2 dimensions, got shapes ", query.sizes(), ", ", key.sizes(), " and ",
                   value.sizes());
  RUSH_CHECK_TYPE(query.scalar_type() == key.scalar_type() && query.scalar_type() == value.scalar_type(), kOp,
                  ": dtypes differ: ", query.scalar_type(), ", ", key.scalar_type(), " and ", value.scalar_type());
  RUSH_CHECK_VALUE(query.size(-1) == key.size(-1), kOp, ": queries of ", query.size(-1), " numbers do not fit keys of ",
                   key.size(-1), ", shapes ", query.sizes(), " and ", key.sizes());
  RUSH_CHECK_VALUE(key.size(-2) == value.size(-2), kOp, ": ", key.size(-2), " keys do not fit ", value.size(-2),
                   " values, shapes ", key.sizes(), " and ", value.sizes());
  RUSH_CHECK_VALUE(!(mask && is_causal), kOp, ": is_causal makes its own mask, so attn_mask must be left out");
  RUSH_CHECK_TYPE(!mask || mask->scalar_type() == kBool || mask->scalar_type() == query.scalar_type(), kOp,
                  ": attn_mask must be bool or ", query.scalar_type(), ", as the query is, got ",
                  mask ? mask->scalar_type() : kBool);
  RUSH_CHECK_VALUE(dropout_p >= 0 && dropout_p < 1, kOp, ": dropout_p must be in [0, 1), got ", dropout_p);
}

// Heads h of (..., h, S, E) repeated so that there are `heads`: (..., heads, S, E), neighbours sharing one.
Tensor share_heads(const Tensor& t, int64_t heads) {
  const int64_t own = t.size(-3);
  if (own == heads) return t;
  RUSH_CHECK_VALUE(own > 0 && heads % own == 0, kOp, ": ", heads, " query heads cannot share ", own, " heads");
  DimVector sizes(t.sizes());
  sizes.insert(sizes.end() - 2, heads / own);
  DimVector joined(t.sizes());
  joined[joined.size() - 3] = heads;
  return t.unsqueeze(-3).expand(sizes).reshape(joined);
}

Tensor attention_by_parts(const Tensor& query, const Tensor& key, const Tensor& value,
                          const std::optional<Tensor>& mask, double dropout_p, bool is_causal, double scale) {
  Tensor weights = attention_weights(query, key, mask, is_causal, scale);
  if (dropout_p > 0) weights = ops::dropout(weights, dropout_p, true);
  return weights.matmul(value);
}

// Whether the fused operator computes this: no dropout, no gradient by the mask.
bool fuses(const Tensor& query, const std::optional<Tensor>& mask, double dropout_p) {
  return query.is_floating_point() && dropout_p == 0 && !(mask && mask->requires_grad());
}

// What comes before the last two dimensions.
IntArrayRef leading(const Tensor& t) {
  return t.sizes().slice(0, t.sizes().size() - std::min<size_t>(2, t.sizes().size()));
}

DimVector with_matrix(IntArrayRef leading, int64_t rows, int64_t columns) {
  DimVector sizes(leading);
  sizes.push_back(rows);
  sizes.push_back(columns);
  return sizes;
}

// The fused operator takes (B, H, ...); other leading dimensions are broadcast and become a batch of single heads.
Tensor attention_fused(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                       bool is_causal, double scale) {
  const auto& fused = ops::_scaled_dot_product_flash_attention_for_cpu;
  DimVector batch = broadcast_shapes(broadcast_shapes(leading(query), leading(key), kOp), leading(value), kOp);
  if (mask) batch = broadcast_shapes(batch, leading(*mask), kOp);
  const auto is_whole = [&](const Tensor& t) { return leading(t) == IntArrayRef(batch); };
  if (batch.size() == 2 && is_whole(query) && is_whole(key) && is_whole(value)) {
    return std::get<0>(fused(query, key, value, 0.0, is_causal, mask, scale));
  }
  const int64_t count = checked_numel(batch);
  const auto as_heads = [&](const Tensor& t, int64_t rows, int64_t columns) {
    return t.expand(with_matrix(batch, rows, columns)).reshape({count, 1, rows, columns});
  };
  const int64_t queries = query.size(-2), keys = key.size(-2), width = query.size(-1), out_width = value.size(-1);
  const Tensor out =
      std::get<0>(fused(as_heads(query, queries, width), as_heads(key, keys, width), as_heads(value, keys, out_width),
                        0.0, is_causal, mask ? std::optional(as_heads(*mask, queries, keys)) : std::nullopt, scale));
  return out.reshape(with_matrix(batch, queries, out_width));
}

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                 double dropout_p, bool is_causal, std::optional<double> scale, bool enable_gqa) {
  check_attention(query, key, value, mask, dropout_p, is_causal);
  const int64_t heads = enable_gqa ? query.size(-3) : 0;
  const Tensor k = enable_gqa ? share_heads(key, heads) : key, v = enable_gqa ? share_heads(value, heads) : value;
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  if (fuses(query, mask, dropout_p)) return attention_fused(query, k, v, mask, is_causal, factor);
  return attention_by_parts(query, k, v, mask, dropout_p, is_causal, factor);
}

// The mask as numbers to add, expanded to (B, H, L, S).
Tensor additive_mask(const Tensor& mask, const Tensor& query, const Tensor& key) {
  const DimVector sizes = {query.size(0), query.size(1), query.size(2), key.size(2)};
  RUSH_CHECK_VALUE(broadcast_shapes(mask.sizes(), sizes, kOp) == sizes, kOp, ": a mask of shape ", mask.sizes(),
                   " does not expand to ", sizes);
  Tensor numbers = mask;
  if (mask.scalar_type() == kBool) {
    constexpr double hidden = -std::numeric_limits<double>::infinity();
    numbers = zeros(mask.sizes(), query.options()).masked_fill(mask.logical_not(), hidden);
  }
  return expand_as_strided(numbers, sizes);
}

void check_fused(const char* op, const Tensor& query, const Tensor& key, const Tensor& value, double dropout_p) {
  RUSH_CHECK_VALUE(query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && query.size(0) == key.size(0) &&
                       query.size(0) == value.size(0) && query.size(1) == key.size(1) && query.size(1) == value.size(1),
                   op, ": expected (B, H, L, E), (B, H, S, E) and (B, H, S, V), got shapes ", query.sizes(), ", ",
                   key.sizes(), " and ", value.sizes());
  RUSH_CHECK_NOT_IMPLEMENTED(dropout_p == 0, op, ": dropout is not implemented");
}

// (B, H, L, V) that lies in memory as (B, L, H, V): the heads of a position side by side, as they are joined next.
Tensor heads_inside(const Tensor& like, int64_t length, int64_t width) {
  const int64_t heads = like.size(1);
  return detail::empty_strided({like.size(0), heads, length, width}, {length * heads * width, width, heads * width, 1},
                               like.scalar_type(), like.device());
}

std::tuple<Tensor, Tensor> fused_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                           double dropout_p, bool is_causal, const std::optional<Tensor>& mask,
                                           std::optional<double> scale) {
  check_attention(query, key, value, mask, dropout_p, is_causal);
  check_fused(kOp, query, key, value, dropout_p);
  const ScalarType sum_type = query.scalar_type() == kFloat64 ? kFloat64 : kFloat32;
  const Tensor out = heads_inside(query, query.size(2), value.size(3));
  const Tensor logsumexp =
      detail::empty_contiguous({query.size(0), query.size(1), query.size(2)}, sum_type, query.device());
  const Tensor added = mask ? additive_mask(*mask, query, key) : Tensor();
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  kernels::attention(query.device().type, out, logsumexp, query, key, value, added, is_causal, factor);
  return {out, logsumexp};
}

std::tuple<Tensor, Tensor, Tensor> fused_attention_backward(const Tensor& grad, const Tensor& query, const Tensor& key,
                                                            const Tensor& value, const Tensor& out,
                                                            const Tensor& logsumexp, double dropout_p, bool is_causal,
                                                            const std::optional<Tensor>& mask,
                                                            std::optional<double> scale) {
  check_attention(query, key, value, mask, dropout_p, is_causal);
  check_fused(kOp, query, key, value, dropout_p);
  RUSH_CHECK_VALUE(grad.sizes() == out.sizes(), kOp, ": the gradient has shape ", grad.sizes(), ", the output ",
                   out.sizes());
  const Tensor grad_query = heads_inside(query, query.size(2), query.size(3));
  const Tensor grad_key = heads_inside(key, key.size(2), key.size(3));
  const Tensor grad_value = heads_inside(value, value.size(2), value.size(3));
  const Tensor added = mask ? additive_mask(*mask, query, key) : Tensor();
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  kernels::attention_backward(query.device().type, {grad_query, grad_key, grad_value}, grad, query, key, value, out,
                              logsumexp, added, is_causal, factor);
  return {grad_query, grad_key, grad_value};
}

}  // namespace
}  // namespace native

void register_attention_ops(Registry& r) {
  r.composite(ops::scaled_dot_product_attention, native::attention);
  r.native(ops::_scaled_dot_product_flash_attention_for_cpu, native::fused_attention);
  r.native(ops::_scaled_dot_product_flash_attention_for_cpu_backward, native::fused_attention_backward);
}

}  // namespace rush
