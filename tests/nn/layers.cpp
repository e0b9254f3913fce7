// Modules that modules.cpp leaves out against PyTorch's numbers: shrinking activations, instance normalisation, bags,
// distances, folding, resizing, padding, margin losses; and what fixtures cannot show of them.
#include "tests/nn/torch_fixtures.h"

namespace {

using namespace rush;
using namespace rush::nn;
using namespace rush_tests;
namespace F = rush::nn::functional;

Tensor state(const json& fixture, const char* name) { return from_json(fixture["state"][name]); }

// Calls with the offsets of three bags.
auto bag() {
  return [](auto& module, const Outputs& inputs) {
    const Tensor offsets = tensor({0, 2, 2});
    return inputs.size() == 1 ? module.forward(inputs[0], offsets) : module.forward(inputs[0], offsets, inputs[1]);
  };
}

UpsampleOptions to_size(std::vector<int64_t> size) { return UpsampleOptions().size(std::move(size)); }
UpsampleOptions by_factor(std::vector<double> factor) { return UpsampleOptions().scale_factor(std::move(factor)); }

// The cases of make_layer_fixtures.py.
const FixtureCases kCases = {
    {"Hardshrink", [](auto&) { return Hardshrink(0.6); }},
    {"Softshrink", [](auto&) { return Softshrink(0.3); }},
    {"Threshold", [](auto&) { return Threshold(0.1, -2); }},
    {"PReLU", [](auto&) { return PReLU(); }},
    {"PReLU by channel", [](auto&) { return PReLU(PReLUOptions(3).init(0.1)); }},
    {"RReLU evaluated", [](auto&) { return evaluated(RReLU(RReLUOptions().lower(0.1).upper(0.4))); }},
    {"Softmax2d", [](auto&) { return Softmax2d(); }},
    {"InstanceNorm1d", [](auto&) { return InstanceNorm1d(InstanceNorm1dOptions(2).affine(true).eps(0.1)); }},
    {"InstanceNorm2d tracked",
     [](auto&) { return InstanceNorm2d(InstanceNorm2dOptions(2).track_running_stats(true)); }},
    {"InstanceNorm2d evaluated",
     [](auto&) { return evaluated(InstanceNorm2d(InstanceNorm2dOptions(2).track_running_stats(true))); }},
    {"InstanceNorm3d unbatched", [](auto&) { return InstanceNorm3d(2); }},
    {"LocalResponseNorm",
     [](auto&) { return LocalResponseNorm(LocalResponseNormOptions(2).alpha(0.3).beta(0.5).k(2)); }},
    {"LocalResponseNorm of images", [](auto&) { return LocalResponseNorm(LocalResponseNormOptions(3).alpha(0.5)); }},
    {"EmbeddingBag", [](auto&) { return EmbeddingBag(5, 3); }},
    {"EmbeddingBag sum",
     [](auto&) { return Subject(EmbeddingBag(EmbeddingBagOptions(5, 3).mode(kSum).padding_idx(-3)), bag()); }},
    {"EmbeddingBag max", [](auto&) { return Subject(EmbeddingBag(EmbeddingBagOptions(5, 3).mode(kMax)), bag()); }},
    {"CosineSimilarity", [](auto&) { return CosineSimilarity(CosineSimilarityOptions().dim(0)); }},
    {"PairwiseDistance", [](auto&) { return PairwiseDistance(PairwiseDistanceOptions().p(3).keepdim(true)); }},
    {"Fold",
     [](auto&) {
       return Fold(FoldOptions({3, 4}, 2).padding(1).stride({1, 2}));
     }},
    {"Unfold",
     [](auto&) {
       return Unfold(UnfoldOptions({2, 3}).dilation({2, 1}).padding(1));
     }},
    {"PixelShuffle", [](auto&) { return PixelShuffle(2); }},
    {"PixelUnshuffle", [](auto&) { return PixelUnshuffle(2); }},
    {"Upsample nearest", [](auto&) { return Upsample(by_factor({1.6})); }},
    {"Upsample linear", [](auto&) { return Upsample(to_size({5}).mode(kLinear)); }},
    {"Upsample bilinear",
     [](auto&) {
       return Upsample(to_size({3, 5}).mode(kBilinear).align_corners(true));
     }},
    {"Upsample bicubic",
     [](auto&) {
       return Upsample(by_factor({2, 1.5}).mode(kBicubic));
     }},
    {"Upsample trilinear", [](auto&) { return Upsample(by_factor({2}).mode(kTrilinear)); }},
    {"ReflectionPad1d",
     [](auto&) {
       return ReflectionPad1d(ReflectionPad1dOptions({1, 2}));
     }},
    {"ReflectionPad2d",
     [](auto&) {
       return ReflectionPad2d(ReflectionPad2dOptions({1, 0, 2, 1}));
     }},
    {"ReflectionPad3d", [](auto&) { return ReflectionPad3d(1); }},
    {"ReplicationPad1d", [](auto&) { return ReplicationPad1d(2); }},
    {"ReplicationPad2d",
     [](auto&) {
       return ReplicationPad2d(ReplicationPad2dOptions({1, 0, 2, 1}));
     }},
    {"ReplicationPad3d",
     [](auto&) {
       return ReplicationPad3d(ReplicationPad3dOptions({1, 0, 0, 1, 1, 0}));
     }},
    {"CircularPad2d",
     [](auto&) {
       return CircularPad2d(CircularPad2dOptions({1, 0, 2, 1}));
     }},
    {"ZeroPad2d",
     [](auto&) {
       return ZeroPad2d(ZeroPad2dOptions({1, -1, 0, 1}));
     }},
    {"ConstantPad1d",
     [](auto&) {
       return ConstantPad1d(ConstantPad1dOptions({1, 2}, 0.5));
     }},
    {"ConstantPad3d", [](auto&) { return ConstantPad3d(ConstantPad3dOptions(1, -1.5)); }},
    {"ConvTranspose1d",
     [](auto&) {
       return ConvTranspose1d(ConvTranspose1dOptions(4, 6, 3).stride(2).padding(1).output_padding(1).groups(2));
     }},
    {"ConvTranspose2d",
     [](auto&) {
       return ConvTranspose2d(ConvTranspose2dOptions(2, 1, {2, 3}).dilation({2, 1}).bias(false));
     }},
    {"ConvTranspose2d to a size",
     [](auto&) {
       return Subject(ConvTranspose2d(ConvTranspose2dOptions(1, 2, 2).stride(3)), [](auto& module, const Outputs& in) {
         return module.forward(in[0], IntArrayRef({7, 5}));
       });
     }},
    {"ConvTranspose3d", [](auto&) { return ConvTranspose3d(1, 2, 2); }},
    {"AdaptiveMaxPool1d", [](auto&) { return AdaptiveMaxPool1d(3); }},
    {"AdaptiveMaxPool2d",
     [](auto&) {
       return AdaptiveMaxPool2d(AdaptiveMaxPool2dOptions({2, std::nullopt}));
     }},
    {"AdaptiveMaxPool3d", [](auto&) { return AdaptiveMaxPool3d(1); }},
    {"LPPool1d", [](auto&) { return LPPool1d(LPPool1dOptions(3, 2)); }},
    {"LPPool2d",
     [](auto&) {
       return LPPool2d(LPPool2dOptions(2, {2, 3}).stride({1, 2}).ceil_mode(true));
     }},
    {"LPPool3d", [](auto&) { return LPPool3d(LPPool3dOptions(1.5, 2)); }},
    {"SoftMarginLoss", [](auto&) { return SoftMarginLoss(); }},
    {"PoissonNLLLoss", [](auto&) { return PoissonNLLLoss(PoissonNLLLossOptions().full(true)); }},
    {"PoissonNLLLoss of rates",
     [](auto&) { return PoissonNLLLoss(PoissonNLLLossOptions().log_input(false).reduction(kSum)); }},
    {"HingeEmbeddingLoss", [](auto&) { return HingeEmbeddingLoss(HingeEmbeddingLossOptions().margin(0.5)); }},
    {"MultiMarginLoss",
     [](auto& fixture) {
       return MultiMarginLoss(MultiMarginLossOptions().p(2).margin(0.7).weight(state(fixture, "weight")));
     }},
    {"MultiLabelMarginLoss", [](auto&) { return MultiLabelMarginLoss(); }},
    {"MultiLabelSoftMarginLoss", [](auto& fixture) { return MultiLabelSoftMarginLoss(state(fixture, "weight")); }},
    {"MarginRankingLoss", [](auto&) { return MarginRankingLoss(MarginRankingLossOptions().margin(0.2)); }},
    {"CosineEmbeddingLoss", [](auto&) { return CosineEmbeddingLoss(CosineEmbeddingLossOptions().margin(-0.3)); }},
    {"TripletMarginLoss", [](auto&) { return TripletMarginLoss(TripletMarginLossOptions().p(3).swap(true)); }},
    {"TripletMarginWithDistanceLoss",
     [](auto&) {
       const auto distance = [](const Tensor& a, const Tensor& b) { return (a - b).abs().sum({-1}); };
       return TripletMarginWithDistanceLoss(
           TripletMarginWithDistanceLossOptions().distance_function(distance).swap(true).margin(2).reduction(kSum));
     }},
};

TEST_CASE("layers have PyTorch's parameters, outputs and gradients") { check_fixtures("nn/layers.json", kCases); }

TEST_CASE("a layer's clone computes the same, and shares nothing") { check_clones("nn/layers.json", kCases); }

TEST_CASE("layers print as libtorch's do") {
  const std::pair<std::string, std::string> cases[] = {
      {printed(Softshrink(0.3)), "Softshrink(0.3)"},
      {printed(Threshold(0.5, 2)), "Threshold(threshold=0.5, value=2)"},
      {printed(PReLU(3)), "PReLU(num_parameters=3)"},
      {printed(RReLU(RReLUOptions().inplace(true))), "RReLU(lower=0.125, upper=0.333333, inplace=true)"},
      {printed(Softmax2d()), "Softmax2d()"},
      {printed(AlphaDropout(0.2)), "AlphaDropout(p=0.2, inplace=false)"},
      {printed(InstanceNorm1d(5)),
       "InstanceNorm1d(5, eps=1e-05, momentum=0.1, affine=false, track_running_stats=false)"},
      {printed(LocalResponseNorm(2)), "LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1)"},
      {printed(EmbeddingBag(EmbeddingBagOptions(5, 3).mode(kSum))),
       "EmbeddingBag(num_embeddings=5, embedding_dim=3, mode=kSum)"},
      {printed(CosineSimilarity()), "CosineSimilarity(dim=1, eps=1e-08)"},
      {printed(PairwiseDistance()), "PairwiseDistance(p=2, eps=1e-06, keepdim=false)"},
      {printed(Unfold(2)), "Unfold(kernel_size=[2, 2], dilation=[1, 1], padding=[0, 0], stride=[1, 1])"},
      {printed(PixelUnshuffle(2)), "PixelUnshuffle(downscale_factor=2)"},
      {printed(Upsample(by_factor({2}).mode(kBilinear))), "Upsample(scale_factor=[2], mode=kBilinear)"},
      {printed(ReflectionPad1d(2)), "ReflectionPad1d(padding=[2, 2])"},
      {printed(ConstantPad1d(ConstantPad1dOptions({1, 2}, 3.5))), "ConstantPad1d(padding=[1, 2], value=3.5)"},
      {printed(TripletMarginLoss()), "TripletMarginLoss(margin=1, p=2, eps=1e-06, swap=false)"},
      {printed(MSELoss()), "MSELoss()"},
      {printed(ConvTranspose1d(ConvTranspose1dOptions(3, 2, 4).output_padding(1).stride(2).bias(false))),
       "ConvTranspose1d(3, 2, kernel_size=4, stride=2, output_padding=1, bias=false)"},
  };
  for (const auto& [got, expected] : cases) {
    CHECK(got == "rush::nn::" + expected);
  }
}

TEST_CASE("alpha dropout keeps mean and deviation, and works on channels") {
  manual_seed(0);
  const Tensor x = randn({200, 200});
  const Tensor y = AlphaDropout(0.3)(x);
  CHECK(y.mean().item<double>() == doctest::Approx(0).epsilon(0.02));
  CHECK(y.std().item<double>() == doctest::Approx(1).epsilon(0.02));
  const Tensor channels = FeatureAlphaDropout(0.5)(ones({4, 50, 3}));
  CHECK(channels.select(2, 0).equal(channels.select(2, 2)));
  CHECK(!channels.select(2, 0).eq(channels[0][0][0]).all().item<bool>());
  CHECK(F::alpha_dropout(x).is_same(x));
  Tensor z = x.clone();
  CHECK(F::alpha_dropout(z, F::AlphaDropoutFuncOptions().training(true).inplace(true)).is_same(z));
  CHECK_THROWS_AS(AlphaDropout(1.5), ValueError);
  CHECK_THROWS_AS(F::feature_alpha_dropout(x, F::FeatureAlphaDropoutFuncOptions().p(-1)), ValueError);
}

TEST_CASE("rrelu draws slopes while training, gumbel_softmax draws from a distribution") {
  manual_seed(0);
  const Tensor x = full({1000}, -1.0).requires_grad_();
  const Tensor y = RReLU()(x);
  CHECK(y.max().item<double>() <= -1.0 / 8);
  CHECK(y.min().item<double>() >= -1.0 / 3);
  CHECK(y.mean().item<double>() == doctest::Approx(-11.0 / 48).epsilon(0.05));
  y.sum().backward();
  CHECK(x.grad().equal(-y.detach()));
  Tensor z = tensor({-1., 2.});
  CHECK(F::rrelu(z, F::RReLUFuncOptions().training(true).inplace(true)).is_same(z));
  CHECK(z[1].item<double>() == 2);

  const Tensor logits = tensor({0.7, 0.2, 0.1}).log().expand({2000, 3}).clone().requires_grad_();
  const Tensor hard = F::gumbel_softmax(logits, F::GumbelSoftmaxFuncOptions().hard(true));
  CHECK(hard.sum({0})[0].item<double>() == doctest::Approx(1400).epsilon(0.05));
  CHECK(hard.sum({1}).allclose(ones({2000})));
  (hard * arange(0, 3)).sum().backward();
  CHECK(logits.grad().ne(0).any().item<bool>());
}

TEST_CASE("a bag's rows may be limited, its table given, its last offset the end") {
  const Tensor rows = tensor({3., 4., 1., 0., 0., 1.}).view({3, 2});
  auto bags = EmbeddingBag::from_pretrained(rows, EmbeddingBagFromPretrainedOptions().include_last_offset(true));
  CHECK(!bags->weight.requires_grad());
  const Tensor means = bags(tensor({1, 2, 0}), tensor({0, 2, 3}));
  CHECK(means.allclose(tensor({0.5, 0.5, 3., 4.}).view({2, 2})));
  const auto limited = F::EmbeddingBagFuncOptions().max_norm(1).mode(kMax);
  CHECK(F::embedding_bag(tensor({0}).view({1, 1}), rows.clone(), limited).norm().item<double>() == doctest::Approx(1));
}

TEST_CASE("interpolation by areas, exactly nearest, and with its scale computed again") {
  const Tensor x = arange(0, 6).to(kFloat64).view({1, 1, 6});
  const auto row = [&](const F::InterpolateFuncOptions& options) { return F::interpolate(x, options).view({-1}); };
  const auto to_two = F::InterpolateFuncOptions().size(std::vector<int64_t>{2});
  CHECK(row(F::InterpolateFuncOptions(to_two).mode(kArea)).equal(tensor({1., 4.}, kFloat64)));
  CHECK(row(F::InterpolateFuncOptions(to_two).mode(kNearest)).equal(tensor({0., 3.}, kFloat64)));
  CHECK(row(F::InterpolateFuncOptions(to_two).mode(kNearestExact)).equal(tensor({1., 4.}, kFloat64)));
  const auto scaled = F::InterpolateFuncOptions().scale_factor(std::vector<double>{0.4}).recompute_scale_factor(true);
  CHECK(row(scaled).equal(tensor({0., 3.}, kFloat64)));
}

TEST_CASE("layers check what they get") {
  const Tensor x = ones({2, 3, 4});
  CHECK_THROWS_AS(Softmax2d()(ones({2, 2})), ValueError);
  CHECK_THROWS_AS(ConvTranspose1d(ConvTranspose1dOptions(3, 2, 2).groups(2)), ValueError);
  CHECK_THROWS_AS(ConvTranspose1d(ConvTranspose1dOptions(3, 2, 2).padding_mode(kReflect)), ValueError);
  const ConvTranspose1d transposed(ConvTranspose1dOptions(3, 2, 2).stride(2));
  CHECK_THROWS_AS(transposed(x, IntArrayRef({10})), ValueError);
  CHECK_THROWS_AS(transposed(x, IntArrayRef({8, 8})), ValueError);
  CHECK_THROWS_AS(transposed(ones({4})), ValueError);
  CHECK_THROWS_AS(F::rrelu(x, F::RReLUFuncOptions().lower(1).upper(0)), ValueError);
  CHECK_THROWS_AS(InstanceNorm2d(3)(ones({2, 2})), ValueError);
  CHECK_THROWS_AS(InstanceNorm1d(3)(ones({2, 3, 1})), ValueError);
  CHECK_THROWS_AS(LocalResponseNorm(0)(x), ValueError);
  CHECK_THROWS_AS(LocalResponseNorm(2)(ones({2, 2})), ValueError);
  CHECK_THROWS_AS(EmbeddingBag(EmbeddingBagOptions(5, 3).padding_idx(5)), ValueError);
  const EmbeddingBag bags(5, 3);
  CHECK_THROWS_AS(bags(tensor({0, 1})), ValueError);
  CHECK_THROWS_AS(bags(tensor({0, 1}).view({1, 2}), tensor({0})), ValueError);
  CHECK_THROWS_AS(bags(tensor({0, 1}).view({1, 2}), std::nullopt, ones({1, 2})), ValueError);
  CHECK_THROWS_AS(bags(tensor({7}).view({1, 1})), Error);
  CHECK_THROWS_AS(Upsample()(x), ValueError);
  CHECK_THROWS_AS(Upsample(by_factor({2}).mode(kBilinear))(x), ValueError);
  CHECK_THROWS_AS(Upsample(by_factor({2}).align_corners(true))(x), ValueError);
  CHECK_THROWS_AS(Upsample(to_size({2, 2, 2}))(x), ValueError);
  CHECK_THROWS_AS(PixelShuffle(2)(ones({1, 3, 2, 2})), Error);
  CHECK_THROWS_AS(ReflectionPad1d(4)(x), Error);
  CHECK_THROWS_AS(ReflectionPad2d(1)(ones({3, 3})), ValueError);
  CHECK_THROWS_AS(ReflectionPad2dOptions({1, 2}), ValueError);
  CHECK_THROWS_AS(MultiLabelSoftMarginLoss()(ones({2, 3}), ones({2, 2})), ValueError);
  CHECK_THROWS_AS(CosineSimilarity()(ones({2, 3}), ones({2, 4})), Error);
}

}  // namespace
