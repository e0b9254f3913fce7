// TransformerEncoder, TransformerDecoder, Transformer.
#pragma once
#include "nn/modules/container.h"
#include "nn/modules/transformer_layer.h"

namespace rush::nn {

/// num_layers layers like the one given, and a norm behind them where there is one.
struct TransformerEncoderOptions {
  TransformerEncoderOptions(TransformerEncoderLayer encoder_layer, int64_t num_layers)
      : encoder_layer_(std::move(encoder_layer)), num_layers_(num_layers) {}
  TransformerEncoderOptions(const TransformerEncoderLayerOptions& encoder_layer_options, int64_t num_layers)
      : encoder_layer_(encoder_layer_options), num_layers_(num_layers) {}
  // Every layer is a clone of this one.
  RUSH_ARG(TransformerEncoderLayer, encoder_layer) = nullptr;
  RUSH_ARG(int64_t, num_layers);
  // Follows the last layer.
  RUSH_ARG(AnyModule, norm);
};

/// num_layers layers like the one given, and a norm behind them where there is one.
struct TransformerDecoderOptions {
  TransformerDecoderOptions(TransformerDecoderLayer decoder_layer, int64_t num_layers)
      : decoder_layer_(std::move(decoder_layer)), num_layers_(num_layers) {}
  TransformerDecoderOptions(const TransformerDecoderLayerOptions& decoder_layer_options, int64_t num_layers)
      : decoder_layer_(decoder_layer_options), num_layers_(num_layers) {}
  RUSH_ARG(TransformerDecoderLayer, decoder_layer) = nullptr;
  RUSH_ARG(int64_t, num_layers);
  RUSH_ARG(AnyModule, norm);
};

/// Layers in a row, then perhaps a normalisation. torch.nn.TransformerEncoder.
class TransformerEncoderImpl : public Cloneable<TransformerEncoderImpl> {
 public:
  TransformerEncoderImpl(TransformerEncoderLayer encoder_layer, int64_t num_layers)
      : TransformerEncoderImpl(TransformerEncoderOptions(std::move(encoder_layer), num_layers)) {}
  explicit TransformerEncoderImpl(TransformerEncoderOptions options);
  void reset() override;
  void reset_parameters();  // each layer's
  /// As the layer's.
  Tensor forward(const Tensor& src, const std::optional<Tensor>& src_mask = std::nullopt,
                 const std::optional<Tensor>& src_key_padding_mask = std::nullopt);

  TransformerEncoderOptions options;
  ModuleList layers{nullptr};
  AnyModule norm;
};
RUSH_MODULE(TransformerEncoder);

/// torch.nn.TransformerDecoder.
class TransformerDecoderImpl : public Cloneable<TransformerDecoderImpl> {
 public:
  TransformerDecoderImpl(TransformerDecoderLayer decoder_layer, int64_t num_layers)
      : TransformerDecoderImpl(TransformerDecoderOptions(std::move(decoder_layer), num_layers)) {}
  explicit TransformerDecoderImpl(TransformerDecoderOptions options);
  void reset() override;
  void reset_parameters();  // each layer's
  /// As the layer's.
  Tensor forward(const Tensor& tgt, const Tensor& memory, const std::optional<Tensor>& tgt_mask = std::nullopt,
                 const std::optional<Tensor>& memory_mask = std::nullopt,
                 const std::optional<Tensor>& tgt_key_padding_mask = std::nullopt,
                 const std::optional<Tensor>& memory_key_padding_mask = std::nullopt);

  TransformerDecoderOptions options;
  ModuleList layers{nullptr};
  AnyModule norm;
};
RUSH_MODULE(TransformerDecoder);

/// Encoder and decoder: Vaswani et al., "Attention is all you need" (2017). Matrices are Glorot-uniform at first.
/// torch.nn.Transformer.
class TransformerImpl : public Cloneable<TransformerImpl> {
 public:
  explicit TransformerImpl(TransformerOptions options = {});
  void reset() override;
  void reset_parameters();  // Glorot-uniform matrices

  /// src (S, N, E) and tgt (T, N, E), or batch first, or without N -> (T, N, E). Throws ValueError on other shapes.
  Tensor forward(const Tensor& src, const Tensor& tgt, const std::optional<Tensor>& src_mask = std::nullopt,
                 const std::optional<Tensor>& tgt_mask = std::nullopt,
                 const std::optional<Tensor>& memory_mask = std::nullopt,
                 const std::optional<Tensor>& src_key_padding_mask = std::nullopt,
                 const std::optional<Tensor>& tgt_key_padding_mask = std::nullopt,
                 const std::optional<Tensor>& memory_key_padding_mask = std::nullopt);

  /// (size, size): minus infinity where the key comes later than the query, else 0.
  static Tensor generate_square_subsequent_mask(int64_t size);

  TransformerOptions options;
  AnyModule encoder, decoder;
};

class Transformer : public ModuleHolder<TransformerImpl> {
 public:
  using ModuleHolder<TransformerImpl>::ModuleHolder;
  using Impl = TransformerImpl;
  static Tensor generate_square_subsequent_mask(int64_t size) {  // TransformerImpl's
    return TransformerImpl::generate_square_subsequent_mask(size);
  }
};

}  // namespace rush::nn
