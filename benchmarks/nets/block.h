// A transformer's block from plain modules, as a user writes it: none of the fused operators that examples/gpt calls by
// name.
#pragma once
#include "rushlight.h"

namespace plain {

using namespace rush;

struct BlockOptions {
  int64_t width, heads;
  double dropout = 0;
  bool is_causal = false, norm_first = true;
  const char* gelu = "none";  // or "tanh"
};

struct BlockImpl : nn::Module {
  explicit BlockImpl(const BlockOptions& o)
      : options(o),
        ln_1(register_module("ln_1", nn::LayerNorm(nn::LayerNormOptions({o.width})))),
        ln_2(register_module("ln_2", nn::LayerNorm(nn::LayerNormOptions({o.width})))),
        c_attn(register_module("c_attn", nn::Linear(o.width, 3 * o.width))),
        attn_proj(register_module("attn_proj", nn::Linear(o.width, o.width))),
        c_fc(register_module("c_fc", nn::Linear(o.width, 4 * o.width))),
        mlp_proj(register_module("mlp_proj", nn::Linear(4 * o.width, o.width))),
        drop(register_module("drop", nn::Dropout(o.dropout))) {}

  Tensor forward(const Tensor& x) {  // (B, T, C)
    if (options.norm_first) {
      const Tensor y = x + attend(ln_1(x));
      return y + feed_forward(ln_2(y));
    }
    const Tensor y = ln_1(x + attend(x));
    return ln_2(y + feed_forward(y));
  }

  Tensor attend(const Tensor& x) {
    const int64_t batch = x.size(0), time = x.size(1), width = x.size(2);
    std::vector<Tensor> parts = c_attn(x).split(width, 2);
    for (Tensor& part : parts) part = part.view({batch, time, options.heads, width / options.heads}).transpose(1, 2);
    const double dropout = is_training() ? options.dropout : 0;
    const Tensor attended =
        scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, dropout, options.is_causal);  // (B, H, T, D)
    return drop(attn_proj(attended.transpose(1, 2).reshape({batch, time, width})));
  }
  Tensor feed_forward(const Tensor& x) { return drop(mlp_proj(gelu(c_fc(x), options.gelu))); }

  BlockOptions options;
  nn::LayerNorm ln_1, ln_2;
  nn::Linear c_attn, attn_proj, c_fc, mlp_proj;
  nn::Dropout drop;
};
RUSH_MODULE(Block);

inline nn::Sequential blocks_of(int64_t layers, const BlockOptions& options) {
  nn::Sequential blocks;
  for (int64_t i = 0; i < layers; ++i) blocks->push_back(Block(options));
  return blocks;
}

// A normal distribution of standard deviation 0.02 for matrices and embeddings, as GPT-2 and BERT begin with.
inline void initialise(nn::Module& net) {
  const NoGradGuard no_grad;
  for (Tensor& p : net.parameters()) {
    if (p.dim() == 2) p.normal_(0, 0.02);
  }
}

}  // namespace plain
