// Compiled functions that read numbers, or keep tensors: the graph ends there, and the function goes on as it stands.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "rushlight.h"
#include "tests/compile/same_bits.h"
#include "tests/ops/index/index_testing.h"
#include "tests/warnings.h"

using namespace rush;
namespace F = nn::functional;

namespace {

// What a training leaves that reads its loss, or its gradients' norm, `where`: all that it logs, its weights and its
// statistics.
enum class Where { BeforeBackward, InClipping, AtTheEnd, Nowhere };
std::vector<Tensor> train_reading(bool is_compiled, Where where) {
  manual_seed(1);
  nn::Sequential net(nn::Linear(8, 32), nn::BatchNorm1d(32), nn::GELU(), nn::Dropout(0.2), nn::Linear(32, 3));
  optim::AdamW optimizer(net->parameters(), 1e-2);
  std::vector<double> log;
  auto step = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = F::cross_entropy(net->forward(x).mul(2).tanh(), y);
    if (where == Where::BeforeBackward) log.push_back(loss.item<double>());
    loss.backward();
    const std::vector<Tensor> parameters = net->parameters();
    if (where == Where::InClipping) log.push_back(nn::utils::clip_grad_norm_(parameters, 0.1));
    if (where == Where::Nowhere) {
      const Tensor norm = nn::utils::get_total_norm(nn::utils::gradients_of(parameters));
      nn::utils::clip_grads_with_norm_(parameters, 0.1, norm);
    }
    optimizer.step();
    if (where == Where::AtTheEnd) log.push_back(loss.item<double>());
    return loss;
  };
  auto compiled = compile(step);
  std::vector<Tensor> results;
  for (int i = 0; i < 8; ++i) {
    const Tensor x = randn({6, 8}), y = randint(0, 3, {6}, TensorOptions(kInt64));
    results.push_back((is_compiled ? compiled(x, y) : step(x, y)).detach());
  }
  if (is_compiled) {
    CHECK(compiled.compilations() == 1);
    const std::string& why = compiled.obstacle();
    CAPTURE(why);
    CHECK(why.empty() == (where == Where::Nowhere));
    if (where == Where::InClipping) {
      CHECK(why.starts_with("clip_grad_norm_ returns a number; get_total_norm and clip_grads_with_norm_ read none"));
    } else if (where != Where::Nowhere) {
      CHECK(why.starts_with("it reads a number from a tensor at "));
      CHECK(why.find("cut.cpp:") != std::string::npos);
    }
  }
  CHECK(log.size() == (where == Where::Nowhere ? 0 : 8));
  log.push_back(0);
  results.push_back(tensor(log));
  for (const auto& tensors : {net->parameters(), net->buffers()})
    results.insert(results.end(), tensors.begin(), tensors.end());
  return results;
}

}  // namespace

TEST_CASE("a factorisation before a number that is read: whether the matrix is singular is found by its kernel") {
  const testing::Warnings warnings;
  const auto determinant = [](const Tensor& x) {
    const Tensor lu = std::get<0>(linalg_lu_factor(x.mul(2).mul(x).add(x)));
    const Tensor scaled = lu.mul(3).sub(lu);
    return scaled.sum() * lu.diagonal().prod().item<double>();
  };
  auto compiled = compile(determinant);
  for (int i = 1; i <= 4; ++i) {
    const Tensor x = eye(3, kFloat64) * i;
    CHECK(compiled(x).item<double>() == determinant(x).item<double>());
  }
  CHECK(compiled.compilations() == 1);
  CHECK(compiled.obstacle().starts_with("it reads a number from a tensor"));
  CHECK_THROWS_AS(compiled(zeros({3, 3}, kFloat64)), LinAlgError);
}

TEST_CASE("lengths that an operator reads from a tensor may change after the function was compiled") {
  const testing::Warnings warnings;
  const Tensor scores = testing::leaf({6, 2, 4}).detach().log_softmax(2), labels = ones({2, 3}, kInt64);
  const auto loss = [&](const Tensor& x, const Tensor& lengths) {
    return ctc_loss(x.mul(2).div(2), labels, tensor({6, 6}), lengths, 0, Reduction::Sum, false).mul(2).add(1);
  };
  const auto first_part = [](const Tensor& x, const Tensor& at) { return x.mul(2).sin().tensor_split(at)[0].sum(); };
  const Tensor weight = eye(4, kFloat64), state = zeros({1, 3, 4}, kFloat64);
  const auto packed = [&](const Tensor& x, const Tensor& sizes) {
    const Tensor rows = x.flatten(0, 1).narrow(0, 0, 7).mul(2).sin();
    return std::get<0>(rnn_tanh(rows, sizes, state, std::vector<Tensor>{weight, weight}, false, 1, 0., false, false))
        .sum();
  };
  auto compiled_loss = compile(loss);
  auto compiled_part = compile(first_part);
  auto compiled_packed = compile(packed);
  for (const int64_t length : {1, 1, 1, 1, 2, 3}) {
    const Tensor lengths = tensor({length, int64_t{1}}), at = tensor({length});
    const Tensor sizes = length == 1 ? tensor({3, 2, 2}, kCPU) : tensor({3, 3, 1}, kCPU);
    CHECK(equal(compiled_loss(scores, lengths), loss(scores, lengths)));
    CHECK(equal(compiled_part(scores, at), first_part(scores, at)));
    CHECK(equal(compiled_packed(scores, sizes), packed(scores, sizes)));
  }
}

TEST_CASE("a training step that reads its loss trains as it does, and logs each loss") {
  const testing::Warnings warnings;
  testing::check_equal(train_reading(true, Where::AtTheEnd), train_reading(false, Where::AtTheEnd));
  testing::check_equal(train_reading(true, Where::BeforeBackward), train_reading(false, Where::BeforeBackward));
  testing::check_equal(train_reading(true, Where::InClipping), train_reading(false, Where::InClipping));
  testing::check_equal(train_reading(true, Where::Nowhere), train_reading(false, Where::Nowhere));
  REQUIRE(warnings.all().size() == 3);
  CHECK(warnings.all()[0].starts_with("compile: the function runs as it stands from there on: it reads a number"));
}

TEST_CASE("what a function does with a number that it reads is done at each call") {
  const testing::Warnings warnings;
  const auto choose = [](const Tensor& x) {
    const Tensor y = (x * 2).tanh().mul(1.5).view({-1}), z = y.slice(0, 1, 3).add_(1);
    return y.sum().item<float>() > 0 ? (y * 3).exp() + z.sum() : y.neg();
  };
  auto compiled = compile(choose);
  for (int i = 0; i < 8; ++i) {
    const Tensor x = full({2, 2}, i % 3 ? 1.0 : -1.0).requires_grad_(i % 2), copy = x.detach().clone();
    const Tensor y = compiled(x), expected = choose(copy.requires_grad_(i % 2));
    CHECK(y.equal(expected));
    if (i % 2 == 0) continue;
    y.sum().backward();
    expected.sum().backward();
    CHECK(x.grad().equal(copy.grad()));
  }
  CHECK(compiled.compilations() == 2);
  CHECK(warnings.all().size() == 1);
}

TEST_CASE("a view with the sizes of its base is another tensor after a cut, too") {
  const testing::Warnings warnings;
  const auto expand = [](const Tensor& x) {
    const Tensor same = x.expand({2, 3}), y = (same * 2).tanh();
    return y.sum().item<float>() > 100 ? y : y * same.detach();
  };
  auto compiled = compile(expand);
  for (int i = 0; i < 4; ++i) {
    const Tensor x = randn({2, 3}).requires_grad_(), copy = x.detach().clone().requires_grad_();
    compiled(x).sum().backward();
    expand(copy).sum().backward();
    REQUIRE(x.grad().defined());
    CHECK(x.grad().equal(copy.grad()));
    CHECK(x.is_leaf());
  }
  CHECK(compiled.compilations() == 1);
}

TEST_CASE("gradients add up where the function reads a number before or after it adds to them") {
  const auto gradient = [](bool is_compiled, bool has_grad) {
    manual_seed(3);
    const Tensor w = randn({4, 2}).requires_grad_();
    if (has_grad) w.mutable_grad() = ones({4, 2});
    int positive = 0;
    const auto accumulate = [&](const Tensor& x) {
      const Tensor loss = (x.matmul(w).sigmoid() * 2).tanh().sum();
      loss.backward();
      positive += loss.item<float>() > 0;
    };
    auto compiled = compile(accumulate);
    for (int i = 0; i < 6; ++i) {
      const Tensor x = randn({3, 4});
      is_compiled ? compiled(x) : accumulate(x);
    }
    CHECK(positive == 6);
    CHECK(compiled.compilations() == (is_compiled ? 1 : 0));
    return w.grad().clone();
  };
  const testing::Warnings warnings;
  CHECK(gradient(true, false).equal(gradient(false, false)));
  CHECK(gradient(true, true).equal(gradient(false, true)));
}

TEST_CASE("a function that keeps what it makes keeps it at each call") {
  const testing::Warnings warnings;
  const NoGradGuard no_grad;
  std::vector<Tensor> kept;
  auto keeps = compile([&](const Tensor& x) {
    kept.push_back((x + 1).relu());
    return x.exp() * 2;
  });
  for (int i = 0; i < 5; ++i) {
    const Tensor x = randn({3});
    CHECK(keeps(x).equal(x.exp() * 2));
    CHECK(kept.back().equal((x + 1).relu()));
  }
  CHECK(kept.size() == 5);
  CHECK(keeps.compilations() == 1);
  CHECK(keeps.obstacle().find("it keeps what aten::relu made") == 0);
}

TEST_CASE("a function that does something else before it reads is told so") {
  const testing::Warnings warnings;
  const NoGradGuard no_grad;
  int calls = 0;
  auto wavers = compile([&](const Tensor& x) {
    const Tensor y = ++calls == 5 ? x.sin() + 1 : x.cos() + 1;
    return y.sum().item<float>() > 0 ? y : -y;
  });
  const Tensor x = ones({4});
  for (int i = 0; i < 4; ++i) wavers(x);
  CHECK_THROWS_WITH_AS(
      wavers(x), doctest::Contains("called aten::cos as its call 1 when it was traced, and calls aten::sin"), Error);
  CHECK(wavers(x).equal(x.cos() + 1));
}

TEST_CASE("a function that gives another number before it reads is told so") {
  const testing::Warnings warnings;
  const NoGradGuard no_grad;
  const Tensor x = ones({4});
  for (const bool is_factor : {true, false}) {
    int calls = 0;
    auto cools = compile([&](const Tensor& t) {
      const double heat = ++calls == 5 ? 0.5 : 1;
      const Tensor y = is_factor ? t.cos() * heat + 1 : t.cos().clamp(heat).sin() + 1;
      return y.sum().item<float>() > 0 ? y : -y;
    });
    for (int i = 0; i < 4; ++i) cools(x);
    CHECK_THROWS_WITH_AS(cools(x), doctest::Contains("another number than when it was traced, as its argument 2"),
                         Error);
    CHECK(cools.compilations() == 1);
  }
  int calls = 0;
  auto changes = compile([&](const Tensor& t) {
    const Tensor y = t.cos() * ++calls + 1;
    return y.sum().item<float>() > 0 ? y : -y;
  });
  for (int i = 1; i < 7; ++i) CHECK(changes(x).equal(x.cos() * i + 1));
  CHECK(changes.compilations() == 0);
}

TEST_CASE("a batch that is not an input is seen") {
  const testing::Warnings warnings;
  const nn::Linear net(4, 2);
  Tensor batch, same;
  auto forgets = compile([&](const Tensor& x) { return net->forward(batch) + x; });
  auto makes = compile([&](const Tensor& x) { return x * tensor({1.0F, 2.0F}); });
  for (int i = 0; i < 4; ++i) {
    batch = randn({3, 4});
    const Tensor x = randn({3, 2});
    CHECK(forgets(x).equal(net->forward(batch) + x));
    CHECK(makes(x).equal(x * tensor({1.0F, 2.0F})));
  }
  CHECK(warnings.all().size() == 1);
  CHECK(forgets.obstacle() ==
        "it gives aten::linear another tensor from elsewhere at each call, which should be an input");
  CHECK(makes.obstacle() == "");
}

TEST_CASE("what changes with each epoch is in a graph of that epoch") {
  const NoGradGuard no_grad;
  nn::Linear net(4, 2);
  for (const bool is_read : {false, true}) {
    double heat = 0;
    auto heated = compile([&](const Tensor& x) {
      const Tensor y = (net->forward(x) * heat).exp() + 1;
      return is_read && y.sum().item<float>() < 0 ? y : y * 2;
    });
    const testing::Warnings warnings;
    for (int epoch = 1; epoch < 5; ++epoch) {
      heat = 1.0 / epoch;
      net->train();
      for (int i = 0; i < 12; ++i) {
        const Tensor x = randn({3, 4});
        CHECK(heated(x).equal(((net->forward(x) * heat).exp() + 1) * 2));
      }
      net->eval();
    }
    CHECK(heated.compilations() == 4);
  }
}
