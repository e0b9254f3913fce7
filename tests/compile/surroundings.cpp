// Compiled functions and what lies around them: histories of inputs, memory that inputs share, schedules, generators.
// Each program leaves, bit for bit, what it leaves without rush::compile.
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <vector>

#include "rushlight.h"
#include "tests/compile/same_bits.h"
#include "tests/warnings.h"

using namespace rush;
namespace F = nn::functional;

namespace {

using Called = std::function<Tensors(const Tensors&)>;

// A function of so many inputs, or what rush::compile makes of it.
Called maybe_compiled(bool is_compiled, size_t inputs, const Called& function, const CompileOptions& options = {}) {
  if (!is_compiled) return function;
  const auto compiled = std::make_shared<compiler::CompiledFunction>(options);
  return [=](const Tensors& in) {
    REQUIRE(in.size() == inputs);
    return compiled->call(function, in);
  };
}

void note(Tensors& all, const Tensors& more) {
  for (const Tensor& each : more) all.push_back(each.defined() ? each.detach().clone() : Tensor());
}

void check_same_results(const std::function<Tensors(bool is_compiled)>& program) {
  const testing::Warnings warnings;
  manual_seed(1);
  const Tensors expected = program(false);
  manual_seed(1);
  const Tensors actual = program(true);
  testing::check_equal(actual, expected);
}

}  // namespace

TEST_CASE("an input that was computed from another one gets its gradient once, and its hook runs once") {
  check_same_results([](bool is_compiled) {
    Tensors results;
    const Tensor w = randn({4}).requires_grad_();
    const auto f =
        maybe_compiled(is_compiled, 2, [](const Tensors& in) { return Tensors{(in[0] * in[1]).tanh().sum()}; });
    for (int i = 0; i < 4; ++i) {
      const Tensor a = w * 2, b = a.tanh();
      b.register_hook([](const Tensor& g) { return g * 0.5; });
      f({b, a})[0].backward();
      note(results, {w.grad()});
    }
    return results;
  });
}

TEST_CASE("what is written in place has the history that the function gives it") {
  for (const bool is_read : {false, true}) {
    check_same_results([&](bool is_compiled) {
      Tensors results;
      const Tensor w = randn({4}).requires_grad_();
      const auto f = maybe_compiled(is_compiled, 1, [&](const Tensors& in) {
        Tensor x = in[0];
        x.mul_(w).add_(1);
        const Tensor y = (x * x).sin().sum();
        if (is_read) y.item<float>();
        return Tensors{y};
      });
      for (int i = 0; i < 6; ++i) {
        const Tensor x = i % 2 == 0 ? w * 2 : randn({4});
        f({x})[0].backward();
        note(results, {w.grad(), x});
      }
      return results;
    });
  }
}

TEST_CASE("an input whose sizes the function changes has them afterwards") {
  check_same_results([&](bool is_compiled) {
    Tensors results;
    const auto f = maybe_compiled(is_compiled, 1, [](const Tensors& in) {
      Tensor x = in[0];
      x.unsqueeze_(0).transpose_(1, 2);
      return Tensors{x * 2};
    });
    for (int i = 0; i < 6; ++i) {
      const Tensor x = randn({2, 3});
      note(results, f({x}));
      note(results, {x});
    }
    return results;
  });
}

TEST_CASE("a value that is saved before it is written in place is there after a cut") {
  for (const bool is_read : {false, true}) {
    check_same_results([&](bool is_compiled) {
      Tensors results;
      const Tensor w = randn({4}).requires_grad_();
      const auto f = maybe_compiled(is_compiled, 1, [&](const Tensors& in) {
        Tensor y = in[0] * w + 1;
        y.mul_(w);
        const Tensor loss = (y * 2).sin().sum();
        if (is_read) loss.item<float>();
        loss.backward();
        return Tensors{loss};
      });
      for (int i = 0; i < 6; ++i) {
        note(results, f({randn({4})}));
        note(results, {w.grad()});
      }
      return results;
    });
  }
}

TEST_CASE("a parameter that is written before the backward pass is an error") {
  const Tensor w = randn({4, 4}).requires_grad_();
  auto f = compile([&](const Tensor& x) { return x.matmul(w).tanh().matmul(w).sum(); });
  for (int i = 0; i < 4; ++i) f(randn({3, 4})).backward();
  const Tensor loss = f(randn({3, 4}));
  {
    const NoGradGuard no_grad;
    w.mul_(2);
  }
  CHECK_THROWS_WITH_AS(loss.backward(), doctest::Contains("modified by an inplace operation"), Error);
}

TEST_CASE("inputs that lie elsewhere in memory that the function uses are other inputs") {
  check_same_results([](bool is_compiled) {
    Tensors results;
    const Tensor rows = arange(12).to(kFloat32), large = arange(300'000).to(kFloat32);
    const auto first_row = maybe_compiled(
        is_compiled, 1, [&](const Tensors& in) { return Tensors{rows.narrow(0, 0, 4) * 10 + in[0] * 1}; });
    const auto second_half = maybe_compiled(
        is_compiled, 2, [&](const Tensors& in) { return Tensors{in[0].narrow(0, 4, 4) * 10 + in[1] * 1}; });
    const auto writes = maybe_compiled(is_compiled, 1, [&](const Tensors& in) {
      large.narrow(0, 0, 200'000).add_(1);
      return Tensors{in[0] * 2 + 1};
    });
    for (const int64_t at : {0, 0, 4, 8}) note(results, first_row({rows.narrow(0, at, 4)}));
    for (const int64_t at : {4, 4, 0}) note(results, second_half({rows.narrow(0, 0, 8), rows.narrow(0, at, 4)}));
    for (int i = 0; i < 5; ++i)
      note(results, writes({i < 3 ? randn({200'000}) : large.narrow(0, i == 3 ? 1 : 70'000, 200'000)}));
    return results;
  });
}

TEST_CASE("tied weights that are two tensors get a gradient each") {
  check_same_results([](bool is_compiled) {
    Tensors results;
    const nn::Embedding embedding(10, 4);
    const nn::Linear scores(nn::LinearOptions(4, 10).bias(false));
    scores->weight.set_data(embedding->weight.detach());
    const auto f =
        maybe_compiled(is_compiled, 1, [&](const Tensors& in) { return Tensors{scores(embedding(in[0]).tanh())}; });
    for (int i = 0; i < 5; ++i) {
      const Tensor ids = randint(0, 10, {6});
      F::cross_entropy(f({ids})[0], ids).backward();
      note(results, {embedding->weight.grad(), scores->weight.grad()});
    }
    return results;
  });
}

TEST_CASE("draws from a generator of the program's own are draws each") {
  check_same_results([](bool is_compiled) {
    Tensors results;
    const Device device = empty({0}).device();
    const Generator generator = backend_of(device.type).make_generator(device, 3);
    const auto f = maybe_compiled(is_compiled, 1, [&](const Tensors& in) {
      const Tensor p = in[0].sigmoid(), a = p.bernoulli(generator), b = p.bernoulli(generator);
      p.bernoulli(generator);
      return Tensors{a * 1.5 + p, b + 1.5};
    });
    for (int i = 0; i < 5; ++i) note(results, f({randn({6})}));
    return results;
  });
}

TEST_CASE("tensors whose sizes depend on values end a trace") {
  const std::vector<Called> functions = {
      [](const Tensors& in) { return Tensors{(in[0].to(kFloat32).masked_select(in[0] > 2) * 2 + 1).tanh()}; },
      [](const Tensors& in) { return Tensors{(in[0].to(kFloat32).index({in[0] > 2}) * 2 + 1).tanh()}; },
      [](const Tensors& in) { return Tensors{((in[0] > 2).nonzero().to(kFloat32) * 2 + 1).tanh()}; },
      [](const Tensors& in) { return Tensors{((in[0] > 2).argwhere().to(kFloat32) * 2 + 1).tanh()}; },
      [](const Tensors& in) { return Tensors{(where(in[0] > 2)[0].to(kFloat32) * 2 + 1).tanh()}; },
      [](const Tensors& in) { return Tensors{(std::get<0>(_unique2(in[0])).to(kFloat32) * 2 + 1).tanh()}; },
      [](const Tensors& in) { return Tensors{(F::one_hot(in[0]).to(kFloat32) * 2 + 1).tanh()}; },
      [](const Tensors& in) { return Tensors{(bincount(in[0]).to(kFloat32) * 2 + 1).tanh()}; },
      [](const Tensors& in) { return Tensors{(arange(20).repeat_interleave(in[0]).to(kFloat32) * 2 + 1).tanh()}; },
  };
  for (size_t k = 0; k < functions.size(); ++k) {
    CAPTURE(k);
    check_same_results([&](bool is_compiled) {
      Tensors results;
      const auto f = maybe_compiled(is_compiled, 1, functions[k]);
      const Tensor first = randint(0, 5, {20});
      for (int i = 0; i < 6; ++i) note(results, f({i < 3 ? first : randint(0, 4 + i, {20})}));
      return results;
    });
  }
}

TEST_CASE("a step that is compiled without its backward pass sees the gradients that it clears") {
  check_same_results([](bool is_compiled) {
    const nn::Linear net(4, 4);
    optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1));
    const auto update = maybe_compiled(is_compiled, 0, [&](const Tensors&) {
      optimizer.step();
      optimizer.zero_grad();
      return Tensors();
    });
    Tensors results;
    for (int i = 0; i < 5; ++i) {
      net(randn({3, 4})).tanh().sum().backward();
      update({});
      note(results, net->parameters());
    }
    return results;
  });
}

TEST_CASE("schedules step at each call, and groups that come later are cleared") {
  check_same_results([](bool is_compiled) {
    const Tensor w = randn({4}).requires_grad_(), v = randn({4}).requires_grad_();
    Tensors results;
    optim::SGD optimizer({w}, optim::SGDOptions(0.1)), other({w}, optim::SGDOptions(0.1));
    optim::StepLR halves(optimizer, 2, 0.5);
    optim::CosineAnnealingWarmRestarts restarts(other, 3);
    const auto scheduled = maybe_compiled(is_compiled, 1, [&](const Tensors& in) {
      optimizer.zero_grad();
      const Tensor loss = (in[0] * w).tanh().sum();
      loss.backward();
      optimizer.step();
      halves.step();
      restarts.step();
      return Tensors{loss};
    });
    for (int i = 0; i < 8; ++i) {
      note(results, scheduled({randn({4})}));
      note(results, {w, full({}, halves.get_last_lr()[0]), full({}, restarts.get_last_lr()[0])});
    }
    const auto both = maybe_compiled(is_compiled, 1, [&](const Tensors& in) {
      other.zero_grad();
      const Tensor loss = (in[0] * w * v).tanh().sum();
      loss.backward();
      other.step();
      return Tensors{loss};
    });
    for (int i = 0; i < 12; ++i) {
      if (i == 5) other.add_param_group(optim::OptimizerParamGroup({v}));
      note(results, both({randn({4})}));
      note(results, {w, v, w.grad(), v.grad()});
    }
    return results;
  });
}

TEST_CASE("half of a size is not taken for what lies beside it") {
  check_same_results([](bool is_compiled) {
    Tensors results;
    const auto f = maybe_compiled(
        is_compiled, 1,
        [](const Tensors& in) { return Tensors{(in[0] * 2 + 1).narrow(0, 0, in[0].size(0) / 2).sum(0)}; },
        {.dynamic = true});
    for (const int64_t size : {4, 4, 8, 8, 6, 6, 3, 5, 7, 10}) note(results, f({randn({size, 4})}));
    return results;
  });
}

TEST_CASE("a batch that a cut function does not have as an input is seen") {
  check_same_results([](bool is_compiled) {
    const nn::Linear net(4, 4);
    Tensor batch;
    const auto f = maybe_compiled(is_compiled, 0, [&](const Tensors&) {
      const Tensor loss = (net(batch) * 2).tanh().mul(3).sum();
      loss.item<float>();
      return Tensors{loss};
    });
    Tensors results;
    for (int i = 0; i < 8; ++i) {
      batch = randn({3, 4});
      note(results, f({}));
    }
    return results;
  });
}

TEST_CASE("a net that is compiled within a scope of autocast has casts of its own") {
  for (const bool has_call_before : {false, true}) {
    CAPTURE(has_call_before);
    std::vector<Tensors> results(2);
    for (const bool is_compiled : {false, true}) {
      manual_seed(1);
      const nn::Linear first(4, 8), second(8, 4);
      const auto function = [&](const Tensor& x) { return second(first(x).relu()); };
      auto compiled = compile(function);
      optim::SGD optimizer({first->weight, first->bias, second->weight, second->bias}, 0.1);
      for (int i = 0; i < 6; ++i) {
        const Tensor x = randn({3, 4});
        optimizer.zero_grad();
        Tensor loss;
        {
          const autocast::Autocast lower(x.device().type, kBFloat16);
          if (has_call_before) note(results[is_compiled], {function(x)});
          loss = (is_compiled ? compiled(x) : function(x)).pow(2).mean();
        }
        loss.backward();
        optimizer.step();
        note(results[is_compiled], {loss, first->weight, first->bias});
      }
      if (is_compiled) CHECK(compiled.compilations() == 1);
      if (is_compiled) CHECK(compiled.obstacle() == "");
    }
    testing::check_equal(results[1], results[0]);
  }
}
