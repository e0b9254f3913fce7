#include "examples/gpt/gpt.h"

#include <cmath>
#include <limits>

#include "core/amp/cast_weights.h"
#include "examples/gpt/linear_cross_entropy.h"
#include "rushlight.h"

namespace examples {

namespace F = rush::nn::functional;
using rush::Tensor;

CausalSelfAttentionImpl::CausalSelfAttentionImpl(const GPTConfig& config) : config_(config) {
  c_attn = register_module("c_attn", rush::nn::Linear(config.n_embd, 3 * config.n_embd));
  c_proj = register_module("c_proj", rush::nn::Linear(config.n_embd, config.n_embd));
}

Tensor CausalSelfAttentionImpl::forward(const Tensor& x, KeyValueCache::Layer* cache, int64_t past) {
  const int64_t batch = x.size(0), time = x.size(1), heads = config_.n_head, head_size = config_.n_embd / heads;
  const std::vector<Tensor> qkv = c_attn(x).split(config_.n_embd, 2);  // (B, T, 3C) -> 3 x (B, T, C)
  const auto by_head = [&](const Tensor& t) {                          // (B, T, C) -> (B, heads, T, head_size)
    return t.view({batch, time, heads, head_size}).transpose(1, 2);
  };
  const Tensor query = by_head(qkv[0]), key = by_head(qkv[1]), value = by_head(qkv[2]);
  const Tensor y = cache ? attend_cached(query, key, value, *cache, past)
                         : rush::scaled_dot_product_attention(query, key, value, /*attn_mask=*/{},
                                                              is_training() ? config_.dropout : 0.0,
                                                              /*is_causal=*/true);
  return c_proj(y.transpose(1, 2).reshape({batch, time, config_.n_embd}));
}

Tensor CausalSelfAttentionImpl::attend_cached(const Tensor& query, const Tensor& key, const Tensor& value,
                                              KeyValueCache::Layer& cache, int64_t past) const {
  const int64_t time = query.size(2), known = past + time;
  if (!cache.keys.defined()) {
    const std::vector<int64_t> sizes = {key.size(0), key.size(1), config_.block_size, key.size(3)};
    cache = {rush::empty(sizes, key.options()), rush::empty(sizes, key.options())};
  }
  cache.keys.narrow(2, past, time).copy_(key);
  cache.values.narrow(2, past, time).copy_(value);
  // Position past + i sees the keys up to its own; a single one sees all.
  std::optional<Tensor> seen;
  if (time > 1) seen = rush::ones({time, known}, rush::TensorOptions(rush::kBool).device(query.device())).tril(past);
  return rush::scaled_dot_product_attention(query, cache.keys.narrow(2, 0, known), cache.values.narrow(2, 0, known),
                                            seen);
}

PerceptronImpl::PerceptronImpl(const GPTConfig& config) {
  c_fc = register_module("c_fc", rush::nn::Linear(config.n_embd, 4 * config.n_embd));
  c_proj = register_module("c_proj", rush::nn::Linear(4 * config.n_embd, config.n_embd));
}

Tensor PerceptronImpl::forward(const Tensor& x) {
  return rush::gelu_perceptron(x, c_fc->weight, c_fc->bias, c_proj->weight, c_proj->bias);
}

Tensor Residual::add_and_normalise(const rush::nn::LayerNorm& norm, const rush::nn::Dropout& drop) {
  if (!update.defined()) return norm->forward(stream);
  const double p = drop->is_training() ? drop->options.p() : 0;
  Tensor normalised;
  std::tie(normalised, stream) = rush::add_layer_norm(stream, update, norm->options.normalized_shape(), norm->weight,
                                                      norm->bias, norm->options.eps(), std::nullopt, p);
  return normalised;
}

BlockImpl::BlockImpl(const GPTConfig& config) {
  ln_1 = register_module("ln_1", rush::nn::LayerNorm(rush::nn::LayerNormOptions({config.n_embd})));
  attn = register_module("attn", CausalSelfAttention(config));
  ln_2 = register_module("ln_2", rush::nn::LayerNorm(rush::nn::LayerNormOptions({config.n_embd})));
  mlp = register_module("mlp", Perceptron(config));
  drop = register_module("drop", rush::nn::Dropout(config.dropout));
}

Residual BlockImpl::forward(Residual x, KeyValueCache::Layer* cache, int64_t past) {
  x.update = attn->forward(x.add_and_normalise(ln_1, drop), cache, past);
  x.update = mlp(x.add_and_normalise(ln_2, drop));
  return x;
}

GPTImpl::GPTImpl(const GPTConfig& config) : config_(config) {
  RUSH_CHECK_VALUE(config.n_head > 0 && config.n_embd % config.n_head == 0, "GPT: ", config.n_head,
                   " heads do not divide a width of ", config.n_embd);
  RUSH_CHECK_VALUE(config.vocab_padding >= 0, "GPT: vocab_padding must not be negative, got ", config.vocab_padding);
  const int64_t rows = config.vocab_size + config.vocab_padding;
  wte = register_module("wte", rush::nn::Embedding(rows, config.n_embd));
  wpe = register_module("wpe", rush::nn::Embedding(config.block_size, config.n_embd));
  drop = register_module("drop", rush::nn::Dropout(config.dropout));
  auto h = register_module("h", rush::nn::ModuleList());
  for (int64_t i = 0; i < config.n_layer; ++i) {
    blocks_.emplace_back(config);
    h->push_back(blocks_.back());
  }
  ln_f = register_module("ln_f", rush::nn::LayerNorm(rush::nn::LayerNormOptions({config.n_embd})));
  if (config.vocab_padding > 0) head_bias_ = register_buffer("head_bias", rush::zeros(rows));
  initialise();
}

// Note [A padded vocabulary]
// 50257 is odd: no row of logits but every eighth would begin where tensor cores can read and write it, so the table of
// tokens has rows to spare. Rows that stand for no token must not take part in softmax. A bias of -inf on their logits
// leaves them out of it exactly, for the price of nothing, as the matrix product adds a bias anyway: their probability
// and the gradient of their rows are 0. The rows start as zeros, and so they stay.
//
// Normal with deviation 0.02, biases zero; what is added to the residual stream is scaled down by the number of such
// additions, two for each layer.
void GPTImpl::initialise() {
  const rush::NoGradGuard no_grad;
  const double residual_std = 0.02 / std::sqrt(2.0 * static_cast<double>(config_.n_layer));
  for (const auto& parameter : named_parameters()) {
    const std::string& name = parameter.key();
    if (name.ends_with("c_proj.weight")) {
      rush::nn::init::normal_(*parameter, 0, residual_std);
    } else if (name.ends_with(".bias")) {
      rush::nn::init::zeros_(*parameter);
    } else if (parameter->dim() == 2) {
      rush::nn::init::normal_(*parameter, 0, 0.02);
    }
  }
  if (config_.vocab_padding > 0) {
    wte->weight.narrow(0, config_.vocab_size, config_.vocab_padding).zero_();
    head_bias_.narrow(0, config_.vocab_size, config_.vocab_padding).fill_(-std::numeric_limits<double>::infinity());
  }
}

namespace {

Residual checkpointed(const Block& block, const Residual& x) {
  const auto run = [block](const rush::Tensors& in) {
    const Residual y = block->forward({in[0], in.size() > 1 ? in[1] : Tensor()});
    return rush::Tensors{y.stream, y.update};
  };
  const rush::Tensors out =
      rush::autograd::checkpoint(run, x.update.defined() ? rush::Tensors{x.stream, x.update} : rush::Tensors{x.stream});
  return {out[0], out[1]};
}

}  // namespace

// (B, T) -> (B, T, C)
Tensor GPTImpl::features(const Tensor& tokens, KeyValueCache* cache) {
  const int64_t time = tokens.size(1), past = cache ? cache->length : 0;
  RUSH_CHECK_VALUE(past + time <= config_.block_size, "GPT: a sequence of ", past + time,
                   " tokens is longer than the block size ", config_.block_size);
  const auto options = rush::TensorOptions(rush::kLong).device(tokens.device());
  const Tensor positions = rush::arange(past, past + time, options);  // (T)
  Residual x{drop(wte(tokens) + wpe(positions)), Tensor()};
  if (cache) cache->layers.resize(blocks_.size());
  for (size_t i = 0; i < blocks_.size(); ++i) {
    if (casts_by_block_) rush::autocast::cast_weights(blocks_[i]->parameters());
    x = i < checkpointed_ && !cache ? checkpointed(blocks_[i], x)
                                    : blocks_[i]->forward(x, cache ? &cache->layers[i] : nullptr, past);
  }
  if (cache) cache->length += time;
  return x.add_and_normalise(ln_f, drop);
}

// (..., C) -> (..., V)
Tensor GPTImpl::head(const Tensor& features) { return F::linear(features, wte->weight, head_bias_); }

Tensor GPTImpl::forward(const Tensor& tokens, KeyValueCache* cache) { return head(features(tokens, cache)); }

Tensor GPTImpl::loss(const Tensor& tokens, const Tensor& targets) {
  return linear_cross_entropy(features(tokens, nullptr).view({-1, config_.n_embd}), wte->weight, head_bias_,
                              targets.view(-1));
}

// The logits of what follows `tokens` (B, T), of which the cache holds the beginning: (B, V). Once they are more than a
// block, each further token moves all positions, and what the cache holds is of no use.
Tensor GPTImpl::next_logits(const Tensor& tokens, KeyValueCache& cache) {
  const int64_t length = tokens.size(1), block = config_.block_size;
  const Tensor x = length > block ? features(tokens.narrow(1, length - block, block), nullptr)
                                  : features(tokens.narrow(1, cache.length, length - cache.length), &cache);
  return head(x.select(1, -1));
}

Tensor GPTImpl::generate(Tensor tokens, int64_t count, double temperature, int64_t top_k) {
  const rush::NoGradGuard no_grad;
  KeyValueCache cache;
  for (int64_t i = 0; i < count; ++i) {
    const Tensor logits = next_logits(tokens, cache) / temperature;
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
