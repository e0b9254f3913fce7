// make_graphed_callables: forward and backward passes that are graphs.
#include <cmath>

#include "tests/cuda/graph_testing.h"

using namespace rush;
using namespace rush::testing;

TEST_CASE("graphed callables have the results and gradients of what they were made of" *
          doctest::skip(nothing_is_cached())) {
  manual_seed(2);
  nn::Sequential net(nn::Linear(12, 32), nn::Tanh(), nn::Linear(32, 4)),
      twin(nn::Linear(12, 32), nn::Tanh(), nn::Linear(32, 4));
  net->to(kCUDA);
  twin->to(kCUDA);
  load_state_dict(*twin, state_dict(*net));
  const Tensor sample = randn({6, 12}, on_gpu()).requires_grad_();
  const cuda::GraphedCallable graphed = cuda::make_graphed_callables(net, sample);
  for (const Tensor& p : net->parameters()) CHECK_FALSE(p.grad().defined());
  for (int i = 0; i < 3; ++i) {
    const Tensor x = randn({6, 12}, on_gpu()).requires_grad_(), same = x.detach().clone().requires_grad_();
    const Tensor y = graphed(x), expected = twin->forward(same);
    CHECK(equal(y, expected));
    y.square().sum().backward();
    expected.square().sum().backward();
    CHECK(equal(x.grad(), same.grad()));
    for (size_t p = 0; p < net->parameters().size(); ++p) {  // summed over the rounds
      CHECK(equal(net->parameters()[p].grad(), twin->parameters()[p].grad()));
    }
  }
  // Where no gradient is asked for there is none.
  {
    const NoGradGuard no_grad;
    CHECK_FALSE(graphed(sample).requires_grad());
  }
  const Tensor first = graphed(sample);
  const Tensor second = graphed(sample);
  CHECK_THROWS_AS(first.sum().backward(), Error);
  second.sum().backward();
  CHECK_THROWS_AS(graphed(randn({5, 12}, on_gpu())), ValueError);
  CHECK_THROWS_AS(graphed.forward({sample, sample}), ValueError);
  CHECK_THROWS_AS(cuda::make_graphed_callables(net, randn({6, 12})), ValueError);
}

TEST_CASE("graphed callables of several tensors" * doctest::skip(nothing_is_cached())) {
  const auto function = [](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{t[0] * t[1], (t[0] > 0).to(kFloat32), t[1].exp()};
  };
  const auto leaf = [](double value) { return full({4}, value, on_gpu()).requires_grad_(); };
  const cuda::GraphedCallable graphed = cuda::make_graphed_callables(function, {leaf(1), leaf(2)});
  const Tensor a = leaf(3), b = leaf(0.5);
  const std::vector<Tensor> out = graphed.forward({a, b});
  CHECK_FALSE(out[1].requires_grad());
  // Of one output only: the other's gradient is zero.
  out[0].sum().backward();
  CHECK(a.grad()[0].item<float>() == 0.5);
  CHECK(b.grad()[0].item<float>() == 3);
  const std::vector<Tensor> again = graphed.forward({a, b});
  (again[0].sum() + again[2].sum()).backward();
  CHECK(b.grad()[0].item<double>() == doctest::Approx(6 + std::exp(0.5)));
}
