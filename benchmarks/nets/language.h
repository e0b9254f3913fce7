// Nets that read tokens, (B, T) of int64, from plain modules.
#pragma once
#include "benchmarks/nets/block.h"

namespace plain {

struct GptSize {
  int64_t vocabulary, length, layers, heads, width;
  double dropout = 0;
};

// GPT-2: Radford et al., "Language models are unsupervised multitask learners" (2019).
struct GptImpl : nn::Module {
  explicit GptImpl(const GptSize& size)
      : wte(register_module("wte", nn::Embedding(size.vocabulary, size.width))),
        wpe(register_module("wpe", nn::Embedding(size.length, size.width))),
        drop(register_module("drop", nn::Dropout(size.dropout))),
        blocks(register_module("blocks", blocks_of(size.layers, {size.width, size.heads, size.dropout,
                                                                 /*is_causal=*/true, /*norm_first=*/true, "tanh"}))),
        ln_f(register_module("ln_f", nn::LayerNorm(nn::LayerNormOptions({size.width})))) {
    initialise(*this);
  }

  Tensor forward(const Tensor& tokens) {  // scores of those that follow, (B, T, vocabulary)
    const Tensor positions = arange(tokens.size(1), tokens.options());
    const Tensor x = blocks->forward(drop(wte(tokens) + wpe(positions)));
    return nn::functional::linear(ln_f(x), wte->weight);
  }

  nn::Embedding wte, wpe;
  nn::Dropout drop;
  nn::Sequential blocks;
  nn::LayerNorm ln_f;
};
RUSH_MODULE(Gpt);

// BERT with its head for masked tokens: Devlin et al., "BERT: pre-training of deep bidirectional transformers" (2018).
struct BertImpl : nn::Module {
  explicit BertImpl(const GptSize& size)
      : words(register_module("words", nn::Embedding(size.vocabulary, size.width))),
        positions(register_module("positions", nn::Embedding(size.length, size.width))),
        segments(register_module("segments", nn::Embedding(2, size.width))),
        norm(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({size.width})))),
        drop(register_module("drop", nn::Dropout(size.dropout))),
        blocks(register_module("blocks", blocks_of(size.layers, {size.width, size.heads, size.dropout,
                                                                 /*is_causal=*/false, /*norm_first=*/false}))),
        transform(register_module("transform", nn::Linear(size.width, size.width))),
        last_norm(register_module("last_norm", nn::LayerNorm(nn::LayerNormOptions({size.width})))),
        bias(register_parameter("bias", zeros({size.vocabulary}))) {
    initialise(*this);
  }

  Tensor forward(const Tensor& tokens) {  // scores of the tokens, (B, T, vocabulary)
    const Tensor embedded =
        words(tokens) + positions(arange(tokens.size(1), tokens.options())) + segments(zeros_like(tokens));
    const Tensor x = blocks->forward(drop(norm(embedded)));
    return nn::functional::linear(last_norm(gelu(transform(x))), words->weight, bias);
  }

  nn::Embedding words, positions, segments;
  nn::LayerNorm norm;
  nn::Dropout drop;
  nn::Sequential blocks;
  nn::Linear transform;
  nn::LayerNorm last_norm;
  Tensor bias;
};
RUSH_MODULE(Bert);

struct LlamaSize {
  int64_t vocabulary, length, layers, heads, key_heads, width, hidden;
};

// A block of Llama: Touvron et al., "LLaMA: open and efficient foundation language models" (2023).
struct LlamaBlockImpl : nn::Module {
  explicit LlamaBlockImpl(const LlamaSize& size)
      : head(size.width / size.heads),
        norm_1(register_module("norm_1", nn::RMSNorm(nn::RMSNormOptions({size.width})))),
        norm_2(register_module("norm_2", nn::RMSNorm(nn::RMSNormOptions({size.width})))),
        q(register_module("q", linear(size.width, size.width))),
        k(register_module("k", linear(size.width, size.key_heads * head))),
        v(register_module("v", linear(size.width, size.key_heads * head))),
        out(register_module("out", linear(size.width, size.width))),
        gate(register_module("gate", linear(size.width, size.hidden))),
        up(register_module("up", linear(size.width, size.hidden))),
        down(register_module("down", linear(size.hidden, size.width))) {}

  static nn::Linear linear(int64_t in, int64_t to) { return nn::Linear(nn::LinearOptions(in, to).bias(false)); }

  // The angles' cosines and sines are (T, D).
  Tensor forward(const Tensor& x, const Tensor& cosines, const Tensor& sines) {  // (B, T, C)
    const Tensor y = x + attend(norm_1(x), cosines, sines), normed = norm_2(y);
    return y + down(silu(gate(normed)) * up(normed));
  }

  Tensor attend(const Tensor& x, const Tensor& cosines, const Tensor& sines) {
    // (B, T, heads * D) -> (B, heads, T, D)
    const auto split = [&](const Tensor& t) { return t.view({x.size(0), x.size(1), -1, head}).transpose(1, 2); };
    const auto rotate = [&](const Tensor& t) {
      const std::vector<Tensor> halves = t.chunk(2, -1);
      return t * cosines.to(t.scalar_type()) + cat({-halves[1], halves[0]}, -1) * sines.to(t.scalar_type());
    };
    const Tensor attended = scaled_dot_product_attention(rotate(split(q(x))), rotate(split(k(x))), split(v(x)), {}, 0,
                                                         /*is_causal=*/true, {}, /*enable_gqa=*/true);
    return out(attended.transpose(1, 2).reshape(x.sizes()));
  }

  int64_t head;  // D
  nn::RMSNorm norm_1, norm_2;
  nn::Linear q, k, v, out, gate, up, down;
};
RUSH_MODULE(LlamaBlock);

struct LlamaImpl : nn::Module {
  explicit LlamaImpl(const LlamaSize& size)
      : words(register_module("words", nn::Embedding(size.vocabulary, size.width))),
        norm(register_module("norm", nn::RMSNorm(nn::RMSNormOptions({size.width})))) {
    for (int64_t i = 0; i < size.layers; ++i)
      blocks.push_back(register_module("block" + std::to_string(i), LlamaBlock(size)));
    initialise(*this);
    const int64_t head = size.width / size.heads;
    const Tensor rates = pow(10000.0, arange(0, head, 2, kFloat32) / -static_cast<double>(head));
    const Tensor angles = outer(arange(size.length, kFloat32), rates);  // (T, D / 2)
    cosines = register_buffer("cosines", cat({angles, angles}, 1).cos());
    sines = register_buffer("sines", cat({angles, angles}, 1).sin());
  }

  Tensor forward(const Tensor& tokens) {  // scores of those that follow, (B, T, vocabulary)
    Tensor x = words(tokens);
    for (LlamaBlock& block : blocks) x = block(x, cosines, sines);
    return nn::functional::linear(norm(x), words->weight);
  }

  nn::Embedding words;
  std::vector<LlamaBlock> blocks;
  nn::RMSNorm norm;
  Tensor cosines, sines;
};
RUSH_MODULE(Llama);

// Zaremba, Sutskever, Vinyals, "Recurrent neural network regularization" (2014), without dropout.
struct LstmImpl : nn::Module {
  LstmImpl(int64_t vocabulary, int64_t width)
      : words(register_module("words", nn::Embedding(vocabulary, width))),
        lstm(register_module("lstm", nn::LSTM(nn::LSTMOptions(width, width).num_layers(2).batch_first(true)))),
        last(register_module("last", nn::Linear(width, vocabulary))) {}

  Tensor forward(const Tensor& tokens) {  // scores of those that follow, (B, T, vocabulary)
    return last(std::get<0>(lstm(words(tokens))));
  }

  nn::Embedding words;
  nn::LSTM lstm;
  nn::Linear last;
};
RUSH_MODULE(Lstm);

}  // namespace plain
