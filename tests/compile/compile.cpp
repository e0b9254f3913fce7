// rush::compile: what a compiled function gives is what the function gives, bit for bit.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "rushlight.h"
#include "tests/compile/graph_calls.h"
#include "tests/compile/same_bits.h"
#include "tests/num_threads_guard.h"
#include "tests/warnings.h"

using namespace rush;
using rush::testing::fused_calls;
namespace F = nn::functional;

namespace {

// A net with what a training has: products, a convolution, statistics that are written in place, random numbers.
nn::Sequential make_net() {
  manual_seed(1);
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 4, 3)), nn::BatchNorm2d(4), nn::ReLU(), nn::MaxPool2d(2),
                        nn::Flatten(), nn::Linear(4 * 3 * 3, 16), nn::GELU(), nn::Dropout(0.3), nn::Linear(16, 5));
}

struct Batch {
  Tensor x, y;
};
Batch make_batch(int64_t n) { return {randn({n, 1, 8, 8}), randint(0, 5, {n}, TensorOptions(kInt64))}; }

// What a training leaves: the losses and, at the end, all weights and statistics.
std::vector<Tensor> train(bool is_compiled, const std::vector<int64_t>& batches, size_t* compilations = nullptr) {
  globalContext().setDeterministicAlgorithms(true);  // cuDNN has convolutions that add up in any order
  nn::Sequential net = make_net();
  optim::AdamW optimizer(net->parameters(), 1e-2);
  optim::StepLR schedule(optimizer, 3, 0.5);
  const auto step = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = F::cross_entropy(net->forward(x), y);
    loss.backward();
    optimizer.step();
    return loss;
  };
  auto compiled = compile(step, {.dynamic = true});
  std::vector<Tensor> results;
  for (const int64_t n : batches) {
    const Batch batch = make_batch(n);
    results.push_back((is_compiled ? compiled(batch.x, batch.y) : step(batch.x, batch.y)).detach());
    schedule.step();
  }
  CHECK(compiled.obstacle().empty());
  globalContext().setDeterministicAlgorithms(false);
  if (compilations) *compilations = compiled.compilations();
  for (const auto& tensors : {net->parameters(), net->buffers()})
    results.insert(results.end(), tensors.begin(), tensors.end());
  return results;
}

}  // namespace

TEST_CASE("a chain of element-wise operators becomes one loop, with the same bits") {
  const NoGradGuard no_grad;
  const auto chain = [](const Tensor& x, const Tensor& row) {
    const Tensor y = ((x * 1.5 + row).sigmoid() * x).tanh();
    return where(y > 0.1, y.to(kFloat64).exp(), y.pow(2).to(kFloat64)).to(kFloat32) - x;
  };
  for (const int64_t columns : {1, 7, 64, 2047, 5000}) {
    for (const bool transposed : {false, true}) {
      auto compiled = compile(chain);
      const Tensor x = transposed ? randn({columns, 3}).t() : randn({3, columns});
      const Tensor row = randn({columns}), expected = chain(x, row);
      CHECK(compiled(x, row).equal(expected));
      CHECK(compiled(x, row).equal(expected));
      CHECK(compiled(x, row).strides() == expected.strides());
      REQUIRE(compiled.graph().calls.size() == 1);
      CHECK(fused_calls(compiled.graph()) == 1);
    }
  }
}

TEST_CASE("rows that are too short for a block are taken several at a time") {
  const NoGradGuard no_grad;
  const auto rotate = [](const Tensor& x, const Tensor& table) {
    return (x * table + x.neg() * 0.5).mul(table).relu();
  };
  for (const int64_t columns : {1, 24, 1500}) {
    for (const int64_t rows : {1, 37, 300}) {
      auto compiled = compile(rotate);
      const Tensor x = randn({2, rows, 5, columns}).transpose(1, 2), table = randn({rows, columns});
      for (int i = 0; i < 2; ++i) CHECK(compiled(x, table).equal(rotate(x, table)));
      CHECK(fused_calls(compiled.graph()) == 1);
      auto each = compile(rotate);
      const Tensor flat = randn({rows, columns}), row = randn({columns});
      for (int i = 0; i < 2; ++i) CHECK(each(flat, row).equal(rotate(flat, row)));
    }
  }
  auto nothing = compile(rotate);
  for (int i = 0; i < 2; ++i) CHECK(nothing(zeros({3, 0, 4}), zeros({4})).numel() == 0);
}

TEST_CASE("a training step that is compiled trains as the function does") {
  size_t compilations = 0;
  testing::check_equal(train(true, std::vector<int64_t>(10, 6), &compilations),
                       train(false, std::vector<int64_t>(10, 6)));
  CHECK(compilations == 1);
}

TEST_CASE("fifty batch sizes take two compilations") {
  std::vector<int64_t> sizes;
  for (int64_t n = 2; n < 52; ++n) sizes.push_back(n * 7 % 53 + 2);
  size_t compilations = 0;
  testing::check_equal(train(true, sizes, &compilations), train(false, sizes));
  CHECK(compilations == 2);
}

TEST_CASE("sizes are traced one by one, unless the function says that it does the same with all") {
  const NoGradGuard no_grad;
  const auto pick = [](const Tensor& x) { return x.size(0) > 4 ? x * 2 : x.slice(0, 0, x.size(0) / 2) + x.size(0); };
  auto compiled = compile(pick);
  for (const int64_t n : {2, 3, 5, 6, 7, 4, 8, 3, 2}) {
    const Tensor x = randn({n, 3});
    CHECK(compiled(x).equal(pick(x)));
  }
  CHECK(compiled.compilations() == 7);

  // Of three traces the third does not go on as the first two began: it is one more, and so are those after it.
  const auto halves = [](const Tensor& x) { return x.slice(0, 0, x.size(0) / 2) * 1.0; };
  auto dynamic = compile(halves, {.dynamic = true});
  for (const int64_t n : {4, 8, 7, 5}) {
    const Tensor x = randn({n, 3});
    CHECK(dynamic(x).equal(halves(x)));
  }
  CHECK(dynamic.compilations() == 4);
}

TEST_CASE("writes in place, to inputs and to what the function takes from elsewhere, happen at each call") {
  const NoGradGuard no_grad;
  Tensor total = zeros({3});
  const auto count = [&](const Tensor& x) {
    x.select(0, 0).add_(1);
    const Tensor y = x.mul(2).add_(x);
    total.add_(y.sum(0));
    return std::tuple(y.view({-1}), total * 2);
  };
  auto compiled = compile(count);
  Tensor a = arange(6.0).view({2, 3}), b = a.clone(), total_of_a = zeros({3});
  for (int i = 0; i < 4; ++i) {
    const auto [y, sum] = compiled(a);
    total_of_a.copy_(total);
    total.sub_(a.mul(3).sum(0));  // undone, for the function itself
    const auto [expected_y, expected_sum] = count(b);
    CHECK(y.equal(expected_y));
    CHECK(sum.equal(expected_sum));
    CHECK(a.equal(b));
    CHECK(total.equal(total_of_a));
  }
  CHECK(compiled.compilations() == 1);
}

TEST_CASE("a clone that is written is not what is computed elsewhere, and a clone of it is another") {
  const auto merged = [](const Tensor& x) {
    const Tensor a = (x * 2).exp(), b = (x * 2).exp().clone();
    b.select(0, 1).add_(1);
    return std::vector<Tensor>{a.sum(), a * 3, b};
  };
  const auto chain = [](const Tensor& x) {
    const Tensor a = x.exp(), b = a.clone();
    b.add_(1);
    const Tensor c = b.clone(), d = c.clone();
    b.mul_(2);
    d.sub_(3);
    return std::vector<Tensor>{b, c, d};
  };
  for (const auto& function : {std::function<std::vector<Tensor>(const Tensor&)>(merged), {chain}}) {
    auto compiled = compile(function);
    for (int i = 0; i < 3; ++i) {
      const Tensor x = randn({2, 3});
      const std::vector<Tensor> expected = function(x), found = compiled(x);
      REQUIRE(found.size() == expected.size());
      for (size_t k = 0; k < found.size(); ++k) CHECK(found[k].equal(expected[k]));
    }
    CHECK(compiled.compilations() == 1);
  }
}

TEST_CASE("a clone of an input or a constant is written, and not what it is a clone of") {
  const NoGradGuard no_grad;
  const Tensor table = ones({3});
  const auto write = [&](const Tensor& x) { return x.clone().mul_(2).add_(table.clone().mul_(3)); };
  auto compiled = compile(write);
  for (int i = 0; i < 3; ++i) {
    const Tensor x = randn({3}), copy = x.clone();
    CHECK(compiled(x).equal(copy * 2 + 3));
    CHECK(x.equal(copy));
    CHECK(table.equal(ones({3})));
  }
}

TEST_CASE("one tensor for two inputs is not what two tensors are") {
  const NoGradGuard no_grad;
  const auto write = [](const Tensor& x, const Tensor& y) {
    x.add_(1);
    return x * 10 + y;
  };
  auto compiled = compile(write);
  for (int i = 0; i < 2; ++i) {
    const Tensor a = randn({3}), b = a.clone(), c = randn({3});
    CHECK(compiled(a, a).equal(write(b, b)));
    CHECK(compiled(a, c).equal(write(b, c)));
  }
  CHECK(compiled.compilations() == 2);
}

TEST_CASE("a loop does not write what it reads at another place") {
  const NoGradGuard no_grad;
  const auto add_row = [](const Tensor& x) { x.add_(x.select(0, 0)); };
  const auto read_then_write = [](const Tensor& x) {
    const Tensor y = x * 2 + x.select(0, 1);
    x.mul_(3);
    return y.sub_(x.select(0, 0)).relu();
  };
  auto added = compile(add_row);
  auto read = compile(read_then_write);
  for (int i = 0; i < 3; ++i) {
    const Tensor a = randn({4, 3000}), b = a.clone(), c = a.clone(), d = a.clone();
    added(a);
    add_row(b);
    CHECK(a.equal(b));
    CHECK(read(c).equal(read_then_write(d)));
    CHECK(c.equal(d));
  }
}

TEST_CASE("gradients add up over calls where the function does not clear them") {
  const auto gradient = [](bool is_compiled) {
    manual_seed(3);
    const Tensor w = randn({4, 2}).requires_grad_();
    const auto accumulate = [&](const Tensor& x) {
      const Tensor loss = x.matmul(w).sigmoid().sum() / 2;
      loss.backward();
      return loss;
    };
    auto compiled = compile(accumulate);
    for (int i = 0; i < 6; ++i) {
      const Tensor x = randn({3, 4});
      CHECK((is_compiled ? compiled(x) : accumulate(x)).item<float>() > 0);
    }
    CHECK(compiled.obstacle().empty());
    return w.grad().clone();
  };
  CHECK(gradient(true).equal(gradient(false)));
}

TEST_CASE("random numbers are those of the function, in it and after it") {
  const auto draws = [](bool is_compiled) {
    manual_seed(3);
    const auto noisy = [](const Tensor& x) {
      const Tensor noise = randn({4}) + rand_like(x) * randint(0, 9, {4}) + normal(0.0, 1.0, {4}) + zeros({4});
      return F::dropout((x + noise).relu() * 2).index_select(0, randperm(4));
    };
    auto compiled = compile(noisy);
    std::vector<Tensor> drawn;
    for (int i = 0; i < 4; ++i) {
      const Tensor x = ones({4});
      drawn.push_back(is_compiled ? compiled(x) : noisy(x));
      drawn.push_back(rand({2}));
    }
    CHECK(compiled.compilations() == (is_compiled ? 1 : 0));
    return cat(drawn);
  };
  CHECK(draws(true).equal(draws(false)));
}

TEST_CASE("a step needs no more memory than without the compiler: old gradients go before new ones come") {
  const NumThreadsGuard one(1);  // buffers of several threads overlap as they happen to run
  nn::Sequential net(nn::Linear(256, 1024), nn::ReLU(), nn::Linear(1024, 256));
  net->to(kCPU);
  optim::SGD optimizer(net->parameters(), 0.1);
  const Tensor x = randn({4, 256}, kCPU);
  const auto step = [&](const Tensor& in) {
    optimizer.zero_grad();
    const Tensor loss = net->forward(in).square().mean();
    loss.backward();
    optimizer.step();
    return loss;
  };
  auto compiled = compile(step, {.fuse = false});  // loops have buffers
  const auto peak_of = [&](auto& function) {
    for (int i = 0; i < 3; ++i) function(x);
    cpu::reset_peak_memory_stats();
    function(x);
    return cpu::max_memory_allocated();
  };
  const int64_t peak = peak_of(step);
  CHECK(peak_of(compiled) <= peak + 64);  // numbers are tensors of the graph
  CHECK(compiled.compilations() == 1);
}

TEST_CASE("what a compiled function returns can be differentiated") {
  const auto run = [](bool is_compiled) {
    manual_seed(5);
    nn::Sequential net(nn::Linear(6, 8), nn::LayerNorm(nn::LayerNormOptions({8})), nn::GELU(), nn::Linear(8, 3));
    net->parameters()[0].requires_grad_(false);
    auto forward = compile([&](const Tensor& x) { return std::tuple(net->forward(x), x.exp(), x.detach() + 1); });
    const Tensor x = randn({4, 6}).requires_grad_();
    std::vector<Tensor> results;
    for (int i = 0; i < 4; ++i) {
      const Tensor in = x * (i + 1);  // not a leaf
      const auto [y, e, d] = is_compiled ? forward(in) : std::tuple(net->forward(in), in.exp(), in.detach() + 1);
      CHECK(y.requires_grad());
      CHECK_FALSE(d.requires_grad());
      (i == 2 ? y.pow(2).sum() : y.pow(2).sum() + e.mean()).backward();
      results.insert(results.end(), {y.detach(), e.detach(), d, x.grad().clone()});
    }
    for (const Tensor& p : net->parameters()) results.push_back(p.grad().defined() ? p.grad().clone() : zeros({}));
    CHECK(forward.obstacle().empty());
    return results;
  };
  testing::check_equal(run(true), run(false));

  auto square = compile([](const Tensor& x) { return x * x; });
  const Tensor x = ones({2}).requires_grad_();
  for (int i = 0; i < 2; ++i) square(x);  // which are traced
  CHECK_THROWS_WITH_AS(autograd::grad({square(x).sum()}, {x}, {}, true, /*create_graph=*/true),
                       doctest::Contains("cannot be recorded"), Error);
  // What the backward pass needs is checked as it is without the compiler.
  const Tensor w = x.detach().clone(), y = square(w.requires_grad_());
  {
    const NoGradGuard no_grad;
    w.mul_(2);
  }
  CHECK_THROWS_AS(y.sum().backward(), Error);
}

// On a GPU by cuDNN, whose operator gives numbers beside its tensors.
TEST_CASE("attention with dropout, and its derivative") {
  const auto attend = [](const Tensor& q, const Tensor& k, const Tensor& v) {
    return scaled_dot_product_attention(q, k, v, {}, 0.2, /*is_causal=*/true);
  };
  const auto run = [&](bool is_compiled) {
    manual_seed(11);
    auto compiled = compile(attend);
    std::vector<Tensor> results;
    for (int i = 0; i < 3; ++i) {
      const auto make = [] { return randn({2, 4, 64, 64}).to(kBFloat16).requires_grad_(); };
      const Tensor q = make(), k = make(), v = make();
      const Tensor y = is_compiled ? compiled(q, k, v) : attend(q, k, v);
      y.sum().backward();
      results.insert(results.end(), {y.detach(), q.grad(), k.grad(), v.grad()});
    }
    CHECK(compiled.obstacle().empty());
    return results;
  };
  const std::vector<Tensor> a = run(true), b = run(false);
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(a[i].allclose(b[i], 1e-2, 1e-2));  // a GPU's backward pass adds up in any order
  }
}

TEST_CASE("a scaler's steps are noted as they are, skipped ones too") {
  const auto run = [](bool is_compiled) {
    manual_seed(7);
    nn::Linear net(6, 3);
    optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1).momentum(0.9));
    amp::GradScaler scaler(amp::GradScalerOptions().init_scale(1024).growth_interval(2));
    const auto step = [&](const Tensor& x) {
      optimizer.zero_grad();
      const Tensor loss = net(x).pow(2).mean();
      scaler.scale(loss).backward();
      scaler.unscale_(optimizer);
      scaler.step(optimizer);
      scaler.update();
      return loss;
    };
    auto compiled = compile(step);
    std::vector<Tensor> results;
    for (int i = 0; i < 8; ++i) {
      const Tensor x = randn({4, 6}) * (i == 5 ? INFINITY : 1.0);
      results.push_back((is_compiled ? compiled(x) : step(x)).detach().nan_to_num());
      results.push_back(full({}, scaler.get_scale()));
    }
    CHECK(compiled.obstacle().empty());
    CHECK(compiled.compilations() == (is_compiled ? 1 : 0));
    for (const Tensor& p : net->parameters()) results.push_back(p.detach().clone());
    return results;
  };
  testing::check_equal(run(true), run(false));
}

TEST_CASE("modes are part of what a graph is for") {
  nn::Sequential net = make_net();
  auto forward = compile([&](const Tensor& x) { return net->forward(x); });
  const Tensor x = make_batch(4).x;
  for (int i = 0; i < 2; ++i) {
    net->train();
    manual_seed(9);
    const Tensor trained = forward(x);
    CHECK(trained.requires_grad());
    net->eval();
    const NoGradGuard no_grad;
    CHECK(forward(x).equal(net->forward(x)));
    CHECK_FALSE(forward(x).requires_grad());
    const autocast::Autocast lower(x.device().type, kBFloat16);
    CHECK(forward(x).scalar_type() == kBFloat16);
    CHECK(forward(x).equal(net->forward(x)));
  }
}

TEST_CASE("a mode that a module has again has the graphs that were made for it") {
  const NoGradGuard no_grad;
  nn::Sequential net = make_net();
  auto forward = compile([&](const Tensor& x) { return net->forward(x); });
  const Tensor x = make_batch(4).x;
  for (int epoch = 0; epoch < 5; ++epoch) {
    net->train();
    manual_seed(9);
    const Tensor trained = forward(x);
    manual_seed(9);
    CHECK(trained.equal(net->forward(x)));
    net->eval();
    CHECK(forward(x).equal(net->forward(x)));
    if (epoch == 1) CHECK(forward.compilations() == 2);
  }
  CHECK(forward.compilations() == 2);
}

TEST_CASE("a function that cannot be compiled runs as it stands, and says why") {
  std::vector<std::string> warnings;
  struct Handler final : WarningHandler {
    std::vector<std::string>& to;
    explicit Handler(std::vector<std::string>& to) : to(to) {}
    void process(const Warning& warning) override { to.push_back(warning.msg()); }
  } handler(warnings);
  const WarningUtils::WarningHandlerGuard guard(&handler);

  auto reads = compile([](const Tensor& x) { return x.sum().item<float>() > 0 ? x * 2 : x - 1; });
  std::vector<Tensor> kept;
  auto keeps = compile([&](const Tensor& x) {
    kept.push_back(x + 1);
    return x;
  });
  for (int i = 0; i < 6; ++i) {
    const Tensor x = full({2}, i % 2 ? 1.0 : -1.0);
    CHECK(reads(x).equal(i % 2 ? x * 2 : x - 1));
    keeps(x);
  }
  CHECK(kept.size() == 6);
  CHECK(reads.compilations() == 0);
  CHECK(reads.obstacle().find("reads a number") != std::string::npos);
  CHECK(keeps.obstacle().find("aten::add.Tensor") != std::string::npos);
  REQUIRE(warnings.size() == 2);
  CHECK(warnings[0].starts_with("compile: the function runs as it stands: it reads a number"));
}

TEST_CASE("a number that changes from call to call is seen") {
  const testing::Warnings warnings;
  for (const bool is_factor : {true, false}) {
    const auto run = [&](bool is_compiled) {
      nn::Sequential net = make_net();
      optim::SGD optimizer(net->parameters(), 0.01);
      int64_t calls = 0;
      const auto step = [&](const Tensor& x) {
        optimizer.zero_grad();
        ++calls;
        const Tensor y = net->forward(is_factor ? x : x.roll(calls, 2)).square().sum();
        const Tensor loss = is_factor ? y * (0.5 * static_cast<double>(calls)) : y;
        loss.backward();
        optimizer.step();
        return loss;
      };
      auto compiled = compile(step);
      std::vector<Tensor> results;
      for (int i = 0; i < 6; ++i) {
        const Tensor x = make_batch(4).x;
        results.push_back((is_compiled ? compiled(x) : step(x)).detach());
      }
      if (is_compiled) CHECK(compiled.obstacle().find(is_factor ? "1 after 0.5:" : "2] after [1") != std::string::npos);
      CHECK(compiled.compilations() == 0);
      for (const Tensor& p : net->parameters()) results.push_back(p.detach().clone());
      return results;
    };
    testing::check_equal(run(true), run(false));
  }
}

TEST_CASE("a leaf stays the tensor that it is where a view of a view has its geometry") {
  const auto train = [](bool is_compiled) {
    manual_seed(13);
    const Tensor w = randn({3, 3}).requires_grad_();
    optim::SGD optimizer({w}, 0.1);
    const auto step = [&](const Tensor& x) {
      optimizer.zero_grad();
      x.matmul(w.t().t()).square().sum().backward();
      optimizer.step();
    };
    auto compiled = compile(step);
    for (int i = 0; i < 4; ++i) {
      const Tensor x = randn({2, 3});
      if (is_compiled) {
        compiled(x);
      } else {
        step(x);
      }
    }
    return std::vector<Tensor>{w.detach(), w.grad()};
  };
  testing::check_equal(train(true), train(false));
}

// The history of each exp saves its result, and goes with it.
TEST_CASE("a tensor of a long trace is not taken for one that lay at its address before") {
  const Tensor w = randn({3, 5}).requires_grad_();
  const auto add_up = [&](const Tensor& x) {
    Tensor total = x * 0.0;
    for (int i = 0; i < 400; ++i) total = total + (w * (0.001 * i)).exp().detach().sin() * (x + 1.0 * i);
    return total;
  };
  auto compiled = compile(add_up);
  for (int i = 0; i < 3; ++i) {
    const Tensor x = randn({3, 5});
    CHECK(compiled(x).equal(add_up(x)));
  }
  CHECK(compiled.compilations() == 1);
}

TEST_CASE("the gradient of a leaf that the function makes goes with the leaf, which must not be kept") {
  const Tensor w = ones({3}).requires_grad_();
  Tensor kept;
  const auto step_that = [&](bool keeps) {
    return [&, keeps](const Tensor& x) {
      const Tensor point = x.detach().requires_grad_();
      if (keeps) kept = point;
      const Tensor slope = autograd::grad({(point * w).square().sum()}, {point}, {}, true, /*create_graph=*/true)[0];
      const Tensor loss = slope.square().sum();
      loss.backward();
      return loss;
    };
  };
  auto step = compile(step_that(false));
  auto keeping = compile(step_that(true));
  for (int i = 1; i < 4; ++i) {
    const Tensor x = full({3}, 1.0 * i);
    CHECK(step(x).equal(full({}, 12.0 * i * i)));
    CHECK(w.grad().equal(full({3}, 16.0 * i * i)));
    w.mutable_grad().reset();
    keeping(x);
    CHECK(kept.grad().equal(full({3}, 8.0 * i)));
    w.mutable_grad().reset();
  }
  CHECK(step.compilations() == 1);
  CHECK_FALSE(keeping.obstacle().empty());
}

TEST_CASE("what a call throws leaves a compiled function usable") {
  const NoGradGuard no_grad;
  auto product = compile([](const Tensor& x, const Tensor& y) { return x.matmul(y).relu() + 1; });
  const Tensor x = ones({2, 3}), y = ones({3, 2});
  CHECK_THROWS_AS(product(x, x), ValueError);
  for (int i = 0; i < 3; ++i) CHECK(product(x, y).equal(x.matmul(y).relu() + 1));
  CHECK_THROWS_AS(product(x, Tensor()), ValueError);
  CHECK(product(x, y).equal(x.matmul(y).relu() + 1));
  CHECK_THROWS_AS(product.graph(7), IndexError);
}

TEST_CASE("a compiled function within another becomes a part of it") {
  const NoGradGuard no_grad;
  auto inner = compile([](const Tensor& x) { return (x * 2).relu(); });
  auto outer = compile([&](const Tensor& x) { return inner(x) + 1; });
  const Tensor x = randn({5, 4});
  for (int i = 0; i < 3; ++i) CHECK(outer(x).equal((x * 2).relu() + 1));
  CHECK(outer.compilations() == 1);
  CHECK(outer.graph().calls.size() == 1);
  CHECK(inner.compilations() == 0);
}

TEST_CASE("a graph prints its calls") {
  const NoGradGuard no_grad;
  const Tensor w = ones({3, 2}, kCPU);
  auto f = compile([&](const Tensor& x) { return (x.matmul(w) * 2).relu(); }, {.fuse = false});
  f(ones({4, 3}, kCPU));
  CHECK(f.graph().print() ==
        "graph(%0: float32[4, 3])\n"
        "  %1: float32[3, 2] = constant\n"
        "  %3: float32[] = 2\n"
        "  %2: float32[4, 2] = aten::mm(%0, %1)\n"
        "  %4: float32[4, 2] = aten::mul.Tensor(%2, %3)\n"
        "  %5: float32[4, 2] = aten::relu(%4)\n"
        "  return %5\n");
  CHECK(f.graph().dot().find("c0 -> c1 [label=\"%2\"]") != std::string::npos);
}
