#include "tests/conformance/parity_models.h"

#include <vector>

#include "rushlight.h"

namespace conformance {

using nlohmann::json;
using rush::Tensor;
namespace nn = rush::nn;
namespace F = rush::nn::functional;

namespace {

// A pre-norm transformer block with GPT-2's names.
struct BlockImpl : nn::Module {
  int64_t heads;
  nn::LayerNorm ln_1, ln_2;
  nn::Linear c_attn, c_proj, c_fc, mlp_proj;

  BlockImpl(int64_t dim, int64_t heads)
      : heads(heads),
        ln_1(register_module("ln_1", nn::LayerNorm(std::vector<int64_t>{dim}))),
        ln_2(register_module("ln_2", nn::LayerNorm(std::vector<int64_t>{dim}))),
        c_attn(register_module("c_attn", nn::Linear(dim, 3 * dim))),
        c_proj(register_module("c_proj", nn::Linear(dim, dim))),
        c_fc(register_module("c_fc", nn::Linear(dim, 4 * dim))),
        mlp_proj(register_module("mlp_proj", nn::Linear(4 * dim, dim))) {}

  Tensor attention(const Tensor& x) {  // (B, T, D) -> (B, T, D)
    const int64_t batch = x.size(0), time = x.size(1), dim = x.size(2);
    const auto split = c_attn(x).chunk(3, 2);
    const auto by_head = [&](const Tensor& t) {  // (B, T, D) -> (B, H, T, D/H)
      return t.view({batch, time, heads, dim / heads}).transpose(1, 2);
    };
    const Tensor mixed = rush::scaled_dot_product_attention(by_head(split[0]), by_head(split[1]), by_head(split[2]),
                                                            /*attn_mask=*/{}, /*dropout_p=*/0, /*is_causal=*/true);
    return c_proj(mixed.transpose(1, 2).reshape({batch, time, dim}));
  }

  Tensor forward(Tensor x) {
    x = x + attention(ln_1(x));
    return x + mlp_proj(rush::gelu(c_fc(ln_2(x)), "tanh"));
  }
};
RUSH_MODULE(Block);

struct Gpt : nn::Module {
  nn::Embedding wte, wpe;
  nn::ModuleList h;
  nn::LayerNorm ln_f;

  Gpt(int64_t vocab, int64_t seq, int64_t dim, int64_t heads, int64_t layers)
      : wte(register_module("wte", nn::Embedding(vocab, dim))),
        wpe(register_module("wpe", nn::Embedding(seq, dim))),
        h(register_module("h", nn::ModuleList())),
        ln_f(register_module("ln_f", nn::LayerNorm(std::vector<int64_t>{dim}))) {
    for (int64_t i = 0; i < layers; ++i) h->push_back(Block(dim, heads));
  }

  Tensor forward(const Tensor& tokens) {  // (B, T) -> (B, T, vocabulary)
    const Tensor positions = rush::arange(tokens.size(1), rush::TensorOptions(rush::kInt64).device(tokens.device()));
    Tensor x = wte(tokens) + wpe(positions);
    for (const auto& block : *h) x = block->as<Block>()->forward(x);
    return rush::matmul(ln_f(x), wte->weight.t());
  }
};

struct Cnn : nn::Module {
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d bn1;
  nn::Linear fc;

  Cnn(int64_t c1, int64_t c2, int64_t features)
      : conv1(register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, c1, 3).padding(1)))),
        conv2(register_module("conv2", nn::Conv2d(nn::Conv2dOptions(c1, c2, 3).stride(2)))),
        bn1(register_module("bn1", nn::BatchNorm2d(c1))),
        fc(register_module("fc", nn::Linear(features, 10))) {}

  Tensor forward(Tensor x) {  // (B, 1, S, S) -> (B, 10)
    x = rush::max_pool2d(rush::relu(bn1(conv1(x))), 2);
    x = rush::relu(conv2(x));
    return fc(x.flatten(1));
  }
};

struct Lstm : nn::Module {
  nn::LSTM lstm;
  nn::Linear fc;

  Lstm(int64_t input, int64_t hidden, int64_t layers, int64_t classes)
      : lstm(register_module("lstm", nn::LSTM(nn::LSTMOptions(input, hidden).num_layers(layers).batch_first(true)))),
        fc(register_module("fc", nn::Linear(hidden, classes))) {}

  Tensor forward(const Tensor& x) {  // (B, T, input) -> (B, classes)
    const Tensor outputs = std::get<0>(lstm(x));
    return fc(outputs.select(1, -1));
  }
};

// A model that gives class scores in its last dimension, judged by cross entropy.
template <class Model>
ParityModel classifier(std::shared_ptr<Model> model) {
  return {model, [model](const Tensor& x, const Tensor& y) {
            const Tensor scores = model->forward(x);
            return F::cross_entropy(scores.reshape({-1, scores.size(-1)}), y.reshape({-1}));
          }};
}

}  // namespace

ParityModel make_parity_model(const json& recording) {
  const auto size = [&](const char* name) { return recording.at(name).get<int64_t>(); };
  const auto dim_of = [&](const char* parameter, size_t dim) {
    return recording.at("parameters").at(parameter).at(dim).get<int64_t>();
  };
  const std::string kind = recording.at("model");
  if (kind == "gpt") {
    return classifier(std::make_shared<Gpt>(size("vocab"), size("seq"), size("dim"), size("heads"), size("layers")));
  }
  if (kind == "cnn") return classifier(std::make_shared<Cnn>(size("c1"), size("c2"), dim_of("fc.weight", 1)));
  RUSH_CHECK_VALUE(kind == "lstm", "unknown model '", kind, "'");
  return classifier(std::make_shared<Lstm>(size("input"), size("hidden"), size("layers"), dim_of("fc.weight", 0)));
}

}  // namespace conformance
