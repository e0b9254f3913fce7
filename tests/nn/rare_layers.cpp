// Layers and functions that layers.cpp leaves out against PyTorch's numbers: CTC, unpooling, fractional pooling,
// adaptive softmax, sampling of images.
#include "tests/nn/torch_fixtures.h"

namespace {

using namespace rush;
using namespace rush::nn;
using namespace rush_tests;
namespace F = rush::nn::functional;

Tensor samples(const json& fixture) { return from_json(fixture["state"]["_random_samples"]); }

Subject ctc(const CTCLossOptions& options) {
  return Subject(CTCLoss(options),
                 [](auto& module, const Outputs& in) { return module.forward(in[0], in[1], in[2], in[3]); });
}

template <class M>
Subject indexed(const M& module) {
  return Subject(module, [](auto& pool, const Outputs& in) { return pool.forward_with_indices(in[0]); });
}

template <class M>
Subject unpooled(const M& module, std::optional<std::vector<int64_t>> size = std::nullopt) {
  return Subject(module, [size](auto& pool, const Outputs& in) { return pool.forward(in[0], in[1], size); });
}

Subject adaptive(const AdaptiveLogSoftmaxWithLossOptions& options) {
  return Subject(AdaptiveLogSoftmaxWithLoss(options), [](auto& module, const Outputs& in) {
    const ASMoutput result = module.forward(in[0], in[1]);
    return std::make_tuple(result.output, result.loss);
  });
}

// A function without a module.
template <class Function>
Subject of_function(const Function& function) {
  return Subject(Identity(), [function](auto&, const Outputs& in) { return function(in); });
}

Subject resized(const F::InterpolateFuncOptions& options) {
  return of_function([options](const Outputs& in) {
    return F::interpolate(in[0], F::InterpolateFuncOptions(options).antialias(true));
  });
}
F::InterpolateFuncOptions interpolate_to(std::vector<int64_t> size) {
  return F::InterpolateFuncOptions().size(std::move(size));
}

Subject sampled(const F::GridSampleFuncOptions& options) {
  return of_function([options](const Outputs& in) { return F::grid_sample(in[0], in[1], options); });
}

Subject affine(std::vector<int64_t> size, bool align_corners) {
  return of_function([=](const Outputs& in) { return F::affine_grid(in[0], size, align_corners); });
}

using Ratio = FractionalMaxPool2dOptions::ExpandingArrayDouble;

// The cases of make_rare_layer_fixtures.py.
const FixtureCases kRareLayerFixtures = {
    {"CTCLoss", [](auto&) { return ctc({}); }},
    {"CTCLoss of one", [](auto&) { return ctc(CTCLossOptions().blank(2)); }},
    {"CTCLoss of sequences in a row", [](auto&) { return ctc(CTCLossOptions().blank(4).reduction(kNone)); }},
    {"CTCLoss without infinity", [](auto&) { return ctc(CTCLossOptions().reduction(kSum).zero_infinity(true)); }},
    {"GaussianNLLLoss", [](auto&) { return GaussianNLLLoss(); }},
    {"GaussianNLLLoss by row",
     [](auto&) { return GaussianNLLLoss(GaussianNLLLossOptions().full(true).reduction(kNone)); }},
    {"GaussianNLLLoss of least variance",
     [](auto&) { return GaussianNLLLoss(GaussianNLLLossOptions().eps(0.5).reduction(kSum)); }},
    {"MaxPool1d with indices", [](auto&) { return indexed(MaxPool1d(MaxPool1dOptions(3).stride(2))); }},
    {"MaxPool2d with indices", [](auto&) { return indexed(MaxPool2d(MaxPool2dOptions(2).padding(1))); }},
    {"MaxPool3d with indices", [](auto&) { return indexed(MaxPool3d(MaxPool3dOptions(2).stride(1))); }},
    {"AdaptiveMaxPool2d with indices",
     [](auto&) {
       return indexed(AdaptiveMaxPool2d(AdaptiveMaxPool2dOptions({2, std::nullopt})));
     }},
    {"MaxUnpool1d", [](auto&) { return unpooled(MaxUnpool1d(MaxUnpool1dOptions(3).stride(2))); }},
    {"MaxUnpool2d", [](auto&) { return unpooled(MaxUnpool2d(2)); }},
    {"MaxUnpool2d to a size",
     [](auto&) {
       return unpooled(MaxUnpool2d(2), std::vector<int64_t>{2, 1, 5, 4});
     }},
    {"MaxUnpool3d",
     [](auto&) {
       return unpooled(MaxUnpool3d(MaxUnpool3dOptions({2, 3, 2}).stride({2, 1, 2}).padding({0, 1, 0})));
     }},
    {"FractionalMaxPool2d",
     [](auto& fixture) {
       const FractionalMaxPool2dOptions options(2);
       return FractionalMaxPool2d(FractionalMaxPool2dOptions(options)
                                      .output_size(ExpandingArray<2>({2, 3}))
                                      ._random_samples(samples(fixture)));
     }},
    {"FractionalMaxPool2d with indices",
     [](auto& fixture) {
       return indexed(FractionalMaxPool2d(
           FractionalMaxPool2dOptions({3, 2}).output_ratio(Ratio({0.5, 0.7}))._random_samples(samples(fixture))));
     }},
    {"FractionalMaxPool3d",
     [](auto& fixture) {
       return FractionalMaxPool3d(FractionalMaxPool3dOptions({1, 2, 3})
                                      .output_size(ExpandingArray<3>({3, 1, 2}))
                                      ._random_samples(samples(fixture)));
     }},
    {"CrossMapLRN2d", [](auto&) { return CrossMapLRN2d(CrossMapLRN2dOptions(3).alpha(0.5)); }},
    {"CrossMapLRN2d of even size",
     [](auto&) { return CrossMapLRN2d(CrossMapLRN2dOptions(4).alpha(0.8).beta(0.5).k(2)); }},
    {"CrossMapLRN2d of few channels",
     [](auto&) { return CrossMapLRN2d(CrossMapLRN2dOptions(9).alpha(0.8).beta(0.5).k(2)); }},
    {"AdaptiveLogSoftmaxWithLoss",
     [](auto&) {
       return adaptive(AdaptiveLogSoftmaxWithLossOptions(6, 9, {3, 5}).div_value(2));
     }},
    {"AdaptiveLogSoftmaxWithLoss of one",
     [](auto&) { return adaptive(AdaptiveLogSoftmaxWithLossOptions(4, 5, {2}).head_bias(true)); }},
    {"AdaptiveLogSoftmaxWithLoss of all",
     [](auto&) {
       return Subject(AdaptiveLogSoftmaxWithLoss(AdaptiveLogSoftmaxWithLossOptions(6, 9, {3, 5}).div_value(2)),
                      [](auto& module, const Outputs& in) {
                        return std::make_tuple(module.log_prob(in[0]), module.predict(in[0]));
                      });
     }},
    {"ChannelShuffle", [](auto&) { return ChannelShuffle(3); }},
    {"UpsamplingNearest2d",
     [](auto&) { return UpsamplingNearest2d(UpsamplingNearest2dOptions().scale_factor(std::vector<double>{2})); }},
    {"UpsamplingBilinear2d",
     [](auto&) {
       return UpsamplingBilinear2d(UpsamplingBilinear2dOptions().size(std::vector<int64_t>{3, 5}));
     }},
    {"antialiased bilinear",
     [](auto&) {
       return resized(interpolate_to({3, 8}).mode(kBilinear));
     }},
    {"antialiased bilinear by factor",
     [](auto&) {
       return resized(F::InterpolateFuncOptions().scale_factor(std::vector<double>{0.6, 0.3}).mode(kBilinear));
     }},
    {"antialiased bicubic",
     [](auto&) {
       return resized(interpolate_to({4, 7}).mode(kBicubic));
     }},
    {"antialiased bicubic aligned",
     [](auto&) {
       return resized(interpolate_to({3, 2}).mode(kBicubic).align_corners(true));
     }},
    {"grid_sample", [](auto&) { return sampled({}); }},
    {"grid_sample of the border",
     [](auto&) {
       return sampled(F::GridSampleFuncOptions().mode(kBicubic).padding_mode(kBorder).align_corners(true));
     }},
    {"grid_sample of volumes", [](auto&) { return sampled(F::GridSampleFuncOptions().padding_mode(kReflection)); }},
    {"grid_sample of the nearest", [](auto&) { return sampled(F::GridSampleFuncOptions().mode(kNearest)); }},
    {"pdist", [](auto&) { return of_function([](const Outputs& in) { return F::pdist(in[0], 3); }); }},
    {"affine_grid",
     [](auto&) {
       return affine({2, 1, 2, 3}, false);
     }},
    {"affine_grid of volumes",
     [](auto&) {
       return affine({1, 1, 2, 1, 3}, true);
     }},
};

TEST_CASE("rare layers have PyTorch's parameters, outputs and gradients") {
  check_fixtures("nn/rare_layers.json", kRareLayerFixtures);
}

TEST_CASE("a rare layer's clone computes the same, and shares nothing") {
  check_clones("nn/rare_layers.json", kRareLayerFixtures);
}

TEST_CASE("rare layers print as libtorch's do") {
  const std::pair<std::string, std::string> cases[] = {
      {printed(CTCLoss()), "CTCLoss()"},
      {printed(GaussianNLLLoss()), "GaussianNLLLoss()"},
      {printed(MaxUnpool2d(2)), "MaxUnpool2d(kernel_size=[2, 2], stride=[2, 2], padding=[0, 0])"},
      {printed(FractionalMaxPool3d(FractionalMaxPool3dOptions(2).output_ratio(0.5))), "FractionalMaxPool3d()"},
      {printed(CrossMapLRN2d(4)), "CrossMapLRN2d(4, alpha=0.0001, beta=0.75, k=1)"},
      {printed(ChannelShuffle(2)), "ChannelShuffle(groups=2)"},
      {printed(UpsamplingNearest2d(UpsamplingOptions().size(std::vector<int64_t>{4, 4}))),
       "UpsamplingNearest2d(size=[4, 4], mode=kNearest)"},
      {printed(Functional(relu)), "Functional()"},
  };
  for (const auto& [got, expected] : cases) CHECK(got == "rush::nn::" + expected);
}

TEST_CASE("ctc_loss takes its lengths as lists too") {
  const Tensor x = log_softmax(randn({6, 2, 4}), 2);
  const Tensor labels = tensor({1, 2, 3, 3, 1, 0}).view({2, 3});
  CHECK(F::ctc_loss(x, labels, {6, 5}, {3, 2}).equal(F::ctc_loss(x, labels, tensor({6, 5}), tensor({3, 2}))));
}

TEST_CASE("fractional pooling draws its windows at each call, and finds the largest of each") {
  manual_seed(3);
  const Tensor x = rand({2, 3, 40, 40});
  FractionalMaxPool2d pool(FractionalMaxPool2dOptions(2).output_ratio(0.7));
  const auto [first, where] = pool->forward_with_indices(x);
  CHECK(first.sizes() == IntArrayRef({2, 3, 28, 28}));
  CHECK(x.flatten(2).gather(2, where.flatten(2)).equal(first.flatten(2)));
  CHECK(!pool(x).equal(first));
}

TEST_CASE("what a pool with indices found, unpooling puts back") {
  const Tensor x = rand({2, 3, 4, 6}) + 1;
  const auto [largest, where] = MaxPool2d(2)->forward_with_indices(x);
  const Tensor back = MaxUnpool2d(2)(largest, where);
  CHECK(back.sizes() == x.sizes());
  CHECK(back.eq(x).sum().item<int64_t>() == largest.numel());
  CHECK(back.sum().item<double>() == doctest::Approx(largest.sum().item<double>()));
}

TEST_CASE("an adaptive softmax is a distribution, of which predict finds the peak") {
  manual_seed(0);
  AdaptiveLogSoftmaxWithLoss softmax(AdaptiveLogSoftmaxWithLossOptions(8, 20, {4, 10}).div_value(2));
  const Tensor x = randn({30, 8}) * 4;
  const Tensor all = softmax->log_prob(x);
  CHECK(all.exp().sum({1}).allclose(ones({30})));
  CHECK(softmax->predict(x).equal(all.argmax(1)));
  const Tensor target = randint(20, {30}, kInt64);
  const ASMoutput result = softmax(x, target);
  CHECK(result.output.allclose(all.gather(1, target.unsqueeze(1)).squeeze(1)));
  const std::vector<std::string> names{"head.weight", "tail.0.0.weight", "tail.0.1.weight", "tail.1.0.weight",
                                       "tail.1.1.weight"};
  CHECK(softmax->named_parameters().keys() == names);
  const Tensor before = softmax->head->weight.clone();
  softmax->reset_parameters();
  CHECK(!softmax->head->weight.equal(before));
}

TEST_CASE("Functional makes modules of functions") {
  Sequential net(Linear(3, 3), Functional(relu), Functional([](const Tensor& x) { return x * 2; }));
  CHECK(net(ones({2, 3})).ge(0).all().item<bool>());
  const Tensor x = tensor({-1., 2.});
  CHECK(Functional([](const Tensor& t, double a, double b) { return t * a + b; }, 3.0, 1.0)(x).equal(x * 3 + 1));
  CHECK(Functional(elu, 2, 1, 0.5)(x).equal(elu(x, 2, 1, 0.5)));
  const auto copy = Functional(relu)->clone();
  CHECK(copy->as<Functional>()->forward(x).equal(relu(x)));
  CHECK_FALSE(copy->is_training());
}

TEST_CASE("rare layers check what they get") {
  const Tensor x = ones({1, 2, 4, 4});
  const auto [largest, where] = F::max_pool2d_with_indices(x, F::MaxPool2dFuncOptions(2));
  CHECK_THROWS_AS(MaxUnpool1d(2)(largest, where), ValueError);
  CHECK_THROWS_AS(MaxUnpool2d(2)(largest, where, std::vector<int64_t>{6, 4}), ValueError);
  CHECK_THROWS_AS(MaxUnpool2d(2)(largest, where, std::vector<int64_t>{4}), ValueError);
  CHECK_THROWS_AS(MaxUnpool2d(2)(largest, where + 16), IndexError);
  CHECK_THROWS_AS(FractionalMaxPool2d(2), ValueError);
  CHECK_THROWS_AS(FractionalMaxPool2d(FractionalMaxPool2dOptions(2).output_ratio(0.5).output_size(2)), ValueError);
  CHECK_THROWS_AS(FractionalMaxPool2d(FractionalMaxPool2dOptions(2).output_ratio(1.0)), ValueError);
  CHECK_THROWS_AS(F::fractional_max_pool2d(x, 2), ValueError);
  CHECK_THROWS_AS(F::fractional_max_pool3d(ones({2, 2}), F::FractionalMaxPool3dFuncOptions(2).output_size(1)),
                  ValueError);
  CHECK_THROWS_AS(CrossMapLRN2d(0), ValueError);
  CHECK_THROWS_AS(CrossMapLRN2d(3)(ones({2, 2, 2})), ValueError);
  CHECK_THROWS_AS(AdaptiveLogSoftmaxWithLoss(4, 6, std::vector<int64_t>{}), ValueError);
  CHECK_THROWS_AS(AdaptiveLogSoftmaxWithLoss(4, 6, std::vector<int64_t>{3, 2}), ValueError);
  CHECK_THROWS_AS(AdaptiveLogSoftmaxWithLoss(4, 6, std::vector<int64_t>{6}), ValueError);
  AdaptiveLogSoftmaxWithLoss softmax(4, 6, std::vector<int64_t>{2});
  CHECK_THROWS_AS(softmax(ones({2, 4}), tensor({0, 6})), IndexError);
  CHECK_THROWS_AS(softmax(ones({2, 4}), tensor({0})), ValueError);
  CHECK_THROWS_AS(ChannelShuffle(3)(x), ValueError);
  CHECK_THROWS_AS(GaussianNLLLoss()(ones({2}), ones({2}), -ones({2})), ValueError);
  CHECK_THROWS_AS(GaussianNLLLoss()(ones({2, 3}), ones({2, 3}), ones({3, 3})), ValueError);
  CHECK_THROWS_AS(F::interpolate(x, F::InterpolateFuncOptions(interpolate_to({2, 2})).antialias(true)), ValueError);
  CHECK_THROWS_AS(F::interpolate(x[0], F::InterpolateFuncOptions(interpolate_to({2})).mode(kLinear).antialias(true)),
                  ValueError);
  CHECK_THROWS_AS(
      F::grid_sample(ones({1, 1, 2, 2, 2}), ones({1, 1, 1, 1, 3}), F::GridSampleFuncOptions().mode(kBicubic)),
      ValueError);
  CHECK_THROWS_AS(F::affine_grid(ones({1, 2, 3}), {1, 1, 2}), ValueError);
  CHECK_THROWS_AS(F::affine_grid(ones({1, 2, 3}), {2, 1, 2, 2}), ValueError);
  CHECK_THROWS_AS(F::affine_grid(ones({1, 2, 3}), {1, 1, 0, 2}), ValueError);
  CHECK_THROWS_AS(F::affine_grid(ones({1, 2, 3}, kInt64), {1, 1, 2, 2}), TypeError);
}

}  // namespace
