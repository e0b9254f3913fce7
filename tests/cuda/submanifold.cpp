// The submanifold convolution of examples/submanifold, and its derivative, on the GPU.
#include <doctest/doctest.h>

#include "core/dispatch/registry.h"
#include "examples/submanifold/submanifold_conv.h"
#include "rushlight.h"
#include "tests/compute_sanitizer.h"
#include "tests/cuda/gpu.h"
#include "tests/examples/submanifold_testing.h"

using namespace rush;
using namespace rush::testing;
using namespace examples;

namespace {

// The output's values and the gradients of features, weight and bias, on the CPU.
Tensors convolved(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& grad, Device device) {
  const auto leaf = [&](const Tensor& t) { return t.detach().to(device).requires_grad_(); };
  const Tensor features = leaf(x.values()), weight = leaf(w), bias = leaf(b);
  const Tensor y = submanifold_conv(at_sites_of(x.to(device), features), weight, bias).values();
  y.backward(grad.to(device));
  return {y.detach().cpu(), features.grad().cpu(), weight.grad().cpu(), bias.grad().cpu()};
}

}  // namespace

TEST_CASE("submanifold convolutions are the CPU's" * doctest::skip(!cuda::is_available())) {
  register_submanifold_conv(registry());
  manual_seed(1);
  const struct {
    DimVector sizes, kernel;
  } cases[] = {
      {{2, 40, 33, 5}, {3, 3}}, {{3, 17, 14, 13, 4}, {3, 3, 3}}, {{1, 9, 8, 2}, {5, 1}}, {{1, 1, 1, 1, 3}, {3, 3, 3}}};
  for (const auto& [sizes, kernel] : cases) {
    CAPTURE(IntArrayRef(sizes));
    const Tensor x = random_sites(sizes), w = random_weight(7, sizes.back(), kernel), b = randn(7, kFloat64);
    const RuleBook here(x, kernel), there(x.to(kGpu), kernel);
    CHECK(equal(here.pairs, there.pairs.cpu()));
    CHECK(here.counts == there.counts);
    const Tensor grad = randn({x._nnz(), 7}, kFloat64);
    const Tensors expected = convolved(x, w, b, grad, kCPU), got = convolved(x, w, b, grad, kGpu);
    for (size_t i = 0; i < expected.size(); ++i) CHECK(allclose(got[i], expected[i], 1e-11, 1e-11));
  }
  const Tensor x = random_sites({1, 4, 4, 2}), w = random_weight(3, 2, {3, 3});
  CHECK_THROWS_AS(submanifold_conv(x.to(kGpu), w), ValueError);
  CHECK_THROWS_AS(submanifold_conv(x, w.to(kGpu)), ValueError);
  const Tensor nothing =
      sparse_coo_tensor(x.indices().narrow(1, 0, 0), x.values().narrow(0, 0, 0), x.sizes(), {}, true);
  CHECK(submanifold_conv(nothing.to(kGpu), w.to(kGpu))._nnz() == 0);
}

TEST_CASE("submanifold convolutions repeat their results on the GPU" * doctest::skip(!cuda::is_available())) {
  register_submanifold_conv(registry());
  manual_seed(2);
  const Tensor x = random_sites({4, 20, 20, 20, 16}, kFloat32).to(kGpu);
  const Tensor w = random_weight(16, 16, {3, 3, 3}).to(kFloat32).to(kGpu);
  const Tensor first = submanifold_conv(x, w).values();
  for (int i = 0; i < 5; ++i) CHECK(equal(submanifold_conv(x, w).values(), first));
}

TEST_CASE("a net of submanifold convolutions learns on the GPU" * doctest::skip(!cuda::is_available())) {
  register_submanifold_conv(registry());
  const bool watched = under_compute_sanitizer();  // every step runs the same kernels
  const double accuracy = accuracy_after(watched ? 3 : 100, watched ? 2 : 8, kGpu);
  CHECK_MESSAGE((watched || accuracy > 0.9), "accuracy ", accuracy);
}
