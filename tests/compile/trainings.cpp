// Compiled functions in trainings as people write them: each program leaves, bit for bit, what it leaves without
// rush::compile.
#include <doctest/doctest.h>

#include <functional>
#include <sstream>
#include <vector>

#include "rushlight.h"

using namespace rush;
namespace F = nn::functional;

namespace {

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensor&)>;

// A function, or what rush::compile makes of it.
Function as(bool is_compiled, const Function& function) {
  if (!is_compiled) return function;
  return [compiled = std::make_shared<Compiled<Function>>(function)](const Tensor& x) { return (*compiled)(x); };
}

// Whether the program, which is told to compile its functions or not, leaves the same tensors.
void check_same(const std::function<Tensors(bool is_compiled)>& program) {
  manual_seed(1);
  const Tensors expected = program(false);
  manual_seed(1);
  const Tensors actual = program(true);
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(i);
    CHECK(actual[i].equal(expected[i]));
  }
}

void append(Tensors& all, const Tensors& more) {
  for (const Tensor& each : more) all.push_back(each.detach().clone());
}

// Results of `steps` calls with new inputs. `between` is called after each.
Tensors results_of(const Function& function, int steps, IntArrayRef sizes,
                   const std::function<void(int step)>& between = nullptr) {
  Tensors results;
  for (int i = 0; i < steps; ++i) {
    append(results, function(randn(sizes)));
    if (between) between(i);
  }
  return results;
}

}  // namespace

TEST_CASE("two nets against each other, each with its optimiser") {
  check_same([](bool is_compiled) {
    nn::Sequential generator(nn::Linear(4, 16), nn::BatchNorm1d(16), nn::ReLU(), nn::Linear(16, 8));
    nn::Sequential critic(nn::Linear(8, 16), nn::GELU(), nn::Dropout(0.3), nn::Linear(16, 1));
    optim::Adam of_generator(generator->parameters(), 1e-3), of_critic(critic->parameters(), 1e-3);
    const auto judge = as(is_compiled, [&](const Tensor& real) {
      of_critic.zero_grad();
      const Tensor fake = generator->forward(randn({real.size(0), 4})).detach();
      const Tensor loss = F::softplus(-critic->forward(real)).mean() + F::softplus(critic->forward(fake)).mean();
      loss.backward();
      of_critic.step();
      return Tensors{loss};
    });
    const auto forge = as(is_compiled, [&](const Tensor& real) {
      of_generator.zero_grad();
      const Tensor loss = F::softplus(-critic->forward(generator->forward(randn({real.size(0), 4})))).mean();
      loss.backward();  // into the critic's parameters, too
      of_generator.step();
      return Tensors{loss};
    });
    Tensors losses;
    for (int i = 0; i < 6; ++i) {
      const Tensor real = randn({8, 8});
      append(losses, judge(real));
      append(losses, forge(real));
    }
    return losses;
  });
}

TEST_CASE("a penalty on the gradient of an input") {
  check_same([](bool is_compiled) {
    nn::Sequential net(nn::Linear(3, 8), nn::Tanh(), nn::Linear(8, 1));
    optim::Adam optimizer(net->parameters(), 1e-2);
    const auto step = as(is_compiled, [&](const Tensor& x) {
      optimizer.zero_grad();
      const Tensor in = x.detach().requires_grad_(), out = net->forward(in).sum();
      const Tensor slope = autograd::grad({out}, {in}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
      const Tensor loss = (slope.norm(2, 1) - 1).square().mean() + out * 0.01;
      loss.backward();
      optimizer.step();
      return Tensors{loss};
    });
    return results_of(step, 6, {5, 3});
  });
}

TEST_CASE("one weight for an embedding and for the scores") {
  check_same([](bool is_compiled) {
    nn::Embedding embedding(10, 6);
    optim::AdamW optimizer(embedding->parameters(), 1e-2);
    const auto step = as(is_compiled, [&](const Tensor& x) {
      optimizer.zero_grad();
      const Tensor ids = (x.abs() * 3).clamp_max(9).to(kInt64);
      const Tensor loss = F::cross_entropy(embedding(ids).mean(1).matmul(embedding->weight.t()), ids.select(1, 0));
      loss.backward();
      optimizer.step();
      return Tensors{loss};
    });
    return results_of(step, 6, {5, 3});
  });
}

TEST_CASE("an update by hand, with the gradient cleared in each way") {
  for (const bool to_none : {true, false}) {
    check_same([&](bool is_compiled) {
      const Tensor w = randn({6, 4}).requires_grad_();
      w.register_hook([](const Tensor& grad) { return grad * 0.5; });
      const auto step = as(is_compiled, [&](const Tensor& x) {
        const Tensor loss = x.matmul(w).tanh().square().sum();
        loss.backward();
        const NoGradGuard no_grad;
        w.sub_(w.grad() * 0.1);
        if (to_none) {
          w.mutable_grad() = Tensor();
        } else {
          w.grad().zero_();
        }
        return Tensors{loss, w.clone()};
      });
      return results_of(step, 6, {5, 6});
    });
  }
}

TEST_CASE("some leaves have gradients, and others not") {
  check_same([](bool is_compiled) {
    nn::Linear first(4, 4), second(4, 4);
    const Tensor start = randn({2, 4}).requires_grad_();
    const auto accumulate = as(is_compiled, [&](const Tensor& x) {
      const Tensor loss = second(first(x + start).tanh()).square().sum();
      loss.backward();
      return Tensors{loss};
    });
    Tensors gradients;
    const Tensors losses = results_of(accumulate, 12, {2, 4}, [&](int i) {
      append(gradients, {first->weight.grad(), second->bias.grad(), start.grad()});
      if (i % 3 == 2) first->zero_grad();
      if (i % 4 == 3) second->zero_grad(/*set_to_none=*/i % 8 == 3);
      if (i % 5 == 4) start.mutable_grad() = Tensor();
    });
    append(gradients, losses);
    return gradients;
  });
}

TEST_CASE("parameters that no loss reaches, are loaded, get other data or another dtype") {
  check_same([](bool is_compiled) {
    nn::Sequential net(nn::Linear(4, 8), nn::BatchNorm1d(8), nn::Linear(8, 2)), unused(nn::Linear(4, 4));
    Tensors all = net->parameters();
    for (const Tensor& p : unused->parameters()) all.push_back(p);
    optim::SGD optimizer(all, optim::SGDOptions(0.1).momentum(0.9));
    const auto step = as(is_compiled, [&](const Tensor& x) {
      optimizer.zero_grad();
      const Tensor loss = net->forward(x.to(all[0].scalar_type())).square().mean();
      loss.backward();
      optimizer.step();
      return Tensors{loss};
    });
    std::stringstream saved;
    Tensors left = results_of(step, 12, {5, 4}, [&](int i) {
      if (i == 2) save(net, saved);
      if (i == 5) load(net, saved);
      if (i == 7) all[0].set_data(randn({4, 8}).t());
      if (i == 9) optimizer = optim::SGD(all, optim::SGDOptions(0.05));
      if (i == 9) net->to(kFloat64);
    });
    append(left, all);
    return left;
  });
}

TEST_CASE("a state that goes from call to call, and a norm that clips") {
  check_same([](bool is_compiled) {
    nn::GRUCell cell(3, 6);
    optim::RMSprop optimizer(cell->parameters(), 1e-2);
    const Tensor state = zeros({2, 6});
    const auto step = as(is_compiled, [&](const Tensor& x) {
      optimizer.zero_grad();
      Tensor h = state.clone(), loss = zeros({});
      for (int t = 0; t < 4; ++t) {
        h = cell(x[t], h);
        loss = loss + h.square().mean();
      }
      loss.backward();
      nn::utils::clip_grad_value_(cell->parameters(), 0.05);
      optimizer.step();
      const NoGradGuard no_grad;
      state.copy_(h);
      return Tensors{loss};
    });
    Tensors left = results_of(step, 6, {4, 2, 3});
    append(left, {state});
    return left;
  });
}
