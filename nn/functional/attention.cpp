#include "nn/functional/attention.h"

#include <cmath>
#include <limits>

#include "core/ops/basic.h"
#include "core/ops/nn/attention.h"
#include "core/ops/nn/dropout.h"
#include "core/ops/view/pad.h"
#include "nn/functional/linear.h"
#include "nn/functional/optional_tensor.h"

namespace rush::nn::functional {

namespace {

constexpr const char* kOp = "multi_head_attention_forward";
using Options = MultiheadAttentionForwardFuncOptions;

struct Heads {
  Tensor query, key, value;  // (N, heads, L or S, E / heads)
};

void check_inputs(const Tensor& query, const Tensor& key, const Tensor& value, const Options& o) {
  RUSH_CHECK_VALUE(query.dim() == 3 && key.dim() == 3 && value.dim() == 3, kOp,
                   ": expected queries, keys and values of 3 dimensions, or all of 2, got shapes ", query.sizes(), ", ",
                   key.sizes(), " and ", value.sizes());
  RUSH_CHECK_VALUE(query.size(2) == o.embed_dim_to_check(), kOp, ": expected queries of size ", o.embed_dim_to_check(),
                   ", got shape ", query.sizes());
  RUSH_CHECK_VALUE(o.num_heads() > 0 && query.size(2) % o.num_heads() == 0, kOp, ": ", query.size(2),
                   " numbers cannot be divided among ", o.num_heads(), " heads");
  RUSH_CHECK_VALUE(key.size(0) == value.size(0) && key.size(1) == value.size(1) && key.size(1) == query.size(1), kOp,
                   ": expected as many keys as values, and one batch, got shapes ", query.sizes(), ", ", key.sizes(),
                   " and ", value.sizes());
}

// The mask as numbers to add, of the shape that the caller wants.
Tensor additive(const char* name, const Tensor& mask, const Tensor& query, IntArrayRef sizes) {
  RUSH_CHECK_VALUE(mask.sizes() == sizes, kOp, ": expected ", name, " of shape ", sizes, ", got ", mask.sizes());
  RUSH_CHECK_TYPE(mask.scalar_type() == kBool || mask.scalar_type() == query.scalar_type(), kOp, ": ", name,
                  " must be bool or ", query.scalar_type(), ", as the query is, got ", mask.scalar_type());
  if (mask.scalar_type() != kBool) return mask;
  return zeros(mask.sizes(), query.options()).masked_fill(mask, -std::numeric_limits<double>::infinity());
}

// Both masks together, (1 or N, 1 or heads, L or 1, S), or undefined.
Tensor joined_mask(const Options& o, const Tensor& query, int64_t keys) {
  const int64_t length = query.size(0), batch = query.size(1);
  Tensor mask;
  if (o.attn_mask().defined()) {
    const bool one = o.attn_mask().dim() == 2;
    mask = one ? additive("attn_mask", o.attn_mask(), query, {length, keys}).view({1, 1, length, keys})
               : additive("attn_mask", o.attn_mask(), query, {batch * o.num_heads(), length, keys})
                     .reshape({batch, o.num_heads(), length, keys});
  }
  if (o.key_padding_mask().defined()) {
    const Tensor padding =
        additive("key_padding_mask", o.key_padding_mask(), query, {batch, keys}).reshape({batch, 1, 1, keys});
    mask = mask.defined() ? mask + padding : padding;
  }
  return mask;
}

// The rows of a stacked projection that belong to queries (0), keys (1) or values (2).
Tensor third(const Tensor& stacked, int64_t index) {
  return stacked.defined() ? stacked.narrow(0, index * (stacked.size(0) / 3), stacked.size(0) / 3) : stacked;
}

// (L, N, E) of each.
Heads project(const Tensor& query, const Tensor& key, const Tensor& value, const Options& o) {
  const Tensor& weight = o.in_proj_weight();
  const Tensor& bias = o.in_proj_bias();
  if (o.use_separate_proj_weight()) {
    return {linear(query, o.q_proj_weight(), third(bias, 0)), linear(key, o.k_proj_weight(), third(bias, 1)),
            linear(value, o.v_proj_weight(), third(bias, 2))};
  }
  if (query.is_same(key) && key.is_same(value)) {
    const std::vector<Tensor> parts = linear(query, weight, bias).chunk(3, -1);
    return {parts[0], parts[1], parts[2]};
  }
  return {linear(query, third(weight, 0), third(bias, 0)), linear(key, third(weight, 1), third(bias, 1)),
          linear(value, third(weight, 2), third(bias, 2))};
}

// (T, N, E) -> (N, heads, T, E / heads), a view, also of a part of a packed projection.
Tensor split_heads(const Tensor& projected, int64_t heads) {
  const int64_t steps = projected.size(0), batch = projected.size(1), size = projected.size(2) / heads;
  return projected.view({steps, batch, heads, size}).permute({1, 2, 0, 3});
}

// (N * heads, S, E / heads) -> (N, heads, S, E / heads)
Tensor static_heads(const char* name, const Tensor& given, int64_t batch, int64_t heads, int64_t size) {
  RUSH_CHECK_VALUE(given.dim() == 3 && given.size(0) == batch * heads && given.size(2) == size, kOp, ": expected ",
                   name, " of shape (", batch * heads, ", S, ", size, "), got ", given.sizes());
  return given.reshape({batch, heads, given.size(1), size});
}

// Projected and divided among the heads, with the learned and the zero key and value after the others.
Heads make_heads(const Tensor& query, const Tensor& key, const Tensor& value, const Options& o) {
  auto [q, k, v] = project(query, key, value, o);
  const int64_t batch = query.size(1), count = o.num_heads(), size = query.size(2) / count;
  if (o.bias_k().defined() && o.bias_v().defined()) {
    RUSH_CHECK_VALUE(!o.static_k().defined() && !o.static_v().defined(), kOp,
                     ": a learned key cannot be added to static keys and values");
    k = cat({k, o.bias_k().expand({1, batch, query.size(2)})});
    v = cat({v, o.bias_v().expand({1, batch, query.size(2)})});
  }
  Heads heads{
      split_heads(q, count),
      o.static_k().defined() ? static_heads("static_k", o.static_k(), batch, count, size) : split_heads(k, count),
      o.static_v().defined() ? static_heads("static_v", o.static_v(), batch, count, size) : split_heads(v, count)};
  if (o.add_zero_attn()) {
    const Tensor nothing = zeros({batch, count, 1, size}, heads.key.options());
    heads.key = cat({heads.key, nothing}, 2);
    heads.value = cat({heads.value, nothing}, 2);
  }
  return heads;
}

// The heads' outputs (N, heads, L, E / heads) and attention weights (N, heads, L, S).
std::tuple<Tensor, Tensor> attend_with_weights(const Heads& heads, const Tensor& mask, double dropout_p) {
  const double scale = 1 / std::sqrt(static_cast<double>(heads.query.size(3)));
  Tensor scores = matmul(heads.query * scale, heads.key.transpose(2, 3));
  if (mask.defined()) scores = scores + mask;
  Tensor weights = scores.softmax(-1);
  if (dropout_p > 0) weights = rush::dropout(weights, dropout_p, /*train=*/true);
  return {matmul(weights, heads.value), weights};
}

std::tuple<Tensor, Tensor> attention_of_batch(const Tensor& query, const Tensor& key, const Tensor& value,
                                              const Options& o) {
  check_inputs(query, key, value, o);
  const int64_t length = query.size(0), batch = query.size(1), embed_dim = query.size(2);
  const Heads heads = make_heads(query, key, value, o);
  const int64_t keys = heads.key.size(2);
  // Nothing is masked of what stands after the given keys.
  const int64_t given = keys - (o.bias_k().defined() && o.bias_v().defined() ? 1 : 0) - (o.add_zero_attn() ? 1 : 0);
  Tensor mask = joined_mask(o, query, given);
  if (mask.defined() && keys > given) mask = constant_pad_nd(mask, {0, keys - given});

  const double dropout_p = o.training() ? o.dropout_p() : 0;
  Tensor out, weights;
  if (o.need_weights()) {
    std::tie(out, weights) = attend_with_weights(heads, mask, dropout_p);
    if (o.average_attn_weights()) weights = weights.mean({1});
  } else {
    out = scaled_dot_product_attention(heads.query, heads.key, heads.value, optional_tensor(mask), dropout_p);
  }
  out = out.permute({2, 0, 1, 3}).reshape({length, batch, embed_dim});  // (N, heads, L, E / heads) -> (L, N, E)
  return {linear(out, o.out_proj_weight(), o.out_proj_bias()), weights};
}

}  // namespace

std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                        const MultiheadAttentionForwardFuncOptions& options) {
  if (query.dim() != 2 || key.dim() != 2 || value.dim() != 2) return attention_of_batch(query, key, value, options);
  Options batched = options;
  if (options.key_padding_mask().defined()) batched.key_padding_mask(options.key_padding_mask().unsqueeze(0));
  const Tensor queries = query.unsqueeze(1), keys = key.is_same(query) ? queries : key.unsqueeze(1);
  const Tensor values = value.is_same(key) ? keys : value.unsqueeze(1);
  const auto [out, weights] = attention_of_batch(queries, keys, values, batched);
  return {out.squeeze(1), weights.defined() ? weights.squeeze(0) : weights};
}

}  // namespace rush::nn::functional
