#include "autograd/saved_tensors_hooks.h"

#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/autograd/leaf.h"

using namespace rush;
using autograd::SavedTensorsHooks;
using rush::testing::leaf_of;

namespace {

bool same(const Tensor& a, std::initializer_list<double> values) {
  return a.equal(tensor(ArrayRef<double>(values), kFloat64));
}

// Keeps everything as float32, and counts.
struct Halver {
  int packed = 0, unpacked = 0;
  SavedTensorsHooks hooks{[this](const Tensor& t) {
                            ++packed;
                            return std::any(t.to(kFloat32));
                          },
                          [this](const std::any& kept) {
                            ++unpacked;
                            return std::any_cast<const Tensor&>(kept).to(kFloat64);
                          }};
};

}  // namespace

TEST_CASE("saved tensors go through the hooks and come back from them") {
  const Tensor a = leaf_of({1, 2}), b = leaf_of({3, 0.1});
  Halver halver;
  const Tensor y = a * b;  // saves two inputs
  CHECK(halver.packed == 2);
  const Tensor e = y.exp();  // saves its output
  CHECK(halver.packed == 3);
  CHECK(halver.unpacked == 0);
  y.sum().backward();
  CHECK(halver.unpacked == 2);
  CHECK(same(b.grad(), {1, 2}));
  // What was kept is what the gradient is made of: 0.1 rounded to float32.
  CHECK(same(a.grad(), {3, static_cast<double>(0.1f)}));
}

TEST_CASE("pack gets a tensor outside the graph, and neither hook is recorded") {
  const Tensor x = leaf_of({1, 2});
  bool outside = true;
  const SavedTensorsHooks hooks(
      [&](const Tensor& t) {
        outside = outside && !t.requires_grad() && !(t * x).requires_grad();
        return std::any(t);
      },
      [&](const std::any& kept) {
        outside = outside && !(x * x).requires_grad();
        return std::any_cast<const Tensor&>(kept);
      });
  autograd::grad((x * x).exp().sum(), x, {}, true, true);
  CHECK(outside);
}

TEST_CASE("the innermost hooks count, their effect ends with their scope, and what was packed outlives it") {
  const Tensor x = leaf_of({2});
  std::string log;
  const auto hook = [&](char name) {
    return std::make_unique<SavedTensorsHooks>(
        [&log, name](const Tensor& t) {
          log += name;
          return std::any(t);
        },
        [](const std::any& kept) { return std::any_cast<const Tensor&>(kept); });
  };
  auto outer = hook('o');
  auto inner = hook('i');
  Tensor y = x.exp();
  inner.reset();
  y = y.exp();
  outer.reset();
  y = y.exp();
  CHECK(log == "io");
  CHECK(SavedTensorsHooks::current() == nullptr);
  y.backward();
  CHECK(x.grad().defined());
}

TEST_CASE("double backward flows through packed inputs and outputs") {
  const SavedTensorsHooks hooks([](const Tensor& t) { return std::any(t.clone()); },
                                [](const std::any& kept) { return std::any_cast<const Tensor&>(kept); });
  const auto fn = [](const Tensors& in) { return Tensors{(in[0] * in[1]).exp() / in[1], in[0].tanh()}; };
  const Tensors inputs{leaf_of({0.5, -1}), leaf_of({2, 0.75})};
  CHECK(autograd::gradcheck(fn, inputs));
  CHECK(autograd::gradgradcheck(fn, inputs));
}

TEST_CASE("an operator that works in place packs the value that it overwrites") {
  const Tensor x = leaf_of({2, 3});
  const SavedTensorsHooks hooks([](const Tensor& t) { return std::any(t); },
                                [](const std::any& kept) { return std::any_cast<const Tensor&>(kept); });
  Tensor y = x * 1.0;
  y.pow_(2);
  y.sum().backward();
  CHECK(same(x.grad(), {4, 6}));
}

TEST_CASE("a custom function's saved tensors are packed") {
  struct Square : autograd::Function<Square> {
    static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x) {
      ctx->save_for_backward({x});
      return x * x;
    }
    static Tensors backward(autograd::AutogradContext* ctx, Tensors g) {
      return {g[0] * ctx->get_saved_variables()[0] * 2.0};
    }
  };
  const Tensor x = leaf_of({2});
  Halver halver;
  Square::apply(x).backward();
  CHECK(halver.packed == 1);
  CHECK(halver.unpacked == 1);
  CHECK(same(x.grad(), {4}));
}

TEST_CASE("a backward pass frees what was packed, unless the graph is retained") {
  const Tensor x = leaf_of({2});
  const auto token = std::make_shared<int>(0);
  Tensor y;
  {
    const SavedTensorsHooks hooks([&](const Tensor& t) { return std::any(std::pair(token, t)); },
                                  [](const std::any& kept) {
                                    return std::any_cast<const std::pair<std::shared_ptr<int>, Tensor>&>(kept).second;
                                  });
    y = x.exp();
  }
  y.backward({}, true);
  CHECK(token.use_count() == 2);  // this one and the packed one
  y.backward();
  CHECK(token.use_count() == 1);
  CHECK_THROWS_AS(y.backward(), Error);
}

TEST_CASE("hooks that misbehave are one-line errors") {
  const Tensor x = leaf_of({2});
  const auto identity = [](const std::any& kept) { return std::any_cast<const Tensor&>(kept); };
  CHECK_THROWS_AS(SavedTensorsHooks(nullptr, identity), ValueError);
  CHECK(SavedTensorsHooks::current() == nullptr);
  {
    const SavedTensorsHooks writes([](Tensor t) { return std::any(t.add_(1)); }, identity);
    CHECK_THROWS_WITH_AS(x.exp(), "SavedTensorsHooks: the pack hook wrote to the tensor of sizes (1) that it was given",
                         Error);
  }
  const SavedTensorsHooks forgets([](const Tensor&) { return std::any(); }, [](const std::any&) { return Tensor(); });
  CHECK_THROWS_AS(x.exp().backward(), Error);
}
