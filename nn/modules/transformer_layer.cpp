#include "nn/modules/transformer_layer.h"

#include "core/ops/pointwise/activation.h"
#include "core/ops/pointwise/binary.h"

namespace rush::nn {

namespace {

Tensor activate(const detail::transformer_activation_t& activation, const Tensor& x) {
  if (enumtype::holds<enumtype::kReLU>(activation)) return relu(x);
  if (enumtype::holds<enumtype::kGELU>(activation)) return gelu(x);
  return std::get<std::function<Tensor(const Tensor&)>>(activation)(x);
}

template <class Options>
MultiheadAttention attention(const Options& o) {
  return MultiheadAttention(MultiheadAttentionOptions(o.d_model(), o.nhead())
                                .dropout(o.dropout())
                                .bias(o.bias())
                                .batch_first(o.batch_first()));
}

template <class Options>
LayerNorm layer_norm(const Options& o) {
  return LayerNorm(LayerNormOptions({o.d_model()}).eps(o.layer_norm_eps()).bias(o.bias()));
}

// What the layers share: they are registered in PyTorch's order.
template <class Layer>
void register_feed_forward(Layer& layer) {
  const auto& o = layer.options;
  const auto linear = [&](int64_t in, int64_t out) { return Linear(LinearOptions(in, out).bias(o.bias())); };
  layer.linear1 = layer.register_module("linear1", linear(o.d_model(), o.dim_feedforward()));
  layer.dropout = layer.register_module("dropout", Dropout(o.dropout()));
  layer.linear2 = layer.register_module("linear2", linear(o.dim_feedforward(), o.d_model()));
}

template <class Layer>
Tensor feed_forward(Layer& layer, const Tensor& x) {
  return layer.linear2(layer.dropout(activate(layer.options.activation(), layer.linear1(x))));
}

// x + part(x), normalised before or after.
template <class Part>
Tensor add_part(const Tensor& x, const LayerNorm& norm, const Dropout& dropout, bool norm_first, const Part& part) {
  if (norm_first) return x + dropout(part(norm(x)));
  return norm(x + dropout(part(x)));
}

Tensor attend(const MultiheadAttention& attention, const Tensor& query, const Tensor& key,
              const std::optional<Tensor>& mask, const std::optional<Tensor>& key_padding_mask) {
  return std::get<0>(attention(query, key, key, key_padding_mask, /*need_weights=*/false, mask));
}

}  // namespace

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(const TransformerEncoderLayerOptions& options)
    : options(options) {
  TransformerEncoderLayerImpl::reset();
}

void TransformerEncoderLayerImpl::reset() {
  self_attn = register_module("self_attn", attention(options));
  register_feed_forward(*this);
  norm1 = register_module("norm1", layer_norm(options));
  norm2 = register_module("norm2", layer_norm(options));
  dropout1 = register_module("dropout1", Dropout(options.dropout()));
  dropout2 = register_module("dropout2", Dropout(options.dropout()));
}

void TransformerEncoderLayerImpl::reset_parameters() {
  self_attn->_reset_parameters();
  for (const Linear& linear : {linear1, linear2}) linear->reset_parameters();
  for (const LayerNorm& norm : {norm1, norm2}) norm->reset_parameters();
}

Tensor TransformerEncoderLayerImpl::forward(const Tensor& src, const std::optional<Tensor>& src_mask,
                                            const std::optional<Tensor>& src_key_padding_mask) {
  const ModuleScope scope(*this);
  const bool first = options.norm_first();
  const Tensor x = add_part(src, norm1, dropout1, first,
                            [&](const Tensor& t) { return attend(self_attn, t, t, src_mask, src_key_padding_mask); });
  return add_part(x, norm2, dropout2, first, [&](const Tensor& t) { return feed_forward(*this, t); });
}

TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(const TransformerDecoderLayerOptions& options)
    : options(options) {
  TransformerDecoderLayerImpl::reset();
}

void TransformerDecoderLayerImpl::reset() {
  self_attn = register_module("self_attn", attention(options));
  multihead_attn = register_module("multihead_attn", attention(options));
  register_feed_forward(*this);
  norm1 = register_module("norm1", layer_norm(options));
  norm2 = register_module("norm2", layer_norm(options));
  norm3 = register_module("norm3", layer_norm(options));
  dropout1 = register_module("dropout1", Dropout(options.dropout()));
  dropout2 = register_module("dropout2", Dropout(options.dropout()));
  dropout3 = register_module("dropout3", Dropout(options.dropout()));
}

void TransformerDecoderLayerImpl::reset_parameters() {
  self_attn->_reset_parameters();
  multihead_attn->_reset_parameters();
  for (const Linear& linear : {linear1, linear2}) linear->reset_parameters();
  for (const LayerNorm& norm : {norm1, norm2, norm3}) norm->reset_parameters();
}

Tensor TransformerDecoderLayerImpl::forward(const Tensor& tgt, const Tensor& memory,
                                            const std::optional<Tensor>& tgt_mask,
                                            const std::optional<Tensor>& memory_mask,
                                            const std::optional<Tensor>& tgt_key_padding_mask,
                                            const std::optional<Tensor>& memory_key_padding_mask) {
  const ModuleScope scope(*this);
  const bool first = options.norm_first();
  Tensor x = add_part(tgt, norm1, dropout1, first,
                      [&](const Tensor& t) { return attend(self_attn, t, t, tgt_mask, tgt_key_padding_mask); });
  x = add_part(x, norm2, dropout2, first, [&](const Tensor& t) {
    return attend(multihead_attn, t, memory, memory_mask, memory_key_padding_mask);
  });
  return add_part(x, norm3, dropout3, first, [&](const Tensor& t) { return feed_forward(*this, t); });
}

}  // namespace rush::nn
