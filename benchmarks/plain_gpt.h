// GPT-2's net from plain modules, as a user writes it: none of the fused operators that examples/gpt calls by name.
#pragma once
#include "rushlight.h"

namespace plain {

using namespace rush;

struct GptSize {
  int64_t vocabulary, length, layers, heads, width;
  double dropout = 0;
};

struct BlockImpl : nn::Module {
  explicit BlockImpl(const GptSize& size)
      : heads(size.heads),
        dropout(size.dropout),
        ln_1(register_module("ln_1", nn::LayerNorm(nn::LayerNormOptions({size.width})))),
        ln_2(register_module("ln_2", nn::LayerNorm(nn::LayerNormOptions({size.width})))),
        c_attn(register_module("c_attn", nn::Linear(size.width, 3 * size.width))),
        attn_proj(register_module("attn_proj", nn::Linear(size.width, size.width))),
        c_fc(register_module("c_fc", nn::Linear(size.width, 4 * size.width))),
        mlp_proj(register_module("mlp_proj", nn::Linear(4 * size.width, size.width))),
        drop(register_module("drop", nn::Dropout(size.dropout))) {}

  Tensor forward(const Tensor& x) {  // (B, T, C)
    const int64_t batch = x.size(0), time = x.size(1), width = x.size(2);
    std::vector<Tensor> parts = c_attn(ln_1(x)).split(width, 2);
    for (Tensor& part : parts) part = part.view({batch, time, heads, width / heads}).transpose(1, 2);
    const Tensor attended = scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, is_training() ? dropout : 0,
                                                         /*is_causal=*/true);
    const Tensor y = x + drop(attn_proj(attended.transpose(1, 2).reshape({batch, time, width})));
    return y + drop(mlp_proj(gelu(c_fc(ln_2(y)), "tanh")));
  }

  int64_t heads;
  double dropout;
  nn::LayerNorm ln_1, ln_2;
  nn::Linear c_attn, attn_proj, c_fc, mlp_proj;
  nn::Dropout drop;
};
RUSH_MODULE(Block);

struct GptImpl : nn::Module {
  explicit GptImpl(const GptSize& size)
      : wte(register_module("wte", nn::Embedding(size.vocabulary, size.width))),
        wpe(register_module("wpe", nn::Embedding(size.length, size.width))),
        drop(register_module("drop", nn::Dropout(size.dropout))),
        ln_f(register_module("ln_f", nn::LayerNorm(nn::LayerNormOptions({size.width})))) {
    for (int64_t i = 0; i < size.layers; ++i) blocks->push_back(Block(size));
    register_module("blocks", blocks);
    const NoGradGuard no_grad;
    for (Tensor& p : parameters()) {
      if (p.dim() == 2) p.normal_(0, 0.02);
    }
  }

  // The loss, of tokens and those that follow them, (B, T) each.
  Tensor forward(const Tensor& tokens, const Tensor& next) {
    const Tensor positions = arange(tokens.size(1), tokens.options());
    Tensor x = drop(wte(tokens) + wpe(positions));
    for (const auto& block : *blocks) x = block->as<Block>()->forward(x);
    const Tensor logits = nn::functional::linear(ln_f(x), wte->weight);
    return nn::functional::cross_entropy(logits.flatten(0, 1), next.flatten());
  }

  nn::Embedding wte, wpe;
  nn::Dropout drop;
  nn::ModuleList blocks;
  nn::LayerNorm ln_f;
};
RUSH_MODULE(Gpt);

}  // namespace plain
