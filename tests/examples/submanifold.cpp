// The submanifold convolution against dense ones, and that a net of it learns.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <functional>
#include <sstream>
#include <utility>

#include "core/dispatch/call.h"
#include "core/dispatch/registry.h"
#include "core/dispatch/value.h"
#include "examples/submanifold/classifier.h"
#include "rushlight.h"
#include "tests/examples/submanifold_testing.h"
#include "tests/io/decoded_png.h"

using namespace rush;
using namespace examples;
using namespace rush::testing;

namespace {

// The dense convolution that keeps the sizes, with the channels last on either side.
Tensor dense_conv(const Tensor& x, const Tensor& w, const Tensor& b) {
  const bool flat = x.dim() == 4;
  std::vector<int64_t> padding;
  for (const int64_t k : w.sizes().slice(2)) padding.push_back(k / 2);
  const Tensor moved = x.movedim(-1, 1);
  const std::optional<Tensor> bias = b.defined() ? std::optional(b) : std::nullopt;
  const Tensor y = flat ? conv2d(moved, w, bias, 1, padding) : conv3d(moved, w, bias, 1, padding);
  return y.movedim(1, -1);
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string printed(const nn::Module& module) {
  std::ostringstream text;
  text << module;
  return text.str();
}

}  // namespace

TEST_CASE("a submanifold convolution and its gradients are those of a dense one at the sites") {
  register_submanifold_conv(registry());
  manual_seed(1);
  const struct {
    DimVector sizes, kernel;
  } cases[] = {{{2, 5, 6, 3}, {3, 3}},       {{3, 7, 4, 2}, {5, 3}},       {{1, 4, 4, 2}, {1, 1}},
               {{2, 5, 4, 3, 2}, {3, 3, 3}}, {{2, 3, 6, 5, 1}, {1, 3, 5}}, {{1, 2, 2, 1}, {7, 7}},
               {{1, 1, 1, 1, 3}, {3, 3, 3}}};
  for (const auto& [sizes, kernel] : cases) {
    CAPTURE(IntArrayRef(sizes));
    for (const bool with_bias : {false, true}) {
      const Tensor pattern = random_sites(sizes);
      const Tensor features = pattern.values().detach().requires_grad_();
      const Tensor w = random_weight(4, sizes.back(), kernel).requires_grad_();
      const Tensor b = with_bias ? randn(4, kFloat64).requires_grad_() : Tensor();
      const Tensor y = submanifold_conv(at_sites_of(pattern, features), w, b);
      REQUIRE(y.is_coalesced());
      CHECK(equal(y.indices(), pattern.indices()));

      const Tensor dense = pattern.to_dense().requires_grad_();
      const Tensor dense_w = w.detach().clone().requires_grad_();
      const Tensor dense_b = with_bias ? b.detach().clone().requires_grad_() : Tensor();
      const Tensor expected = dense_conv(dense, dense_w, dense_b);
      CHECK(y.sizes() == expected.sizes());
      CHECK(allclose(y.values(), expected.sparse_mask(y.detach()).values(), 1e-12, 1e-12));

      const Tensor grad = randn(y.values().sizes(), kFloat64);
      y.values().backward(grad);
      expected.backward(at_sites_of(pattern, grad).to_dense());
      CHECK(allclose(features.grad(), dense.grad().sparse_mask(pattern).values(), 1e-12, 1e-12));
      CHECK(allclose(w.grad(), dense_w.grad(), 1e-12, 1e-12));
      if (with_bias) CHECK(allclose(b.grad(), dense_b.grad(), 1e-12, 1e-12));
    }
  }
}

TEST_CASE("derivatives of the submanifold convolution, first and second") {
  register_submanifold_conv(registry());
  manual_seed(2);
  for (const DimVector& sizes : {DimVector{2, 3, 4, 2}, DimVector{1, 3, 2, 3, 1}}) {
    const Tensor pattern = random_sites(sizes);
    const auto conv = [&](const Tensors& x) {
      return Tensors{submanifold_conv(at_sites_of(pattern, x[0]), x[1], x[2]).values()};
    };
    const DimVector kernel(sizes.size() - 2, 3);
    const Tensors inputs = {pattern.values().detach().requires_grad_(),
                            random_weight(2, sizes.back(), kernel).requires_grad_(),
                            randn(2, kFloat64).requires_grad_()};
    CHECK(autograd::gradcheck(conv, inputs));
    CHECK(autograd::gradgradcheck(conv, inputs));
  }
}

TEST_CASE("the gradient of a sparse input is sparse, and may come from a dense one") {
  register_submanifold_conv(registry());
  manual_seed(3);
  const Tensor x = random_sites({2, 4, 5, 3}).requires_grad_();
  const Tensor w = random_weight(2, 3, {3, 3});
  const Tensor dense = x.detach().to_dense().requires_grad_();
  submanifold_conv(x, w).to_dense(std::nullopt, /*masked_grad=*/false).square().sum().backward();
  // The squares of what the dense one has elsewhere do not count.
  const Tensor there = submanifold_conv(x.detach(), w);
  dense_conv(dense, w, {}).sparse_mask(there).values().square().sum().backward();
  REQUIRE(x.grad().is_sparse());
  CHECK(allclose(x.grad().to_dense(), dense.grad().sparse_mask(x.detach()).to_dense(), 1e-12, 1e-12));
}

TEST_CASE("grids without sites, with one, and far larger than memory") {
  register_submanifold_conv(registry());
  manual_seed(4);
  const Tensor w = random_weight(2, 3, {3, 3, 3}).requires_grad_(), b = randn(2, kFloat64).requires_grad_();
  const Tensor nothing = sparse_coo_tensor(empty({4, 0}, kInt64), empty({0, 3}, kFloat64), {2, 4, 4, 4, 3}, {}, true);
  const Tensor features = nothing.values().detach().requires_grad_();
  const Tensor none = submanifold_conv(at_sites_of(nothing, features), w, b);
  CHECK(none._nnz() == 0);
  CHECK(none.sizes() == IntArrayRef({2, 4, 4, 4, 2}));
  none.values().sum().backward();
  CHECK(w.grad().eq(0).all().item<bool>());
  CHECK(b.grad().eq(0).all().item<bool>());
  CHECK(features.grad().sizes() == IntArrayRef({0, 3}));

  // The last place of one batch and the first of the next are no neighbours; two in the second batch are.
  constexpr int64_t kFar = 1 << 20, kLast = kFar - 1;
  const Tensor corners =
      tensor({0, 1, 1, 1, kLast, 0, kLast, kLast, kLast, 0, kLast, kLast, kLast, 0, kLast - 1, kLast});
  const Tensor x = randn({4, 3}, kFloat64);
  const Tensor far = sparse_coo_tensor(corners.view({4, 4}), x, {2, kFar, kFar, kFar, 3}, {}, true);
  const NoGradGuard no_grad;
  const Tensor y = submanifold_conv(far, w).values();
  const auto factor = [&](int64_t k) { return w.select(2, 1).select(2, 1).select(2, k); };
  CHECK(allclose(y[0], factor(1).mv(x[0]), 1e-12, 1e-12));
  CHECK(allclose(y[1], factor(1).mv(x[1]), 1e-12, 1e-12));
  CHECK(allclose(y[2], factor(1).mv(x[2]) + factor(2).mv(x[3]), 1e-12, 1e-12));
  CHECK(allclose(y[3], factor(1).mv(x[3]) + factor(0).mv(x[2]), 1e-12, 1e-12));

  CHECK_THROWS_AS(RuleBook(far, {2 * kFar + 1, 2 * kFar + 1, 2 * kFar + 1}), ValueError);
}

TEST_CASE("layers on the same sites share rules") {
  register_submanifold_conv(registry());
  manual_seed(5);
  const Tensor x = random_sites({2, 6, 6, 3});
  const Tensor w1 = random_weight(4, 3, {3, 3}), w2 = random_weight(2, 4, {3, 3});
  const RuleBook rules(x, {3, 3});
  CHECK(rules.sites == x._nnz());
  CHECK(rules.counts[4] == rules.sites);  // every site meets itself in the middle
  const Tensor y = submanifold_conv(submanifold_conv(x, w1, {}, rules), w2, {}, rules);
  CHECK(equal(y.values(), submanifold_conv(submanifold_conv(x, w1), w2).values()));
  CHECK_THROWS_AS(submanifold_conv(random_sites({2, 7, 7, 3}), w1, {}, rules), ValueError);
  CHECK_THROWS_AS(submanifold_conv(x, random_weight(4, 3, {5, 3}), {}, rules), ValueError);
}

TEST_CASE("the operator can be called by name, and has a kernel for sparse tensors alone") {
  register_submanifold_conv(registry());
  register_submanifold_conv(registry());
  manual_seed(6);
  const Tensor x = random_sites({1, 5, 5, 2}), w = random_weight(3, 2, {3, 3});
  const RuleBook rules(x, {3, 3});
  const Stack out =
      call_operator("examples::submanifold_conv", {x, w, Value(), rules.pairs, std::vector<int64_t>(rules.counts)});
  REQUIRE(out.size() == 1);
  CHECK(equal(out[0].as<Tensor>().values(), submanifold_conv(x, w).values()));
  CHECK_THROWS_AS(examples::ops::submanifold_conv(x.to_dense(), w, std::nullopt, rules.pairs, rules.counts),
                  NotImplementedError);
}

TEST_CASE("what does not fit a submanifold convolution is one line") {
  register_submanifold_conv(registry());
  manual_seed(7);
  const Tensor x = random_sites({1, 5, 5, 2}), w = random_weight(3, 2, {3, 3});
  const auto fails = [](const std::function<void()>& call, const std::string& with) {
    const std::string text = message_of(call);
    CAPTURE(text);
    CHECK(text.starts_with("submanifold_conv: "));
    CHECK(text.find(with) != text.npos);
    CHECK(text.find('\n') == text.npos);
  };
  const Tensor twice = sparse_coo_tensor(cat({x.indices(), x.indices()}, 1), cat({x.values(), x.values()}), x.sizes());
  fails([&] { submanifold_conv(twice, w); }, "not coalesced");
  fails([&] { submanifold_conv(x, random_weight(3, 4, {3, 3})); }, "2 channels");
  fails([&] { submanifold_conv(x, random_weight(3, 2, {3, 2})); }, "odd kernel size");
  fails([&] { submanifold_conv(x, random_weight(3, 2, {3, 3, 3})); }, "4 dimensions");
  fails([&] { submanifold_conv(x, w, randn(2, kFloat64)); }, "bias of shape (3)");
  fails([&] { submanifold_conv(x, w, randn(3)); }, "the bias float32");
  fails([&] { submanifold_conv(x, w.to(kFloat32)); }, "one floating-point dtype");
  fails([&] { submanifold_conv(x.to_dense(), w); }, "expected a COO tensor");
  fails([&] { submanifold_conv(x.to_dense().to_sparse(), w); }, "expected a COO tensor");
  CHECK_THROWS_AS(submanifold_conv(x, random_weight(3, 4, {3, 3})), ValueError);
  CHECK_THROWS_AS(submanifold_conv(x, w.to(kFloat32)), TypeError);
  const RuleBook rules(x, {3, 3});
  CHECK_THROWS_AS(examples::ops::submanifold_conv(x, w, std::nullopt, rules.pairs.narrow(1, 0, 1), rules.counts),
                  ValueError);
  CHECK_THROWS_AS(examples::ops::submanifold_conv(x, w, std::nullopt, rules.pairs + 100, rules.counts), IndexError);
}

TEST_CASE("the module has the parameters of a dense convolution") {
  register_submanifold_conv(registry());
  manual_seed(8);
  const SubmanifoldConv flat(2, 4, IntArrayRef({3, 5})), deep(2, 4, IntArrayRef({3, 3, 3}), false);
  const nn::Conv2d dense(nn::Conv2dOptions(2, 4, {3, 5}).padding({1, 2}));
  {
    const NoGradGuard no_grad;
    dense->weight.copy_(flat->weight);
    dense->bias.copy_(flat->bias);
  }
  CHECK(flat->weight.abs().max().item<double>() <= 1 / std::sqrt(30.0));
  const Tensor x = random_sites({2, 6, 7, 2}, kFloat32);
  const Tensor y = flat->forward(x);
  const Tensor expected = dense->forward(x.to_dense().movedim(-1, 1)).movedim(1, -1);
  CHECK(allclose(y.values(), expected.sparse_mask(y.detach()).values(), 1e-5, 1e-6));
  CHECK(deep->parameters().size() == 1);
  CHECK(deep->forward(random_sites({1, 3, 3, 3, 2}, kFloat32)).sizes() == IntArrayRef({1, 3, 3, 3, 4}));
  CHECK(printed(*flat) == "examples::SubmanifoldConv(2, 4, kernel_size=(3, 5))");
  CHECK(printed(*deep) == "examples::SubmanifoldConv(2, 4, kernel_size=(3, 3, 3), bias=false)");
  const auto copy = std::dynamic_pointer_cast<SubmanifoldConvImpl>(flat->clone());
  CHECK(equal(copy->weight, flat->weight));
  CHECK_FALSE(copy->weight.is_same(flat->weight));
}

TEST_CASE("a halved grid has the sums of eight places") {
  manual_seed(9);
  const Tensor pattern = random_sites({2, 4, 5, 6, 3});
  const Tensor features = pattern.values().detach().requires_grad_();
  const Tensor half = halved(at_sites_of(pattern, features));
  const Tensor whole = nn::functional::pad(pattern.to_dense(), nn::functional::PadFuncOptions({0, 0, 0, 0, 0, 1}));
  const Tensor expected = whole.view({2, 2, 2, 3, 2, 3, 2, 3}).sum({2, 4, 6});
  CHECK(half.is_coalesced());
  CHECK(half.sizes() == IntArrayRef({2, 2, 3, 3, 3}));
  CHECK(allclose(half.to_dense(), expected, 1e-12, 1e-12));
  CHECK(autograd::gradcheck([&](const Tensors& x) { return Tensors{halved(at_sites_of(pattern, x[0])).values()}; },
                            {features}));
}

TEST_CASE("shapes are the sites of what they are called") {
  manual_seed(10);
  const Shapes shapes = make_shapes(3, kCPU);
  REQUIRE(shapes.labels.numel() == 18);
  CHECK(shapes.sites.is_coalesced());
  CHECK(shapes.sites.values().eq(1).all().item<bool>());
  // How far the sites are from their middle: the deviation over the mean.
  constexpr std::array<std::pair<double, double>, kShapeNames.size()> kSpread = {
      {{0.02, 0.06}, {0.14, 0.2}, {0.28, 0.37}, {0.45, 0.65}, {0.06, 0.085}, {0.02, 0.065}}};
  const Tensor dense = shapes.sites.to_dense().squeeze(4);
  for (int64_t i = 0; i < 18; ++i) {
    const auto kind = static_cast<size_t>(i / 3);
    CAPTURE(kShapeNames[kind]);
    CHECK(shapes.labels[i].item<int64_t>() == i / 3);
    const Tensor points = dense[i].nonzero().to(kFloat64);  // (n, 3)
    const Tensor centred = points - points.mean({0});
    const Tensor distance = centred.norm(2, {1});
    const double spread = (distance.std() / distance.mean()).item<double>();
    CHECK(spread > kSpread[kind].first);
    CHECK(spread < kSpread[kind].second);
    const Tensor axes = linalg_svdvals(centred);                       // descending
    CHECK((kind == 0) == ((axes[2] / axes[1]).item<double>() < 0.1));  // a circle is flat
  }
  CHECK_THROWS_AS(make_shapes(0, kCPU), ValueError);
  const rush::testing::DecodedPng png = rush::testing::decode_png(draw_shapes(shapes, 2));
  for (size_t kind = 0; kind < kShapeNames.size(); ++kind) {
    CAPTURE(kShapeNames[kind]);
    size_t letters = 0, lit = 0;  // dark pixels of the name, bright ones of the shapes
    for (size_t y = 8 + kind * 100; y < 8 + kind * 100 + 96; ++y) {
      for (size_t x = 0; x < 8 + 6 * 12; ++x) letters += png.at(x, y) == 0;
      for (size_t x = 8 + 6 * 12 + 8; x < png.width - 8; ++x) lit += png.at(x, y) > 70 && png.at(x, y) < 255;
    }
    CHECK(letters > 150);
    CHECK(lit > 1000);
  }
  CHECK_THROWS_AS(draw_shapes(shapes, 4), ValueError);
}

TEST_CASE("a net of submanifold convolutions learns to tell shapes apart") {
  register_submanifold_conv(registry());
  const double accuracy = accuracy_after(50, 6, kCPU);
  CHECK_MESSAGE(accuracy > 0.8, "accuracy ", accuracy);
}
