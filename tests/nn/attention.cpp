// Multi-head attention and transformers against PyTorch's numbers; what the fixtures leave out.
#include <cmath>

#include "tests/nn/torch_fixtures.h"

namespace {

using namespace rush;
using namespace rush::nn;
using namespace rush_tests;
namespace F = rush::nn::functional;

Tensor causal() { return ones({3, 3}).triu(1).to(kBool); }
// (N, S): the first sample's last key is padding.
Tensor padding() { return tensor({0., 0., 1., 0., 0., 0.}).view({2, 3}).to(kBool); }

// Attention of its one input to itself.
template <class... Options>
auto to_itself(Options... options) {
  return
      [=](auto& module, const Outputs& inputs) { return module.forward(inputs[0], inputs[0], inputs[0], options...); };
}

template <class Options>
Options small(Options options) {
  return options.dim_feedforward(5).dropout(0);
}
TransformerEncoderLayerOptions encoder_layer() { return small(TransformerEncoderLayerOptions(4, 2)); }
TransformerDecoderLayerOptions decoder_layer() { return small(TransformerDecoderLayerOptions(4, 2)); }

MultiheadAttention extended() {
  return MultiheadAttention(MultiheadAttentionOptions(4, 2).add_bias_kv(true).add_zero_attn(true));
}

// The cases of make_attention_fixtures.py.
const FixtureCases kAttentionFixtures = {
    {"MultiheadAttention", [](auto&) { return MultiheadAttention(4, 2); }},
    {"MultiheadAttention of itself", [](auto&) { return Subject(MultiheadAttention(4, 2), to_itself()); }},
    {"MultiheadAttention of other sizes",
     [](auto&) {
       const auto options = MultiheadAttentionOptions(4, 2).bias(false).kdim(3).vdim(2).batch_first(true);
       return Subject(MultiheadAttention(options), [](auto& module, const Outputs& in) {
         return module.forward(in[0], in[1], in[2], {}, true, {}, /*average_attn_weights=*/false);
       });
     }},
    {"MultiheadAttention extended", [](auto&) { return Subject(extended(), to_itself(padding(), true, causal())); }},
    {"MultiheadAttention without weights",
     [](auto&) { return Subject(extended(), to_itself(padding(), false, causal())); }},
    {"MultiheadAttention with added scores",
     [](auto&) {
       return Subject(MultiheadAttention(4, 2), [](auto& module, const Outputs& in) {
         return module.forward(in[0], in[1], in[2], {}, true, in[3]);
       });
     }},
    {"MultiheadAttention unbatched", [](auto&) { return MultiheadAttention(4, 2); }},
    {"TransformerEncoderLayer", [](auto&) { return TransformerEncoderLayer(encoder_layer()); }},
    {"TransformerEncoderLayer masked",
     [](auto&) {
       const auto options = encoder_layer().norm_first(true).activation(kGELU).batch_first(true).layer_norm_eps(0.1);
       return Subject(TransformerEncoderLayer(options),
                      [](auto& module, const Outputs& in) { return module.forward(in[0], causal(), padding()); });
     }},
    {"TransformerDecoderLayer", [](auto&) { return TransformerDecoderLayer(decoder_layer()); }},
    {"TransformerDecoderLayer masked",
     [](auto&) {
       return Subject(TransformerDecoderLayer(decoder_layer().norm_first(true)), [](auto& module, const Outputs& in) {
         return module.forward(in[0], in[1], causal(), {}, {}, padding());
       });
     }},
    {"TransformerEncoder",
     [](auto&) {
       return TransformerEncoder(
           TransformerEncoderOptions(encoder_layer(), 2).norm(AnyModule(LayerNorm(std::vector<int64_t>{4}))));
     }},
    {"TransformerDecoder", [](auto&) { return TransformerDecoder(TransformerDecoderLayer(decoder_layer()), 2); }},
    {"Transformer",
     [](auto&) {
       return Subject(Transformer(small(TransformerOptions(4, 2, 1, 2))), [](auto& module, const Outputs& in) {
         return module.forward(in[0], in[1], {}, causal(), {}, padding(), {}, padding());
       });
     }},
    {"Transformer without biases",
     [](auto&) {
       return Subject(Transformer(small(TransformerOptions(4, 2, 1, 1)).bias(false)),
                      [](auto& module, const Outputs& in) {
                        return module.forward(in[0], in[1], {}, causal(), {}, padding(), {}, padding());
                      });
     }},
};

TEST_CASE("attention and transformers have PyTorch's parameters, outputs and gradients") {
  check_fixtures("nn/attention.json", kAttentionFixtures);
}

TEST_CASE("a transformer's clone computes the same, and shares nothing") {
  check_clones("nn/attention.json", kAttentionFixtures);
}

TEST_CASE("a transformer's clone is trained apart from it, custom parts included") {
  const Transformer original(
      small(TransformerOptions(4, 2, 1, 1))
          .custom_encoder(AnyModule(TransformerEncoder(TransformerEncoderOptions(encoder_layer(), 1)))));
  const Tensor src = randn({3, 2, 4}), tgt = randn({2, 2, 4});
  const Tensor before = original(src, tgt);
  const auto clone = std::dynamic_pointer_cast<TransformerImpl>(original->clone());
  CHECK(clone->forward(src, tgt).equal(before));
  {
    const NoGradGuard no_grad;
    for (const Tensor& parameter : clone->parameters()) parameter.add_(1);
  }
  CHECK(!clone->forward(src, tgt).equal(before));
  CHECK(original(src, tgt).equal(before));
}

TEST_CASE("dropout acts on attention while training only") {
  manual_seed(0);
  const MultiheadAttention attention(MultiheadAttentionOptions(4, 2).dropout(0.5));
  const Tensor x = randn({6, 2, 4});
  const auto weights = [&] { return std::get<1>(attention(x, x, x)); };
  CHECK(weights().eq(0).any().item<bool>());
  attention->eval();
  CHECK(weights().sum({-1}).allclose(ones({2, 6})));
  CHECK(!std::get<1>(attention(x, x, x, std::nullopt, false)).defined());
}

TEST_CASE("attention starts as PyTorch's does") {
  const MultiheadAttention attention(MultiheadAttentionOptions(64, 4).add_bias_kv(true));
  CHECK(attention->in_proj_weight.abs().max().item<double>() <= std::sqrt(6.0 / (64 + 3 * 64)));
  CHECK(attention->in_proj_bias.eq(0).all().item<bool>());
  CHECK(attention->out_proj->bias.eq(0).all().item<bool>());
  CHECK(attention->bias_k.ne(0).any().item<bool>());
}

TEST_CASE("an encoder runs in a Sequential; activations may be functions; masks are square") {
  const auto twice = [](const Tensor& x) { return x * 2; };
  Sequential net(TransformerEncoderLayer(encoder_layer().activation(twice)), Linear(4, 1));
  CHECK(net(randn({3, 2, 4})).sizes() == IntArrayRef({3, 2, 1}));
  const Tensor mask = Transformer::generate_square_subsequent_mask(3);
  CHECK(mask.scalar_type() == kFloat32);
  CHECK(mask.isinf().equal(causal()));
  CHECK(mask.tril().eq(0).all().item<bool>());
}

TEST_CASE("attention prints its parts") {
  CHECK(printed(MultiheadAttention(4, 2)) ==
        "rush::nn::MultiheadAttention(\n"
        "  (out_proj): rush::nn::Linear(in_features=4, out_features=4, bias=true)\n)");
}

TEST_CASE("attention and transformers check what they get") {
  CHECK_THROWS_AS(MultiheadAttention(5, 2), ValueError);
  CHECK_THROWS_AS(MultiheadAttention(4, 0), ValueError);
  CHECK_THROWS_AS(MultiheadAttention(MultiheadAttentionOptions(4, 2).dropout(2)), ValueError);
  CHECK_THROWS_AS(TransformerEncoder(TransformerEncoderLayer(encoder_layer()), 0), ValueError);
  const MultiheadAttention attention(4, 2);
  const Tensor x = ones({3, 2, 4});
  CHECK_THROWS_AS(attention(ones({3, 2, 3}), x, x), ValueError);
  CHECK_THROWS_AS(attention(x, ones({2, 2, 4}), x), ValueError);
  CHECK_THROWS_AS(attention(x, ones({3, 1, 4}), ones({3, 1, 4})), ValueError);
  CHECK_THROWS_AS(attention(x, ones({3, 4}), x), ValueError);
  CHECK_THROWS_AS(attention(x, x, x, padding().t()), ValueError);
  CHECK_THROWS_AS(attention(x, x, x, std::nullopt, true, ones({2, 3})), ValueError);
  CHECK_THROWS_AS(attention(x, x, x, std::nullopt, true, ones({3, 3}, kInt64)), TypeError);
  const Transformer transformer(small(TransformerOptions(4, 2, 1, 1)));
  CHECK_THROWS_AS(transformer(x, ones({3, 1, 4})), ValueError);
  CHECK_THROWS_AS(transformer(x, ones({3, 2, 5})), ValueError);
  const auto options =
      F::MultiheadAttentionForwardFuncOptions(4, 2, attention->in_proj_weight, attention->in_proj_bias, {}, {}, false,
                                              0, attention->out_proj->weight, attention->out_proj->bias);
  auto fixed = options;
  fixed.static_k(ones({4, 3, 2})).static_v(ones({4, 3, 2}));
  CHECK(std::get<1>(F::multi_head_attention_forward(x, x, x, fixed)).allclose(full({2, 3, 3}, 1.0 / 3)));
  fixed.static_k(ones({3, 3, 2}));
  CHECK_THROWS_AS(F::multi_head_attention_forward(x, x, x, fixed), ValueError);
}

}  // namespace
