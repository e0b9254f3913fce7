#include "core/amp/autocast.h"

#include <doctest/doctest.h>

#include <cmath>
#include <thread>

#include "core/dispatch/registry.h"
#include "tests/autograd/autocast_calls.h"
#include "tests/autograd/leaf.h"

using namespace rush;
using namespace rush::testing;
using autocast::Autocast;
using rush::testing::random_leaf;

namespace {

bool is_on() { return autocast::is_autocast_enabled(kCPU); }

}  // namespace

TEST_CASE("results have the dtypes that PyTorch's lists give them") {
  for (const AutocastCall& call : kAutocastCalls) {
    INFO(call.name);
    const Autocast lower(kCPU, kBFloat16);
    CHECK(autocast_dtypes(call, kCPU, kBFloat16) == call.on_cpu);
  }
  const Autocast half(kCPU, kFloat16);
  CHECK(mm(rand({2, 2}), rand({2, 2})).scalar_type() == kFloat16);
  CHECK(F::mse_loss(rand({2}).to(kFloat16), rand({2})).scalar_type() == kFloat32);
}

TEST_CASE("the result is that of casts written out") {
  manual_seed(1);
  const Tensor x = randn({5, 8}), w = random_leaf({3, 8}), b = random_leaf({3});
  const Tensor v = w.detach().clone().requires_grad_(), c = b.detach().clone().requires_grad_();
  Tensor loss;
  {
    const Autocast lower(kCPU);
    loss = F::mse_loss(linear(x, w, b), zeros({5, 3}));
  }
  const Tensor out = linear(x.to(kBFloat16), v.to(kBFloat16), c.to(kBFloat16));
  const Tensor expected = F::mse_loss(out.to(kFloat32), zeros({5, 3}));
  CHECK(loss.item<float>() == expected.item<float>());
  loss.backward();
  expected.backward();
  CHECK(w.grad().scalar_type() == kFloat32);
  CHECK(w.grad().equal(v.grad()));
  CHECK(b.grad().equal(c.grad()));
}

TEST_CASE("a recurrent net reads what a layer before it gives in 16 bits") {
  manual_seed(1);
  const nn::GRU gru(3, 4);
  const nn::LSTMCell cell(4, 2);
  const Tensor x = randn({5, 2, 3}).to(kBFloat16), lengths = tensor({5, 2});
  const auto run = [&] {
    const auto packed = nn::utils::rnn::pack_padded_sequence(x, lengths);
    const Tensor state = std::get<1>(gru->forward_with_packed_input(packed));  // (1, 2, 4)
    return std::get<0>(cell->forward(state[0]));
  };
  Tensor out;
  {
    const Autocast lower(kCPU);
    out = run();
    out.sum().backward();
  }
  CHECK(gru->parameters()[0].grad().scalar_type() == kFloat32);
  gru->to(kBFloat16);
  cell->to(kBFloat16);
  CHECK(out.equal(run()));
}

TEST_CASE("float64, integers and tensors of other devices stay as they are") {
  const Autocast lower(kCPU);
  const Tensor d = rand({2, 2}, TensorOptions(kFloat64)), i = ones({2, 2}, TensorOptions(kLong));
  CHECK(mm(d, d).scalar_type() == kFloat64);
  CHECK(mm(i, i).scalar_type() == kLong);
  CHECK(F::mse_loss(d, d).scalar_type() == kFloat64);
  CHECK_THROWS_AS(mm(d, rand({2, 2})), TypeError);  // one of them was lowered, the other was not
  const Tensor meta = empty({2, 2}, TensorOptions(kFloat32).device(kMeta));
  CHECK(mm(meta, meta).scalar_type() == kFloat32);
}

TEST_CASE("autocast for CUDA leaves the CPU alone, in composite operators too") {
  const Tensor x = rand({4, 4});
  const Autocast lower(kCUDA);
  CHECK(autocast::is_autocast_enabled(kCUDA));
  CHECK_FALSE(is_on());
  CHECK(mm(x, x).scalar_type() == kFloat32);
  CHECK(einsum("ij,jk->ik", {x, x}).scalar_type() == kFloat32);
  CHECK(x.to(kBFloat16).exp().scalar_type() == kBFloat16);
  const Autocast both(kCPU);
  CHECK(einsum("ij,jk->ik", {x, x}).scalar_type() == kBFloat16);  // listed for CUDA only; what it consists of for both
}

TEST_CASE("scopes nest, and each restores what it found") {
  const Tensor x = rand({2, 2});
  CHECK_FALSE(is_on());
  {
    const Autocast outer(kCPU, kBFloat16);
    CHECK(mm(x, x).scalar_type() == kBFloat16);
    {
      const Autocast off(kCPU, std::nullopt, /*enabled=*/false);
      CHECK_FALSE(is_on());
      CHECK(mm(x, x).scalar_type() == kFloat32);
      const Autocast half(kCPU, kFloat16);
      CHECK(mm(x, x).scalar_type() == kFloat16);
    }
    CHECK(autocast::get_autocast_dtype(kCPU) == kBFloat16);
    CHECK(mm(x, x).scalar_type() == kBFloat16);
    const NoGradGuard no_grad;
    CHECK(mm(x, x).scalar_type() == kBFloat16);
  }
  CHECK_FALSE(is_on());
  CHECK(dispatch_state.included.empty());
  CHECK(mm(x, x).scalar_type() == kFloat32);
  CHECK(autocast::get_autocast_dtype(kCUDA) == kFloat16);
}

TEST_CASE("libtorch's functions set what the scopes set") {
  const autocast::StateGuard restore;
  autocast::set_autocast_dtype(kCPU, kFloat16);
  autocast::set_autocast_enabled(kCPU, true);
  CHECK(mm(rand({2, 2}), rand({2, 2})).scalar_type() == kFloat16);
  autocast::set_autocast_enabled(kCPU, false);
  CHECK_FALSE(is_on());
  CHECK(autocast::is_autocast_available(kCUDA));
  CHECK_FALSE(autocast::is_autocast_available(kMeta));
  CHECK(autocast::increment_nesting() == 1);
  CHECK(autocast::decrement_nesting() == 0);
}

TEST_CASE("bad dtypes and device types are refused, and nothing changes") {
  CHECK_THROWS_AS(Autocast(kCPU, kFloat32), ValueError);
  CHECK_THROWS_AS(Autocast(kCPU, kInt64), ValueError);
  CHECK_THROWS_AS(Autocast(kMeta, kBFloat16), ValueError);
  CHECK_THROWS_AS(Autocast{kMeta}, ValueError);
  CHECK_THROWS_AS(autocast::set_autocast_enabled(kMeta, true), ValueError);
  CHECK_THROWS_AS(autocast::get_autocast_dtype(kMeta), ValueError);
  CHECK_FALSE(is_on());
  CHECK(autocast::get_autocast_dtype(kCPU) == kBFloat16);
  CHECK(autocast::increment_nesting() == 1);  // no scope was left open
  autocast::decrement_nesting();
}

TEST_CASE("weights are cast once until the outermost scope ends") {
  const Tensor w = random_leaf({3, 3}), x = rand({3, 3});
  {
    const Autocast lower(kCPU);
    const Tensor first = autocast::cached_cast(kBFloat16, w, kCPU);
    CHECK(autocast::cached_cast(kBFloat16, w, kCPU).is_same(first));
    mm(x, w);
    mm(mm(x, w), w);
    CHECK(autocast::cache_size() == 1);  // inputs and results are not kept
    {
      const Autocast inner(kCPU, kBFloat16);
      mm(x, w);
    }
    CHECK(autocast::cache_size() == 1);
    CHECK(autocast::cached_cast(kBFloat16, w, kCPU).is_same(first));
    CHECK_FALSE(autocast::cached_cast(kFloat16, w, kCPU).is_same(first));
  }
  CHECK(autocast::cache_size() == 0);

  const Autocast without(kCPU, kBFloat16, /*enabled=*/true, /*cache=*/false);
  CHECK_FALSE(autocast::is_autocast_cache_enabled());
  mm(x, w);
  CHECK(autocast::cache_size() == 0);
}

TEST_CASE("a cast is not used again after its weight was written, nor without its gradient") {
  const Tensor w = ones({2, 2}).requires_grad_(), x = ones({2, 2});
  const Autocast lower(kCPU);
  {
    const NoGradGuard no_grad;
    CHECK_FALSE(mm(x, w).requires_grad());
    CHECK(autocast::cache_size() == 1);
  }
  CHECK(mm(x, w).requires_grad());
  {
    const NoGradGuard no_grad;
    w.mul_(2);
  }
  CHECK(mm(x, w).eq(4).all().item<bool>());
  autocast::clear_cache();
  CHECK(autocast::cache_size() == 0);
}

TEST_CASE("a cast that several products share carries all their gradients") {
  const Tensor w = ones({2, 2}).requires_grad_(), x = full({2, 2}, 3.0);
  Tensor sum;
  {
    const Autocast lower(kCPU);
    sum = (mm(x, w) + mm(x, w)).sum();
  }
  sum.backward();
  CHECK(w.grad().eq(12).all().item<bool>());
}

TEST_CASE("a thread begins with autocast off and keeps its own") {
  const Autocast lower(kCPU);
  bool began_on = true, set_there = false;
  std::thread([&] {
    began_on = is_on();
    const Autocast half(kCPU, kFloat16);
    set_there = mm(rand({2, 2}), rand({2, 2})).scalar_type() == kFloat16;
  }).join();
  CHECK_FALSE(began_on);
  CHECK(set_there);
  CHECK(autocast::get_autocast_dtype(kCPU) == kBFloat16);
}

TEST_CASE("the backward pass runs in the state of who starts it") {
  const Tensor w = random_leaf({2, 2});
  std::vector<bool> states;
  const auto result = [&] {
    const Autocast lower(kCPU);
    const Tensor y = mm(w, w);
    y.register_hook([&](const Tensor&) { states.push_back(is_on()); });
    return y.sum();
  };
  {
    const Autocast around(kCPU);
    result().backward();
  }
  result().backward();
  CHECK(states == std::vector<bool>{true, false});
  CHECK(autocast::cache_size() == 0);
}

TEST_CASE("a checkpointed function runs again as it ran first") {
  manual_seed(2);
  const Tensor x = random_leaf({4, 4}), w = random_leaf({4, 4});
  const auto fn = [&](const Tensor& t) { return mm(mm(t, w).tanh(), w); };
  Tensor plain, checkpointed;
  {
    const Autocast lower(kCPU);
    plain = fn(x).sum();
    checkpointed = autograd::checkpoint(fn, x).sum();
  }
  const Tensors expected = autograd::grad({plain}, {x, w});
  const Tensors actual = autograd::grad({checkpointed}, {x, w});
  CHECK(actual[0].equal(expected[0]));
  CHECK(actual[1].equal(expected[1]));
  CHECK(autocast::cache_size() == 0);
  CHECK_FALSE(is_on());
}

// ---- custom functions

namespace {

struct Seen {
  ScalarType input, product;
  bool backward_on;
};
Seen seen;

// Notes what it meets; `x` times itself as matrices.
template <class Derived>
struct Squares : autograd::Function<Derived> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
    ctx->save_for_backward({x});
    const Tensor y = mm(x, x);
    seen.input = x.scalar_type();
    seen.product = y.scalar_type();
    return y;
  }
  static Tensors backward(autograd::AutogradContext* ctx, Tensors g) {
    seen.backward_on = is_on();
    const Tensor x = ctx->get_saved_variables()[0].to(g[0].scalar_type());
    return {mm(g[0], x.t()) + mm(x.t(), g[0])};
  }
};
struct Plain : Squares<Plain> {};
struct AsInForward : Squares<AsInForward> {
  static constexpr autograd::CustomAutocast autocast{};
};
struct InFloat32 : Squares<InFloat32> {
  static constexpr autograd::CustomAutocast autocast{kFloat32};
};

template <class F>
Tensor run(const Tensor& x, bool enabled) {
  Tensor y;
  {
    const Autocast lower(kCPU, kBFloat16, enabled);
    y = F::apply(x);
  }
  y.sum().backward();
  return y;
}

}  // namespace

TEST_CASE("custom functions take part in autocast as custom_fwd and custom_bwd let them") {
  const Tensor x = random_leaf({3, 3});
  run<Plain>(x, true);
  CHECK(seen.product == kBFloat16);
  CHECK_FALSE(seen.backward_on);
  CHECK(x.grad().scalar_type() == kFloat32);

  run<AsInForward>(x, true);
  CHECK(seen.product == kBFloat16);
  CHECK(seen.backward_on);
  CHECK_FALSE(is_on());
  run<AsInForward>(x, false);
  CHECK(seen.product == kFloat32);
  CHECK_FALSE(seen.backward_on);

  const Tensor narrow = x.detach().to(kBFloat16).requires_grad_();
  CHECK(run<InFloat32>(narrow, true).scalar_type() == kFloat32);
  CHECK(seen.input == kFloat32);
  CHECK_FALSE(seen.backward_on);
  CHECK(narrow.grad().scalar_type() == kBFloat16);
  run<InFloat32>(narrow, false);  // without autocast it takes what it is given
  CHECK(seen.input == kBFloat16);
}

TEST_CASE("only listed operators stop at the Autocast key, and none while it is off") {
  CHECK_FALSE(dispatch_state.included.has(DispatchKey::Autocast));
  rand({2});  // registers the operators
  CHECK(ops::mm.has_kernel(DispatchKey::Autocast));
  CHECK(std::string(ops::mm.registered_at(DispatchKey::Autocast).file_name()).ends_with("autocast_table.cpp"));
  CHECK_FALSE(ops::add.has_kernel(DispatchKey::Autocast));
  CHECK_FALSE(ops::addmm_.has_kernel(DispatchKey::Autocast));
}

TEST_CASE("a net trained in bfloat16 reaches the loss of one trained in float32") {
  const auto train = [](bool lower) {
    manual_seed(3);
    const Tensor x = randn({256, 8});
    const Tensor y = tanh(mm(x, randn({8, 1}))) + 0.5 * randn({256, 1});
    nn::Sequential net(nn::Linear(8, 16), nn::Tanh(), nn::Linear(16, 1));
    optim::Adam optimizer(net->parameters(), optim::AdamOptions(1e-2));
    for (int step = 0; step < 150; ++step) {
      optimizer.zero_grad();
      Tensor loss;
      {
        const Autocast scope(kCPU, kBFloat16, lower);
        loss = F::mse_loss(net->forward(x), y);
      }
      loss.backward();
      optimizer.step();
    }
    CHECK(net->parameters()[0].scalar_type() == kFloat32);
    return F::mse_loss(net->forward(x), y).item<double>();
  };
  const double exact = train(false), lowered = train(true);
  CHECK(exact != lowered);
  CHECK(std::abs(lowered - exact) < 0.01 * exact);
}
