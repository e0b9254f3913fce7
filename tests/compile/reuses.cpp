// Fused loops that write where they have read what nothing reads again: on a GPU they take no memory of their own.
#include <doctest/doctest.h>

#include <tuple>
#include <vector>

#include "backends/cuda/cuda.h"
#include "rushlight.h"

using namespace rush;

namespace {

constexpr int64_t kSide = 1024;

// The most bytes that a call needs beside what was there before it; 0 on a CPU, where loops do not reuse.
template <class Call>
int64_t most_bytes(const Call& call) {
#ifdef RUSH_HAS_CUDA
  if (get_default_device().is_cuda()) {
    for (int i = 0; i < 3; ++i) call();
    cuda::reset_peak_memory_stats();
    const auto before = static_cast<int64_t>(cuda::memory_allocated());
    call();
    return static_cast<int64_t>(cuda::max_memory_allocated()) - before;
  }
#endif
  call();
  return 0;
}

}  // namespace

TEST_CASE("a loop writes where it has read what nothing reads again") {
  const NoGradGuard no_grad;
  const Tensor x = randn({kSide, kSide}), w = randn({kSide, kSide}), given = x.clone();
  const int64_t bytes = x.nbytes();
  const auto function = [&](const Tensor& in) { return (in.matmul(w) * 2).relu().add(1); };
  auto compiled = compile(function);
  CHECK(most_bytes([&] { compiled(x); }) <= bytes + bytes / 2);
  CHECK(compiled(x).equal(function(x)));
  CHECK(x.equal(given));
}

TEST_CASE("a loop leaves what is read, returned or seen elsewhere") {
  const NoGradGuard no_grad;
  const Tensor x = randn({kSide, 64}), w = randn({64, 64});
  std::vector<Tensor> kept;
  const auto function = [&](const Tensor& in) {
    const Tensor product = in.matmul(w), again = product.matmul(w);
    const Tensor turned = again.view({64, kSide});
    const Tensor from_product = (product * 2).relu(), from_again = (again - 1).sigmoid();
    return std::tuple(product, from_product, from_again, turned.sum(0), (in * 3).exp());
  };
  auto compiled = compile(function);
  const auto as_list = [](const auto& results) { return compiler::to_list(results); };
  for (int call = 0; call < 4; ++call) {
    const Tensor in = randn({kSide, 64}), before = in.clone();
    const std::vector<Tensor> actual = as_list(compiled(in)), expected = as_list(function(in));
    for (size_t i = 0; i < actual.size(); ++i) CHECK(actual[i].allclose(expected[i]));
    CHECK(in.equal(before));
    kept.insert(kept.end(), actual.begin(), actual.end());
    kept.insert(kept.end(), expected.begin(), expected.end());
  }
  // Nor does a later call write what an earlier one has returned.
  for (size_t i = 0; i < kept.size(); i += 10) {
    for (size_t j = 0; j < 5; ++j) CHECK(kept[i + j].allclose(kept[i + 5 + j]));
  }
}

TEST_CASE("the gradient behind a residual block's ReLU may take the memory of the ReLU's output") {
  manual_seed(4);
  const Tensor x = randn({kSide, 64}).requires_grad_(), w = randn({64, 64}).requires_grad_();
  const Tensor weight = rand({64}).add(0.5).requires_grad_(), bias = rand({64}).requires_grad_();
  const std::vector<Tensor> leaves{x, w, weight, bias};
  for (const bool is_returned : {false, true}) {
    const auto function = [&](const Tensor& in) {
      const Tensor norm = batch_norm(in.matmul(w), weight, bias, {}, {}, true, 0.1, 1e-5, true);
      const Tensor block = (norm + in).relu();
      const Tensor loss = block.matmul(w).square().mean();
      loss.backward();
      return std::tuple(loss.detach(), is_returned ? block.detach() : Tensor(loss.detach()));
    };
    auto compiled = compile(function);
    const auto results = [&](auto& call) {
      for (const Tensor& leaf : leaves) leaf.mutable_grad().reset();
      const auto [loss, block] = call(x);
      std::vector<Tensor> all{loss, block};
      for (const Tensor& leaf : leaves) all.push_back(leaf.grad());
      return all;
    };
    for (int call = 0; call < 3; ++call) {
      const std::vector<Tensor> actual = results(compiled), expected = results(function);
      for (size_t i = 0; i < actual.size(); ++i) CHECK(actual[i].allclose(expected[i], 1e-3, 1e-4));
    }
  }
}

TEST_CASE("a training whose loops reuse memory has the gradients of the function") {
  manual_seed(3);
  nn::Sequential net(nn::Linear(64, 128), nn::GELU(), nn::Linear(128, 128), nn::Tanh(), nn::Linear(128, 8));
  const Tensor x = randn({32, 64});
  const auto gradients = [&](const auto& step) {
    net->zero_grad();
    step(x);
    std::vector<Tensor> all;
    for (const Tensor& p : net->parameters()) all.push_back(p.grad().clone());
    return all;
  };
  const auto function = [&](const Tensor& in) {
    const Tensor loss = net->forward(in).square().mean();
    loss.backward();
    return loss;
  };
  auto compiled = compile(function);
  for (int call = 0; call < 4; ++call) {
    const std::vector<Tensor> actual = gradients([&](const Tensor& in) { return compiled(in); });
    const std::vector<Tensor> expected = gradients(function);
    for (size_t i = 0; i < actual.size(); ++i) CHECK(actual[i].allclose(expected[i], 1e-4, 1e-6));
  }
}
