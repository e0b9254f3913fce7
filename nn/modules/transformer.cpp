#include "nn/modules/transformer.h"

#include <limits>

#include "core/ops/factory/factories.h"
#include "core/ops/view/triangular.h"
#include "nn/init.h"

namespace rush::nn {

namespace {

// Undefined when there is none: what an AnyModule can hand to a parameter of either type.
Tensor plain(const std::optional<Tensor>& tensor) { return tensor.value_or(Tensor()); }

template <class Layer>
ModuleList clones(const char* name, const ModuleHolder<Layer>& layer, int64_t count) {
  RUSH_CHECK_VALUE(count > 0 && layer, name, ": expected a layer and a positive number of layers, got ", count);
  ModuleList list;
  for (int64_t i = 0; i < count; ++i) list->push_back(layer->clone());
  return list;
}

template <class Options, class Own>
Options layer_options(const Own& o) {
  return Options(o.d_model(), o.nhead())
      .dim_feedforward(o.dim_feedforward())
      .dropout(o.dropout())
      .activation(o.activation())
      .layer_norm_eps(o.layer_norm_eps())
      .batch_first(o.batch_first())
      .norm_first(o.norm_first())
      .bias(o.bias());
}

}  // namespace

TransformerEncoderImpl::TransformerEncoderImpl(TransformerEncoderOptions options) : options(std::move(options)) {
  TransformerEncoderImpl::reset();
}

void TransformerEncoderImpl::reset() {
  layers = register_module("layers", clones("TransformerEncoder", options.encoder_layer(), options.num_layers()));
  norm = options.norm().clone();
  if (!norm.is_empty()) register_module("norm", norm.ptr());
}

void TransformerEncoderImpl::reset_parameters() {
  for (size_t i = 0; i < layers->size(); ++i) layers->at<TransformerEncoderLayer>(i).reset_parameters();
}

Tensor TransformerEncoderImpl::forward(const Tensor& src, const std::optional<Tensor>& src_mask,
                                       const std::optional<Tensor>& src_key_padding_mask) {
  const ModuleScope scope(*this);
  Tensor x = src;
  for (size_t i = 0; i < layers->size(); ++i) {
    x = layers->at<TransformerEncoderLayer>(i).forward(x, src_mask, src_key_padding_mask);
  }
  return norm.is_empty() ? x : norm.forward(x);
}

TransformerDecoderImpl::TransformerDecoderImpl(TransformerDecoderOptions options) : options(std::move(options)) {
  TransformerDecoderImpl::reset();
}

void TransformerDecoderImpl::reset() {
  layers = register_module("layers", clones("TransformerDecoder", options.decoder_layer(), options.num_layers()));
  norm = options.norm().clone();
  if (!norm.is_empty()) register_module("norm", norm.ptr());
}

void TransformerDecoderImpl::reset_parameters() {
  for (size_t i = 0; i < layers->size(); ++i) layers->at<TransformerDecoderLayer>(i).reset_parameters();
}

Tensor TransformerDecoderImpl::forward(const Tensor& tgt, const Tensor& memory, const std::optional<Tensor>& tgt_mask,
                                       const std::optional<Tensor>& memory_mask,
                                       const std::optional<Tensor>& tgt_key_padding_mask,
                                       const std::optional<Tensor>& memory_key_padding_mask) {
  const ModuleScope scope(*this);
  Tensor x = tgt;
  for (size_t i = 0; i < layers->size(); ++i) {
    x = layers->at<TransformerDecoderLayer>(i).forward(x, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
                                                       memory_key_padding_mask);
  }
  return norm.is_empty() ? x : norm.forward(x);
}

TransformerImpl::TransformerImpl(TransformerOptions options) : options(std::move(options)) { TransformerImpl::reset(); }

void TransformerImpl::reset() {
  const auto& o = options;
  const AnyModule norm(LayerNorm(LayerNormOptions({o.d_model()}).eps(o.layer_norm_eps()).bias(o.bias())));
  // A module that the caller made is used as it is; a clone, which starts as a copy, takes one of its own.
  const auto custom = [](const AnyModule& given, const AnyModule& current) {
    return current.is_empty() ? given : given.clone();
  };
  if (o.custom_encoder().is_empty()) {
    const TransformerEncoderLayer layer(layer_options<TransformerEncoderLayerOptions>(o));
    encoder = AnyModule(TransformerEncoder(TransformerEncoderOptions(layer, o.num_encoder_layers()).norm(norm)));
  } else {
    encoder = custom(o.custom_encoder(), encoder);
  }
  if (o.custom_decoder().is_empty()) {
    const TransformerDecoderLayer layer(layer_options<TransformerDecoderLayerOptions>(o));
    decoder = AnyModule(TransformerDecoder(TransformerDecoderOptions(layer, o.num_decoder_layers()).norm(norm)));
  } else {
    decoder = custom(o.custom_decoder(), decoder);
  }
  register_module("encoder", encoder.ptr());
  register_module("decoder", decoder.ptr());
  reset_parameters();
}

void TransformerImpl::reset_parameters() {
  for (const Tensor& parameter : parameters()) {
    if (parameter.dim() > 1) init::xavier_uniform_(parameter);
  }
}

Tensor TransformerImpl::forward(const Tensor& src, const Tensor& tgt, const std::optional<Tensor>& src_mask,
                                const std::optional<Tensor>& tgt_mask, const std::optional<Tensor>& memory_mask,
                                const std::optional<Tensor>& src_key_padding_mask,
                                const std::optional<Tensor>& tgt_key_padding_mask,
                                const std::optional<Tensor>& memory_key_padding_mask) {
  const ModuleScope scope(*this);
  RUSH_CHECK_VALUE((src.dim() == 2 || src.dim() == 3) && tgt.dim() == src.dim() && src.size(-1) == options.d_model() &&
                       tgt.size(-1) == options.d_model(),
                   "Transformer: expected src and tgt of 2 or 3 dimensions, the last of size ", options.d_model(),
                   ", got shapes ", src.sizes(), " and ", tgt.sizes());
  const int64_t batch_dim = options.batch_first() ? 0 : 1;
  RUSH_CHECK_VALUE(src.dim() == 2 || src.size(batch_dim) == tgt.size(batch_dim),
                   "Transformer: src and tgt have batches of different sizes, got shapes ", src.sizes(), " and ",
                   tgt.sizes());
  const Tensor memory = encoder.forward(src, plain(src_mask), plain(src_key_padding_mask));
  return decoder.forward(tgt, memory, plain(tgt_mask), plain(memory_mask), plain(tgt_key_padding_mask),
                         plain(memory_key_padding_mask));
}

Tensor TransformerImpl::generate_square_subsequent_mask(int64_t size) {
  return full({size, size}, -std::numeric_limits<double>::infinity()).triu(1);
}

}  // namespace rush::nn
