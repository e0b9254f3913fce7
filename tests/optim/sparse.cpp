// Embeddings with sparse gradients, and the optimisers that touch only the rows used.
#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/ops/sparse/sparse_testing.h"

using namespace rush;
using namespace rush::testing;

namespace {

// Steps of `Sparse` on the sparse gradients and of `Dense` on the dense ones of the same embedding.
template <class MakeSparse, class MakeDense>
void check_same_steps(const MakeSparse& make_sparse, const MakeDense& make_dense, bool all_rows) {
  const Tensor start = smooth({6, 3});
  const Tensor a = start.clone().requires_grad_(), b = start.clone().requires_grad_();
  auto sparse_optimizer = make_sparse(a);
  auto dense_optimizer = make_dense(b);
  for (int64_t i = 0; i < 5; ++i) {
    const Tensor at = all_rows ? longs({0, 1, 2, 3, 4, 5, i}) : longs({1, 4, 1, 2});
    sparse_optimizer.zero_grad();
    dense_optimizer.zero_grad();
    (embedding(a, at, -1, false, true) * smooth({at.numel(), 3}, kFloat64, static_cast<double>(i))).sum().backward();
    (embedding(b, at) * smooth({at.numel(), 3}, kFloat64, static_cast<double>(i))).sum().backward();
    CHECK(a.grad().layout() == kSparse);
    CHECK(b.grad().layout() == kStrided);
    CHECK(close(a.grad(), b.grad()));
    sparse_optimizer.step();
    dense_optimizer.step();
  }
  CHECK(close(a.detach(), b.detach()));
  CHECK_FALSE(close(a.detach(), start));
}

}  // namespace

TEST_CASE("SGD takes the same steps on sparse gradients as on dense ones") {
  for (const bool maximize : {false, true}) {
    const auto make = [&](const Tensor& t) { return optim::SGD({t}, optim::SGDOptions(0.3).maximize(maximize)); };
    check_same_steps(make, make, false);
  }
  const Tensor w = smooth({6, 3}).requires_grad_();
  embedding(w, longs({1, 2}), -1, false, true).sum().backward();
  CHECK_THROWS_AS(optim::SGD({w}, optim::SGDOptions(0.3).momentum(0.9)).step(), ValueError);
  CHECK_THROWS_AS(optim::SGD({w}, optim::SGDOptions(0.3).weight_decay(0.1)).step(), ValueError);
  CHECK_THROWS_AS(optim::SGD({w}, optim::SGDOptions(0.3).capturable(true)).step(), ValueError);
  CHECK_THROWS_AS(optim::Adam({w}).step(), ValueError);
  CHECK(equal(w.detach(), smooth({6, 3})));
}

TEST_CASE("SparseAdam takes Adam's steps where every row is used") {
  for (const bool maximize : {false, true}) {
    check_same_steps(
        [&](const Tensor& t) {
          return optim::SparseAdam({t}, optim::SparseAdamOptions(0.1).betas({0.8, 0.95}).eps(1e-30).maximize(maximize));
        },
        [&](const Tensor& t) {
          return optim::Adam({t}, optim::AdamOptions(0.1).betas({0.8, 0.95}).eps(1e-30).maximize(maximize));
        },
        true);
  }
}

TEST_CASE("SparseAdam touches only the rows used") {
  const Tensor start = smooth({6, 3});
  const Tensor w = start.clone().requires_grad_();
  optim::SparseAdam optimizer({w}, optim::SparseAdamOptions(0.1));
  for (int i = 0; i < 3; ++i) {
    optimizer.zero_grad();
    embedding(w, longs({1, 4, 1}), -1, false, true).square().sum().backward();
    optimizer.step();
  }
  const Tensor changed = w.detach().ne(start).any(1);
  CHECK(values(changed) == Doubles{0, 1, 0, 0, 1, 0});
  const auto& state = static_cast<const optim::SparseAdamParamState&>(*optimizer.state().at(w.impl()));
  CHECK(state.step() == 3);
  CHECK(values(state.exp_avg().ne(0).any(1)) == Doubles{0, 1, 0, 0, 1, 0});

  // What it remembers goes through a state dict.
  const Tensor copy = w.detach().clone().requires_grad_();
  optim::SparseAdam other({copy}, optim::SparseAdamOptions(0.5));
  other.load_state_dict(optimizer.state_dict());
  for (const auto& [t, o] : {std::pair{w, &optimizer}, std::pair{copy, &other}}) {
    o->zero_grad();
    embedding(t, longs({2, 4}), -1, false, true).square().sum().backward();
    o->step();
  }
  CHECK(equal(w.detach(), copy.detach()));

  w.mutable_grad() = ones({6, 3}, kFloat64);
  CHECK_THROWS_AS(optimizer.step(), ValueError);
  CHECK_THROWS_AS(optim::SparseAdam({w}, optim::SparseAdamOptions(-1)), ValueError);
  CHECK_THROWS_AS(optim::SparseAdam({w}, optim::SparseAdamOptions(1).betas({1.0, 0.5})), ValueError);
}

TEST_CASE("LBFGS takes the same steps on sparse gradients as on dense ones") {
  Tensors ends;
  for (const bool sparse : {false, true}) {
    const Tensor w = smooth({6, 3}).requires_grad_();
    optim::LBFGS optimizer({w}, 0.5);
    optimizer.step([&] {
      optimizer.zero_grad();
      const Tensor loss = embedding(w, longs({1, 4, 1}), -1, false, sparse).square().sum();
      loss.backward();
      return loss;
    });
    ends.push_back(w.detach());
  }
  CHECK_FALSE(close(ends[0], smooth({6, 3})));
  CHECK(close(ends[0], ends[1]));
}

TEST_CASE("an embedding module with sparse gradients trains") {
  nn::Embedding layer(nn::EmbeddingOptions(50, 4).sparse(true).padding_idx(0));
  layer->to(kFloat64);
  const Tensor before = layer->weight.detach().clone(), at = longs({3, 0, 7, 3}).view({2, 2});
  const Tensor out = layer->forward(at);
  out.square().sum().backward();
  const Tensor grad = layer->weight.grad();
  CHECK(grad.layout() == kSparse);
  CHECK(grad.sizes() == IntArrayRef({50, 4}));
  CHECK(grad._nnz() == 3);  // not the padding
  const Tensor sum = grad.coalesce();
  CHECK(values(sum.indices()) == Doubles{3, 7});
  CHECK(close(sum.values(), stack({before[3] * 4, before[7] * 2})));
  optim::SGD optimizer(layer->parameters(), optim::SGDOptions(0.25));
  optimizer.step();
  CHECK(values(layer->weight.detach().ne(before).any(1).nonzero().reshape(-1)) == Doubles{3, 7});
  CHECK_THROWS_AS(embedding(layer->weight, at, -1, true, true).sum().backward(), NotImplementedError);
  // The second derivative goes through the sparse gradient.
  check_gradients(
      [&](const Tensors& in) {
        return Tensors{embedding(in[0], longs({1, 2, 1}), -1, false, true).square()};
      },
      {leaf({4, 2})});
}

TEST_CASE("bags of an embedding have sparse gradients too") {
  const Tensor at = longs({1, 4, 1, 2, 0}), offsets = longs({0, 2, 3}), each = smooth({5}, kFloat64, 2);
  for (const int64_t mode : {0, 1, 2}) {
    const Tensor a = smooth({6, 3}).requires_grad_(), b = smooth({6, 3}).requires_grad_();
    const auto weights = mode == 0 ? std::optional<Tensor>(each) : std::nullopt;
    std::get<0>(embedding_bag(a, at, offsets, false, mode, true, weights, false, 0)).square().sum().backward();
    std::get<0>(embedding_bag(b, at, offsets, false, mode, false, weights, false, 0)).square().sum().backward();
    CHECK(a.grad().layout() == (mode == 2 ? kStrided : kSparse));
    CHECK(close(a.grad(), b.grad()));
  }
}

TEST_CASE("sparse gradients are clipped and unscaled by their values") {
  const Tensor at = longs({1, 4, 1}), start = smooth({6, 3}, kFloat32);
  const auto with_gradient = [&](bool sparse) {
    const Tensor w = start.clone().requires_grad_();
    (embedding(w, at, -1, false, sparse) * smooth({3, 3}, kFloat32, 1)).sum().backward();
    return w;
  };
  const Tensor a = with_gradient(true), b = with_gradient(false);
  CHECK(nn::utils::clip_grad_norm_({a}, 0.5) == doctest::Approx(nn::utils::clip_grad_norm_({b}, 0.5)));
  CHECK(a.grad().is_sparse());
  CHECK(close(a.grad(), b.grad(), 1e-6));
  nn::utils::clip_grad_value_({a}, 0.1);
  nn::utils::clip_grad_value_({b}, 0.1);
  CHECK(close(a.grad(), b.grad(), 1e-6));

  amp::GradScaler scaler(amp::GradScalerOptions().init_scale(8));
  const Tensor w = start.clone().requires_grad_();
  optim::SGD optimizer({w}, optim::SGDOptions(0.5));
  scaler.scale((embedding(w, at, -1, false, true) * smooth({3, 3}, kFloat32, 1)).sum()).backward();
  scaler.step(optimizer);
  scaler.update();
  CHECK(close(w.detach(), start - with_gradient(false).grad() * 0.5, 1e-6));
}
