#include "core/ops/pointwise/cast_all.h"

#include <doctest/doctest.h>

#include "core/amp/autocast.h"
#include "core/amp/cast_weights.h"
#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

TEST_CASE("cast_all gives what conversions one by one give") {
  manual_seed(5);
  std::vector<Tensor> tensors;
  for (int64_t i = 0; i < 120; ++i) {  // more than a launch takes
    const int64_t n = i == 3 ? 0 : i == 7 ? 100'003 : 1 + 11 * i;
    tensors.push_back(randn({n + 1}).slice(0, i % 2, n + i % 2));  // every other one off by an element
  }
  tensors.push_back(randn({6, 4}).t());
  tensors.push_back(randn({6, 4}).slice(1, 0, 3));
  tensors.push_back(randn({5}).to(kFloat64));
  tensors.push_back(randn({5}).to(kBFloat16));
  tensors.push_back(full({2}, std::numeric_limits<double>::infinity()));
  for (const ScalarType dtype : {kBFloat16, kFloat16, kFloat32, kFloat64}) {
    const std::vector<Tensor> casts = cast_all(tensors, dtype);
    REQUIRE(casts.size() == tensors.size());
    for (size_t i = 0; i < casts.size(); ++i) {
      INFO(i);
      CHECK(casts[i].scalar_type() == dtype);
      const Tensor alone = tensors[i].to(dtype, /*non_blocking=*/false, /*copy=*/true);
      CHECK(equal(casts[i], alone));
      CHECK(casts[i].strides() == alone.strides());
      CHECK((casts[i].numel() == 0 || casts[i].data_ptr() != tensors[i].data_ptr()));
    }
  }
  CHECK(cast_all({}, kFloat32).empty());
}

TEST_CASE("gradients of cast_all arrive in each tensor's dtype, and only where there are any") {
  const autograd::TensorFunction sum = [](const Tensors& t) {
    const std::vector<Tensor> casts = cast_all(t, kFloat64);
    return Tensors{casts[0] * casts[0] + 1, casts[1].sin()};
  };
  check_gradients(sum, {leaf({3, 2}), leaf({4}, 1)});
  check_gradients(sum, {leaf({}), leaf({2, 2}, 1)});
  const Tensor a = ones({2}).requires_grad_(), b = ones({3}, kFloat64).requires_grad_(), c = ones({4}).requires_grad_();
  const std::vector<Tensor> casts = cast_all({a, b, c}, kBFloat16);
  (casts[0].sum() + casts[1].sum() * 2).backward();
  CHECK(equal(a.grad(), ones({2})));
  CHECK(equal(b.grad(), full({3}, 2, kFloat64)));
  CHECK_FALSE(c.grad().defined());
}

TEST_CASE("cast_all refuses what it cannot cast") {
  CHECK_THROWS_AS(cast_all({ones({2})}, kInt32), TypeError);
  CHECK_THROWS_AS(cast_all({ones({2}), ones({2}, kInt64)}, kFloat32), TypeError);
  CHECK_THROWS_AS(cast_all({ones({2}), Tensor()}, kFloat32), ValueError);
  CHECK_THROWS_AS(cast_all({ones({2}), empty({2}, kMeta)}, kFloat32), ValueError);
}

TEST_CASE("weights that are cast together give the results and gradients of weights that are cast one by one") {
  manual_seed(6);
  const DeviceType device = get_default_device().type;
  const Tensor x = randn({5, 8});
  const auto run = [&](bool together) {
    manual_seed(7);
    nn::Sequential net(nn::Linear(8, 16), nn::LayerNorm(nn::LayerNormOptions({16})), nn::Linear(16, 4));
    Tensor loss;
    {
      const autocast::Autocast scope(device, kBFloat16);
      if (together) {
        autocast::cast_weights(net->parameters());
        CHECK(autocast::cache_size() == 6);
        autocast::cast_weights(net->parameters());  // all are there
        CHECK(autocast::cache_size() == 6);
      }
      loss = net->forward(x).to(kFloat32).square().sum();
      CHECK(autocast::cache_size() == (together ? 6 : 4));
    }
    CHECK(autocast::cache_size() == 0);
    loss.backward();
    std::vector<Tensor> results = {loss.detach()};
    for (const Tensor& p : net->parameters()) results.push_back(p.grad());
    return results;
  };
  const std::vector<Tensor> together = run(true), apart = run(false);
  REQUIRE(together.size() == apart.size());
  for (size_t i = 0; i < apart.size(); ++i) {
    CHECK(together[i].scalar_type() == kFloat32);
    CHECK(equal(together[i], apart[i]));
  }
}

TEST_CASE("weights are cast only where autocast is on, and again after they were written") {
  const DeviceType device = get_default_device().type;
  const Tensor w = ones({2, 2}).requires_grad_(), x = ones({2, 2});
  autocast::cast_weights({w});
  CHECK(autocast::cache_size() == 0);
  const autocast::Autocast scope(device, kBFloat16);
  autocast::cast_weights({w, x});  // x is no weight
  CHECK(autocast::cache_size() == 1);
  {
    const NoGradGuard no_grad;
    w.mul_(3);
  }
  autocast::cast_weights({w});
  CHECK(mm(x, w)[0][0].item<float>() == 6);
}

}  // namespace
