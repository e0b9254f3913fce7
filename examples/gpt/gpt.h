// GPT-2's model: Radford et al., "Language models are unsupervised multitask learners" (2019). Token and position
// embeddings, blocks of causal self-attention and a perceptron with the normalisation before each, and an output head
// that is the token embedding again. Shapes: B sequences of T tokens, C = n_embd, V = vocab_size.
#pragma once
#include <memory>
#include <vector>

#include "nn/modules.h"

namespace examples {

struct GPTConfig {
  int64_t vocab_size = 50304;
  int64_t block_size = 1024;  // the longest sequence
  int64_t n_layer = 12;
  int64_t n_head = 12;
  int64_t n_embd = 768;
  double dropout = 0;
};

// x + attention(norm(x)), then x + perceptron(norm(x)).
class BlockImpl : public rush::nn::Module {
 public:
  explicit BlockImpl(const GPTConfig& config);
  rush::Tensor forward(rush::Tensor x);  // (B, T, C) -> (B, T, C)

 private:
  rush::Tensor attend(const rush::Tensor& x);
  rush::Tensor think(const rush::Tensor& x);

  GPTConfig config_;
  rush::nn::LayerNorm ln_1{nullptr}, ln_2{nullptr};
  rush::nn::Linear c_attn{nullptr}, c_proj{nullptr};  // queries, keys and values in one; the heads' results together
  rush::nn::Linear c_fc{nullptr}, mlp_proj{nullptr};
  rush::nn::Dropout drop{nullptr};
};
RUSH_MODULE(Block);

class GPTImpl : public rush::nn::Module {
 public:
  // Throws ValueError unless n_head divides n_embd.
  explicit GPTImpl(const GPTConfig& config);

  // Tokens (B, T) -> logits of the next token at every position (B, T, V). Throws ValueError when T > block_size.
  rush::Tensor forward(const rush::Tensor& tokens);
  // The mean cross entropy of the next tokens, `targets` (B, T).
  rush::Tensor loss(const rush::Tensor& tokens, const rush::Tensor& targets);
  // Continues `tokens` (B, T) by `count` tokens, each drawn from the distribution of the logits / temperature, limited
  // to the top_k likeliest.
  rush::Tensor generate(rush::Tensor tokens, int64_t count, double temperature = 1, int64_t top_k = 200);

  const GPTConfig& config() const { return config_; }
  int64_t parameter_count() const;

 private:
  void initialise();

  GPTConfig config_;
  rush::nn::Embedding wte{nullptr}, wpe{nullptr};
  rush::nn::Dropout drop{nullptr};
  std::vector<Block> blocks_;
  rush::nn::LayerNorm ln_f{nullptr};
};
RUSH_MODULE(GPT);

}  // namespace examples
