#include "examples/gpt/gpt.h"

#include <cmath>

#include "rushlight.h"

namespace examples {

namespace F = rush::nn::functional;
using rush::Tensor;

BlockImpl::BlockImpl(const GPTConfig& config) : config_(config) {
  const int64_t width = config.n_embd;
  ln_1 = register_module("ln_1", rush::nn::LayerNorm(rush::nn::LayerNormOptions({width})));
  c_attn = register_module("c_attn", rush::nn::Linear(width, 3 * width));
  c_proj = register_module("c_proj", rush::nn::Linear(width, width));
  ln_2 = register_module("ln_2", rush::nn::LayerNorm(rush::nn::LayerNormOptions({width})));
  c_fc = register_module("c_fc", rush::nn::Linear(width, 4 * width));
  mlp_proj = register_module("mlp_proj", rush::nn::Linear(4 * width, width));
  drop = register_module("drop", rush::nn::Dropout(config.dropout));
}

Tensor BlockImpl::attend(const Tensor& x) {
  const int64_t batch = x.size(0), time = x.size(1), heads = config_.n_head, head_size = config_.n_embd / heads;
  const std::vector<Tensor> qkv = c_attn(x).split(config_.n_embd, 2);  // (B, T, 3C) -> 3 x (B, T, C)
  const auto by_head = [&](const Tensor& t) {                          // (B, T, C) -> (B, heads, T, head_size)
    return t.view({batch, time, heads, head_size}).transpose(1, 2);
  };
  const Tensor y = rush::scaled_dot_product_attention(by_head(qkv[0]), by_head(qkv[1]), by_head(qkv[2]),
                                                      /*attn_mask=*/{}, is_training() ? config_.dropout : 0.0,
                                                      /*is_causal=*/true);
  return c_proj(y.transpose(1, 2).reshape({batch, time, config_.n_embd}));
}

Tensor BlockImpl::think(const Tensor& x) {
  return mlp_proj(F::gelu(c_fc(x), F::GELUFuncOptions().approximate("tanh")));
}

Tensor BlockImpl::forward(Tensor x) {
  x = x + drop(attend(ln_1(x)));
  return x + drop(think(ln_2(x)));
}

GPTImpl::GPTImpl(const GPTConfig& config) : config_(config) {
  RUSH_CHECK_VALUE(config.n_head > 0 && config.n_embd % config.n_head == 0, "GPT: ", config.n_head,
                   " heads do not divide a width of ", config.n_embd);
  wte = register_module("wte", rush::nn::Embedding(config.vocab_size, config.n_embd));
  wpe = register_module("wpe", rush::nn::Embedding(config.block_size, config.n_embd));
  drop = register_module("drop", rush::nn::Dropout(config.dropout));
  auto h = register_module("h", rush::nn::ModuleList());
  for (int64_t i = 0; i < config.n_layer; ++i) {
    blocks_.emplace_back(config);
    h->push_back(blocks_.back());
  }
  ln_f = register_module("ln_f", rush::nn::LayerNorm(rush::nn::LayerNormOptions({config.n_embd})));
  initialise();
}

// Normal with deviation 0.02, biases zero; what is added to the residual stream is scaled down by the number of such
// additions, two for each layer.
void GPTImpl::initialise() {
  const double residual_std = 0.02 / std::sqrt(2.0 * static_cast<double>(config_.n_layer));
  for (const auto& parameter : named_parameters()) {
    const std::string& name = parameter.key();
    if (name.ends_with("proj.weight")) {
      rush::nn::init::normal_(*parameter, 0, residual_std);
    } else if (name.ends_with(".bias")) {
      rush::nn::init::zeros_(*parameter);
    } else if (parameter->dim() == 2) {
      rush::nn::init::normal_(*parameter, 0, 0.02);
    }
  }
}

Tensor GPTImpl::forward(const Tensor& tokens) {
  const int64_t time = tokens.size(1);
  RUSH_CHECK_VALUE(time <= config_.block_size, "GPT: a sequence of ", time, " tokens is longer than the block size ",
                   config_.block_size);
  const Tensor positions = rush::arange(time, rush::TensorOptions(rush::kLong).device(tokens.device()));  // (T)
  Tensor x = drop(wte(tokens) + wpe(positions));                                                          // (B, T, C)
  for (const Block& block : blocks_) x = block(x);
  return F::linear(ln_f(x), wte->weight);  // (B, T, V)
}

Tensor GPTImpl::loss(const Tensor& tokens, const Tensor& targets) {
  const Tensor logits = forward(tokens);
  return F::cross_entropy(logits.view({-1, config_.vocab_size}), targets.view(-1));
}

Tensor GPTImpl::generate(Tensor tokens, int64_t count, double temperature, int64_t top_k) {
  const rush::NoGradGuard no_grad;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t context = std::min(tokens.size(1), config_.block_size);
    const Tensor recent = tokens.narrow(1, tokens.size(1) - context, context);
    Tensor logits = forward(recent).select(1, context - 1) / temperature;  // (B, V)
    const auto [best, order] = logits.topk(std::min(top_k, config_.vocab_size));
    const Tensor choice = best.softmax(-1).multinomial(1);  // (B, 1), a place in `order`
    tokens = rush::cat({tokens, order.gather(1, choice)}, 1);
  }
  return tokens;
}

int64_t GPTImpl::parameter_count() const {
  int64_t count = 0;
  for (const Tensor& parameter : parameters()) count += parameter.numel();
  return count;
}

}  // namespace examples
