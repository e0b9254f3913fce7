#include "nn/modules/attention.h"

#include "core/ops/factory/factories.h"
#include "core/ops/view/view.h"
#include "nn/functional/attention.h"
#include "nn/init.h"
#include "nn/module_text.h"

namespace rush::nn {

MultiheadAttentionImpl::MultiheadAttentionImpl(const MultiheadAttentionOptions& options)
    : Cloneable(detail::printed_prefix() + "MultiheadAttention"), options(options) {
  MultiheadAttentionImpl::reset();
}

void MultiheadAttentionImpl::reset() {
  const int64_t size = options.embed_dim(), heads = options.num_heads();
  RUSH_CHECK_VALUE(size > 0 && heads > 0 && size % heads == 0, "MultiheadAttention: ", size,
                   " numbers cannot be divided among ", heads, " heads");
  RUSH_CHECK_VALUE(options.dropout() >= 0 && options.dropout() <= 1,
                   "MultiheadAttention: dropout probability has to be between 0 and 1, but got ", options.dropout());
  const int64_t kdim = options.kdim().value_or(size), vdim = options.vdim().value_or(size);
  const bool same = kdim == size && vdim == size;
  const auto parameter = [&](const char* name, bool wanted, std::vector<int64_t> sizes) {
    return register_parameter(name, wanted ? rush::empty(sizes) : Tensor(), wanted);
  };
  in_proj_weight = parameter("in_proj_weight", same, {3 * size, size});
  q_proj_weight = parameter("q_proj_weight", !same, {size, size});
  k_proj_weight = parameter("k_proj_weight", !same, {size, kdim});
  v_proj_weight = parameter("v_proj_weight", !same, {size, vdim});
  in_proj_bias = parameter("in_proj_bias", options.bias(), {3 * size});
  bias_k = parameter("bias_k", options.add_bias_kv(), {1, 1, size});
  bias_v = parameter("bias_v", options.add_bias_kv(), {1, 1, size});
  out_proj = register_module("out_proj", Linear(LinearOptions(size, size).bias(options.bias())));
  _reset_parameters();
}

void MultiheadAttentionImpl::_reset_parameters() {
  for (const Tensor& weight : {in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight}) {
    if (weight.defined()) init::xavier_uniform_(weight);
  }
  for (const Tensor& bias : {in_proj_bias, out_proj->bias}) {
    if (bias.defined()) init::zeros_(bias);
  }
  for (const Tensor& bias : {bias_k, bias_v}) {
    if (bias.defined()) init::xavier_normal_(bias);
  }
}

std::tuple<Tensor, Tensor> MultiheadAttentionImpl::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                           const std::optional<Tensor>& key_padding_mask,
                                                           bool need_weights, const std::optional<Tensor>& attn_mask,
                                                           bool average_attn_weights) {
  const ModuleScope scope(*this);
  auto call = functional::MultiheadAttentionForwardFuncOptions(options.embed_dim(), options.num_heads(), in_proj_weight,
                                                               in_proj_bias, bias_k, bias_v, options.add_zero_attn(),
                                                               options.dropout(), out_proj->weight, out_proj->bias)
                  .training(is_training())
                  .key_padding_mask(key_padding_mask.value_or(Tensor()))
                  .need_weights(need_weights)
                  .attn_mask(attn_mask.value_or(Tensor()))
                  .use_separate_proj_weight(!in_proj_weight.defined())
                  .q_proj_weight(q_proj_weight)
                  .k_proj_weight(k_proj_weight)
                  .v_proj_weight(v_proj_weight)
                  .average_attn_weights(average_attn_weights);
  if (!options.batch_first() || query.dim() != 3) {
    return functional::multi_head_attention_forward(query, key, value, call);
  }
  // What is one tensor stays one: it is projected in one product.
  const Tensor q = query.transpose(0, 1), k = key.is_same(query) ? q : key.transpose(0, 1);
  const Tensor v = value.is_same(key) ? k : value.transpose(0, 1);
  auto [out, weights] = functional::multi_head_attention_forward(q, k, v, call);
  return {out.transpose(0, 1), weights};
}

}  // namespace rush::nn
