// Compiled functions in trainings as people write them: each program leaves, bit for bit, what it leaves without
// rush::compile.
#include <doctest/doctest.h>

#include <functional>
#include <sstream>
#include <vector>

#include "rushlight.h"
#include "tests/compile/same_bits.h"

using namespace rush;
namespace F = nn::functional;

namespace {

using Step = std::function<Tensors(const Tensor&)>;

// A function, or what rush::compile makes of it.
Step compiled_if(bool is_compiled, const Step& function) {
  if (!is_compiled) return function;
  return [compiled = std::make_shared<Compiled<Step>>(function)](const Tensor& x) { return (*compiled)(x); };
}

// Whether the program, which is told to compile its functions or not, leaves the same tensors.
void check_same(const std::function<Tensors(bool is_compiled)>& program) {
  manual_seed(1);
  const Tensors expected = program(false);
  manual_seed(1);
  const Tensors actual = program(true);
  testing::check_equal(actual, expected);
}

void append(Tensors& all, const Tensors& more) {
  for (const Tensor& each : more) all.push_back(each.detach().clone());
}

// Results of `steps` calls with new inputs. `between` is called after each.
Tensors results_of(const Step& function, int steps, IntArrayRef sizes,
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
    const auto judge = compiled_if(is_compiled, [&](const Tensor& real) {
      of_critic.zero_grad();
      const Tensor fake = generator->forward(randn({real.size(0), 4})).detach();
      const Tensor loss = F::softplus(-critic->forward(real)).mean() + F::softplus(critic->forward(fake)).mean();
      loss.backward();
      of_critic.step();
      return Tensors{loss};
    });
    const auto forge = compiled_if(is_compiled, [&](const Tensor& real) {
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
    const auto step = compiled_if(is_compiled, [&](const Tensor& x) {
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
    const auto step = compiled_if(is_compiled, [&](const Tensor& x) {
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
      const auto step = compiled_if(is_compiled, [&](const Tensor& x) {
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
    const auto accumulate = compiled_if(is_compiled, [&](const Tensor& x) {
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
    const auto step = compiled_if(is_compiled, [&](const Tensor& x) {
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
    const auto step = compiled_if(is_compiled, [&](const Tensor& x) {
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

TEST_CASE("gradients add up over micro-batches, and are then cleared outside of the function") {
  const auto trained = [](bool is_compiled, bool set_to_none) {
    manual_seed(3);
    nn::Linear net(4, 3);
    optim::SGD optimizer(net->parameters(), 0.5);
    const auto accumulate = [&](const Tensor& x) {
      const Tensor loss = net->forward(x).sigmoid().sum();
      loss.backward();
      return loss;
    };
    auto compiled = compile(accumulate);
    std::vector<Tensor> losses;
    for (int i = 0; i < 15; ++i) {
      const Tensor x = randn({2, 4});
      losses.push_back((is_compiled ? compiled(x) : accumulate(x)).detach());
      if (i % 3 != 2) continue;
      optimizer.step();
      optimizer.zero_grad(set_to_none);
    }
    CHECK(compiled.compilations() == (!is_compiled ? 0 : set_to_none ? 2 : 1));
    return stack(losses);
  };
  for (const bool set_to_none : {true, false}) CHECK(trained(true, set_to_none).equal(trained(false, set_to_none)));
}

TEST_CASE("parameters are frozen and set free between calls, and in the function") {
  const auto trained = [](bool is_compiled, bool by_itself) {
    manual_seed(3);
    nn::Linear first(4, 6), second(6, 2);
    Tensors all = first->parameters();
    for (const Tensor& p : second->parameters()) all.push_back(p);
    optim::SGD optimizer(all, 0.1);
    const auto forward = [&](const Tensor& x) {
      if (by_itself) first->weight.requires_grad_(false);
      return second->forward(first->forward(x).tanh());
    };
    auto compiled = compile(forward);
    for (int i = 0; i < 12; ++i) {
      first->weight.requires_grad_(i % 6 > 2);
      const Tensor x = randn({3, 4});
      optimizer.zero_grad();
      (is_compiled ? compiled(x) : forward(x)).square().sum().backward();
      optimizer.step();
    }
    CHECK(compiled.compilations() == (is_compiled ? 2 : 0));
    return cat({first->weight.detach().flatten(), second->weight.detach().flatten()});
  };
  for (const bool by_itself : {false, true}) CHECK(trained(true, by_itself).equal(trained(false, by_itself)));
}

TEST_CASE("a checkpointed block ends the trace: it is computed again, with the same random numbers") {
  const auto trained = [](bool is_compiled) {
    manual_seed(3);
    nn::Sequential net(nn::Linear(4, 8), nn::GELU(), nn::Dropout(0.2), nn::Linear(8, 4));
    optim::SGD optimizer(net->parameters(), 0.1);
    const auto step = [&](const Tensor& x) {
      optimizer.zero_grad();
      const Tensor start = (x * 2 + 1).relu().requires_grad_();
      const Tensor loss =
          autograd::checkpoint([&](const Tensor& in) { return net->forward(in); }, start).square().sum();
      loss.backward();
      optimizer.step();
      return loss.detach();
    };
    auto compiled = compile(step);
    Tensors losses;
    for (int i = 0; i < 5; ++i) {
      const Tensor x = randn({3, 4});
      losses.push_back(is_compiled ? compiled(x) : step(x));
    }
    CHECK((compiled.obstacle().find("it checkpoints activations") == 0) == is_compiled);
    return stack(losses);
  };
  CHECK(trained(true).equal(trained(false)));
}

TEST_CASE("a function that was compiled within a checkpoint has the gradients of any input") {
  manual_seed(3);
  nn::Linear net(4, 4);
  const auto fn = [&](const Tensor& x) { return nn::functional::dropout(net->forward(x).tanh()).exp(); };
  auto compiled = compile(fn);
  const Tensor first = randn({3, 4}).requires_grad_(), second = randn({3, 4}).requires_grad_();
  for (const Tensor& x : {first, first, first, second}) {
    const auto gradient = [&](const std::function<Tensor(const Tensor&)>& of) {
      manual_seed(5);
      return autograd::grad({autograd::checkpoint(of, x).sum()}, {x})[0];
    };
    CHECK(gradient([&](const Tensor& in) { return compiled(in); }).equal(gradient(fn)));
  }
}

TEST_CASE("a step takes the gradients that another function left") {
  const auto trained = [](bool is_compiled) {
    manual_seed(3);
    nn::Linear net(4, 3);
    optim::Adam optimizer(net->parameters(), 0.1);
    const auto step = [&] {
      for (const Tensor& p : net->parameters()) p.grad().mul_(2).clamp_(-1, 1);
      optimizer.step();
      optimizer.zero_grad();
    };
    auto compiled = compile(step);
    for (int i = 0; i < 6; ++i) {
      net->forward(randn({2, 4})).square().sum().backward();
      if (is_compiled) {
        compiled();
      } else {
        step();
      }
    }
    return net->weight.detach();
  };
  CHECK(trained(true).equal(trained(false)));
}

TEST_CASE("a forward pass reads a gradient, and its backward pass runs outside") {
  check_same([](bool is_compiled) {
    const Tensor w = randn({4}).requires_grad_();
    w.mutable_grad() = randn({4});
    const auto forward = compiled_if(is_compiled, [&](const Tensor& x) { return Tensors{(x * w.grad() * w).sin()}; });
    Tensors left;
    for (int i = 0; i < 8; ++i) {
      const Tensor x = randn({3, 4}).requires_grad_(), y = forward(x)[0];
      append(left, {y});
      append(left, autograd::grad({y.sum()}, {x, w}));
      w.mutable_grad() = randn({4});
    }
    return left;
  });
}
