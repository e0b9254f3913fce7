// GPT-2's model: Radford et al., "Language models are unsupervised multitask learners" (2019). Token and position
// embeddings, blocks of causal self-attention and a perceptron with the normalisation before each, and an output head
// that is the token embedding again. The parameters have GPT-2's names. Shapes: B sequences of T tokens, C = n_embd,
// V = vocab_size + vocab_padding.
#pragma once
#include <memory>
#include <vector>

#include "nn/modules.h"

namespace examples {

struct GPTConfig {
  int64_t vocab_size = 50257;
  int64_t block_size = 1024;  // the longest sequence
  int64_t n_layer = 12;
  int64_t n_head = 12;
  int64_t n_embd = 768;
  double dropout = 0;
  // Rows of the token embedding beyond the vocabulary, which bring V to a size that suits matrix products. No loss and
  // no sample ever sees them: see Note [A padded vocabulary].
  int64_t vocab_padding = 0;
};

// The keys and values of the positions that a model has read, so that reading one more costs only itself.
struct KeyValueCache {
  struct Layer {
    rush::Tensor keys, values;  // (B, heads, block_size, head_size), of which `length` positions are filled
  };
  std::vector<Layer> layers;
  int64_t length = 0;

  /// The bytes of one sequence, whose keys and values have this dtype.
  static int64_t bytes(const GPTConfig& config, rush::ScalarType dtype) {
    return 2 * config.n_layer * config.block_size * config.n_embd * static_cast<int64_t>(rush::element_size(dtype));
  }
};

class CausalSelfAttentionImpl : public rush::nn::Module {
 public:
  explicit CausalSelfAttentionImpl(const GPTConfig& config);
  // (B, T, C) -> (B, T, C). With a cache, x holds the positions from `past` on; their keys and values join those there.
  rush::Tensor forward(const rush::Tensor& x, KeyValueCache::Layer* cache = nullptr, int64_t past = 0);

 private:
  rush::Tensor attend_cached(const rush::Tensor& query, const rush::Tensor& key, const rush::Tensor& value,
                             KeyValueCache::Layer& cache, int64_t past) const;

  GPTConfig config_;
  rush::nn::Linear c_attn{nullptr}, c_proj{nullptr};  // queries, keys and values in one; the heads' results together
};
RUSH_MODULE(CausalSelfAttention);

class PerceptronImpl : public rush::nn::Module {
 public:
  explicit PerceptronImpl(const GPTConfig& config);
  rush::Tensor forward(const rush::Tensor& x);  // (B, T, C) -> (B, T, 4C) -> (B, T, C)

 private:
  rush::nn::Linear c_fc{nullptr}, c_proj{nullptr};
};
RUSH_MODULE(Perceptron);

// The residual stream, and what the last layer adds to it (undefined before the first). The addition, and the dropout
// before it, are left to the normalisation that follows, which reads and writes the stream anyway: see
// rush::add_layer_norm.
struct Residual {
  rush::Tensor stream, update;  // (B, T, C)

  // Adds what dropout leaves of the update, and returns the normalised stream.
  rush::Tensor add_and_normalise(const rush::nn::LayerNorm& norm, const rush::nn::Dropout& drop);
};

// x + attention(norm(x)), then x + perceptron(norm(x)).
class BlockImpl : public rush::nn::Module {
 public:
  explicit BlockImpl(const GPTConfig& config);
  Residual forward(Residual x, KeyValueCache::Layer* cache = nullptr, int64_t past = 0);

 private:
  rush::nn::LayerNorm ln_1{nullptr}, ln_2{nullptr};
  CausalSelfAttention attn{nullptr};
  Perceptron mlp{nullptr};
  rush::nn::Dropout drop{nullptr};
};
RUSH_MODULE(Block);

class GPTImpl : public rush::nn::Module {
 public:
  // Throws ValueError unless n_head divides n_embd.
  explicit GPTImpl(const GPTConfig& config);

  // Tokens (B, T) -> logits of the next token at every position (B, T, V). With a cache, `tokens` are those that follow
  // the positions in it, which grow by T. Throws ValueError when there are more than block_size positions.
  rush::Tensor forward(const rush::Tensor& tokens, KeyValueCache* cache = nullptr);
  // The mean cross entropy of the next tokens, `targets` (B, T).
  rush::Tensor loss(const rush::Tensor& tokens, const rush::Tensor& targets);
  // Continues `tokens` (B, T) by `count` tokens, each drawn from the distribution of the logits / temperature, limited
  // to the top_k likeliest. What lies more than block_size tokens back is forgotten.
  rush::Tensor generate(rush::Tensor tokens, int64_t count, double temperature = 1, int64_t top_k = 200);

  // The first `count` blocks keep only their input for the backward pass, which computes the rest again: a third more
  // work for a fraction of the memory. Note [Checkpointing].
  void checkpoint_blocks(int64_t count) { checkpointed_ = static_cast<size_t>(count); }

  // Under autocast a block's weights are cast together when it begins, and so their gradients arrive together when its
  // backward pass has ended: where they travel to other processes, that is beside the backward pass of the others.
  void cast_by_block() { casts_by_block_ = true; }

  const GPTConfig& config() const { return config_; }
  int64_t parameter_count() const;

 private:
  void initialise();
  rush::Tensor features(const rush::Tensor& tokens, KeyValueCache* cache);
  rush::Tensor head(const rush::Tensor& features);
  rush::Tensor next_logits(const rush::Tensor& tokens, KeyValueCache& cache);

  GPTConfig config_;
  rush::nn::Embedding wte{nullptr}, wpe{nullptr};
  rush::nn::Dropout drop{nullptr};
  std::vector<Block> blocks_;
  size_t checkpointed_ = 0;
  bool casts_by_block_ = false;
  rush::nn::LayerNorm ln_f{nullptr};
  rush::Tensor head_bias_;  // (V): 0 for a token and -inf for padding; undefined without padding
};
RUSH_MODULE(GPT);

// What each of several processes computes of its rows of a batch.
struct GPTLossImpl : rush::nn::Module {
  explicit GPTLossImpl(const GPT& gpt) : model(register_module("model", gpt)) { model->cast_by_block(); }
  rush::Tensor forward(const rush::Tensor& tokens, const rush::Tensor& targets) { return model->loss(tokens, targets); }
  GPT model;
};

}  // namespace examples
