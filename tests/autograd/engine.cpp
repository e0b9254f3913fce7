#include "autograd/engine.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "rushlight.h"
#include "tests/autograd/leaf.h"
#include "tests/compute_sanitizer.h"

using namespace rush;
using rush::testing::leaf_of;
using rush::testing::list;

TEST_CASE("gradients of a tensor used several times are summed") {
  const Tensor x = leaf_of({2, 3});
  (x * x + x).sum().backward();
  CHECK(list(x.grad()) == std::vector<double>{5, 7});
  // A second pass adds to what is there.
  (x * 10).sum().backward();
  CHECK(list(x.grad()) == std::vector<double>{15, 17});
}

TEST_CASE("gradients are summed over broadcast dimensions and cast to the input's dtype") {
  const Tensor column = ones({3, 1}, TensorOptions(kFloat64)).requires_grad_();
  const Tensor row = ones({4}, requires_grad());
  (column * row).sum().backward();
  CHECK(column.grad().sizes() == IntArrayRef({3, 1}));
  CHECK(list(column.grad()) == std::vector<double>{4, 4, 4});
  CHECK(row.grad().scalar_type() == kFloat32);
  CHECK(list(row.grad()) == std::vector<double>{3, 3, 3, 3});
}

TEST_CASE("a graph is freed by its backward pass unless it is retained") {
  const Tensor x = leaf_of({1, 2});
  const Tensor y = (x * x).sum();
  y.backward({}, true);
  y.backward();
  CHECK(list(x.grad()) == std::vector<double>{4, 8});
  CHECK_THROWS_WITH_AS(y.backward(),
                       "backward: Trying to backward through the graph a second time, which the first freed; pass "
                       "retain_graph=true to go through "
                       "it again",
                       Error);
}

TEST_CASE("grad returns gradients and leaves .grad alone") {
  const Tensor x = leaf_of({1, 2}), z = leaf_of({5, 6});
  const Tensor y = x * x * z;
  const Tensors g = autograd::grad(y.sum(), {x, z});
  CHECK(list(g[0]) == std::vector<double>{10, 24});
  CHECK(list(g[1]) == std::vector<double>{1, 4});
  CHECK_FALSE(x.grad().defined());
  const Tensor unused = leaf_of({1});
  CHECK_THROWS_AS(autograd::grad((x * 2).sum(), unused), Error);
  CHECK_FALSE(autograd::grad((x * 2).sum(), {unused}, {}, {}, false, true)[0].defined());
}

TEST_CASE("grad with respect to a tensor inside the graph, and to an input of one of its consumers") {
  const Tensor x = leaf_of({3});
  const Tensor y = x * x;
  const Tensor z = y * y;
  const Tensors g = autograd::grad(z, {y, x});
  CHECK(g[0].item<double>() == 18);
  CHECK(g[1].item<double>() == 108);
}

TEST_CASE("higher derivatives through create_graph") {
  const Tensor x = leaf_of({2});
  Tensor d = x * x * x * x;
  for (const double expected : {32.0, 48.0, 48.0, 24.0}) {
    d = autograd::grad(d, x, {}, true, true)[0];
    CHECK(d.item<double>() == doctest::Approx(expected));
  }
}

TEST_CASE("backward with inputs accumulates only into those") {
  const Tensor x = leaf_of({2}), w = leaf_of({3});
  const Tensor y = x * w;
  y.backward({}, false, false, TensorList(w));
  CHECK(w.grad().item<double>() == 2);
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("hooks see and replace gradients; removed ones do not run") {
  const Tensor x = leaf_of({1, 2});
  const Tensor y = x * 3;
  std::vector<double> seen;
  y.register_hook([&](const Tensor& g) { seen = list(g); });
  y.register_hook([](const Tensor& g) { return g * 10; });
  const unsigned removed = x.register_hook([](const Tensor& g) { return g * 1000; });
  x.register_hook([](const Tensor& g) { return g + 1; });
  x.remove_hook(removed);
  y.sum().backward();
  CHECK(seen == std::vector<double>{1, 1});
  CHECK(list(x.grad()) == std::vector<double>{31, 31});
  CHECK_THROWS_AS(x.remove_hook(7), IndexError);
  CHECK_THROWS_AS(ones({1}).register_hook([](const Tensor&) {}), Error);
}

TEST_CASE("a hook that registers others does not disturb those that are running; the new ones run in the next pass") {
  const Tensor x = leaf_of({1, 2});
  x.register_hook([&](const Tensor&) {
    for (int i = 0; i < 50; ++i) x.register_hook([](const Tensor& grad) { return grad + 1; });
  });
  x.register_hook([](const Tensor& grad) { return grad * 10; });
  x.sum().backward();
  CHECK(list(x.grad()) == std::vector<double>{10, 10});
  x.sum().backward();
  CHECK(list(x.grad()) == std::vector<double>{70, 70});
}

TEST_CASE("a hook may remove itself") {
  const Tensor x = leaf_of({1, 2});
  unsigned id = 0;
  const std::vector<double> factors(100, 2.0);  // of the hook, which are read after it has gone
  id = x.register_hook([&id, &x, factors](const Tensor& grad) {
    x.remove_hook(id);
    return grad * factors[99];
  });
  x.sum().backward();
  x.sum().backward();
  CHECK(list(x.grad()) == std::vector<double>{3, 3});
}

TEST_CASE("gradients of many inputs, half of which lead to the others") {
  // In time that grows with their number: its square would be a hundred million here.
  constexpr size_t kPairs = 5000;
  std::vector<Tensor> leaves, inputs;
  for (size_t i = 0; i < kPairs; ++i) {
    leaves.push_back(full({}, 1.0).requires_grad_());
    inputs.push_back(leaves.back() * 2);
  }
  const Tensor total = stack(inputs).square().sum();
  inputs.insert(inputs.end(), leaves.begin(), leaves.end());
  const std::vector<Tensor> grads = autograd::grad({total}, inputs);
  CHECK(stack(grads).eq(cat({full({kPairs}, 4.0), full({kPairs}, 8.0)})).all().item<bool>());
}

TEST_CASE("retain_grad keeps the gradient of a tensor that is not a leaf") {
  const Tensor x = leaf_of({1, 2});
  const Tensor y = x * 3;
  y.retain_grad();
  (y * y).sum().backward();
  CHECK(list(y.grad()) == std::vector<double>{6, 12});
  CHECK(y.retains_grad());
  {
    // It is what all hooks made of it, those included that came later; they keep their numbers.
    const Tensor z = x * 2;
    const unsigned first = z.register_hook([](const Tensor& grad) { return grad * 10; });
    z.retain_grad();
    const unsigned second = z.register_hook([](const Tensor& grad) { return grad + 1; });
    z.register_hook([](const Tensor& grad) { return grad * 5; });
    z.remove_hook(second);
    CHECK(first == 0);
    CHECK(second == 1);
    z.sum().backward();
    CHECK(list(z.grad()) == std::vector<double>{50, 50});
  }
  {
    // The tensor may be gone by then.
    Tensor z = x * 2;
    const Tensor loss = z.sum();
    z.retain_grad();
    z.reset();
    loss.backward();
  }
}

TEST_CASE("grad passes the hooks of the leaves that it is asked for") {
  const Tensor x = leaf_of({1, 2}), y = x * 3;
  x.register_hook([](const Tensor& grad) { return grad * 10; });
  CHECK(list(autograd::grad({y.sum()}, {x})[0]) == std::vector<double>{30, 30});
  CHECK(list(autograd::grad({x}, {x}, {ones({2})})[0]) == std::vector<double>{10, 10});
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("retain_grad keeps the gradient of the value after an in-place write, of the tensor or of its base") {
  const Tensor x = leaf_of({1, 2});
  const Tensor y = x * 3;
  y.retain_grad();
  y.mul_(2);
  y.sum().backward();
  CHECK(list(y.grad()) == std::vector<double>{1, 1});
  CHECK(list(x.grad()) == std::vector<double>{6, 6});

  const Tensor base = x * 3, view = base.select(0, 1);
  base.retain_grad();
  view.retain_grad();
  view.mul_(2);
  (base.sum() + view * 4).backward();
  CHECK(list(base.grad()) == std::vector<double>{1, 5});
  CHECK(view.grad().item<double>() == 4);

  const Tensor turned = (x * 3).view({1, 2});
  turned.retain_grad();
  turned.t_();
  turned.sum().backward();
  CHECK(turned.grad().sizes() == IntArrayRef{2, 1});

  const Tensor written = x * 3, part = written.select(0, 0);
  part.retain_grad();
  {
    const NoGradGuard no_grad;
    written.mul_(2);
  }
  part.backward();
  CHECK(part.grad().item<double>() == 1);
}

TEST_CASE("A leaf that was frozen after the forward pass is given no gradient") {
  const Tensor x = leaf_of({1, 2}), w = leaf_of({3, 4}), y = x * w;
  w.requires_grad_(false);
  y.sum().backward();
  CHECK_FALSE(w.grad().defined());
  CHECK(list(x.grad()) == std::vector<double>{3, 4});
}

TEST_CASE("requires_grad_ of a tensor that requires one already changes nothing, leaf or not") {
  const Tensor y = leaf_of({1, 2}) * 2;
  CHECK(y.requires_grad_().requires_grad());
  CHECK_FALSE(y.is_leaf());
  CHECK_THROWS_AS(y.requires_grad_(false), Error);
}

TEST_CASE("set_requires_grad changes leaves and leaves other tensors as they are") {
  const Tensor x = leaf_of({1, 2}), y = x * 2;
  y.set_requires_grad(false);
  CHECK(y.requires_grad());
  CHECK_FALSE(y.is_leaf());
  y.sum().backward();
  CHECK(list(x.grad()) == std::vector<double>{2, 2});
  CHECK_FALSE(x.set_requires_grad(false).requires_grad());
}

TEST_CASE("guards decide what is recorded, detach leaves the graph") {
  const Tensor x = leaf_of({1});
  {
    const NoGradGuard no_grad;
    CHECK_FALSE((x * 2).requires_grad());
    {
      const EnableGradGuard grad;
      CHECK((x * 2).requires_grad());
    }
    CHECK_FALSE(GradMode::is_enabled());
  }
  CHECK((x * 2).requires_grad());
  const Tensor d = x.detach();
  CHECK_FALSE(d.requires_grad());
  CHECK(d.data_ptr() == x.data_ptr());
  CHECK(x.is_leaf());
  CHECK_FALSE((x * 2).is_leaf());
  Tensor t;
  {
    const InferenceMode inference;
    t = ones({2});
    CHECK(t.is_inference());
  }
  CHECK_THROWS_AS(t.requires_grad_(), Error);
}

TEST_CASE("a parameter made in inference mode computes outside of it, and nothing is recorded") {
  Tensor weight, view;
  {
    const InferenceMode inference;
    weight = ones({2, 3}).requires_grad_();
    view = weight.view({3, 2});
    CHECK_FALSE(view.requires_grad());
  }
  CHECK(weight.requires_grad());
  const Tensor product = weight * weight;
  CHECK_FALSE(product.requires_grad());
  CHECK_FALSE(product.is_inference());
  CHECK_FALSE(ones({4, 2}).matmul(weight).requires_grad());
  const Tensor later = weight.view({6});
  CHECK(later.is_inference());
  CHECK_FALSE(later.requires_grad());
  CHECK(later.is_leaf());
  CHECK_THROWS_AS(weight * ones({2, 3}).requires_grad_(), Error);  // it would have to be saved
  CHECK_THROWS_AS(weight.mul_(2), Error);
}

TEST_CASE("backward accumulates into inputs that are no leaves, and goes no further than it must") {
  const Tensor x = leaf_of({1, 2}), y = leaf_of({3, 4});
  const Tensor z = x * x;
  (y * z + x * y).sum().backward({}, std::nullopt, false, std::vector<Tensor>{x, z});
  CHECK(equal(z.grad(), y));
  CHECK(equal(x.grad(), x * y * 2 + y));
  CHECK_FALSE(y.grad().defined());

  const Tensor w = x * x;
  (y * w).sum().backward({}, std::nullopt, false, std::vector<Tensor>{w});
  CHECK(equal(w.grad(), y));
  CHECK_NOTHROW(w.sum().backward());  // what is behind w was not gone through, and keeps what it saved
  CHECK_THROWS_AS(x.sum().backward({}, std::nullopt, false, std::vector<Tensor>{}), ValueError);
  CHECK_THROWS_AS(x.sum().backward({}, std::nullopt, false, std::vector<Tensor>{y.detach()}), Error);
}

TEST_CASE("bad calls are one-line errors") {
  const Tensor x = leaf_of({1, 2});
  CHECK_THROWS_AS(x.backward(), Error);
  CHECK_THROWS_AS(ones({1}).backward(), Error);
  CHECK_THROWS_AS((x * 2).backward(ones({3}, kFloat64)), ValueError);
  CHECK_THROWS_AS(ones({2}, kInt64).requires_grad_(), Error);
  CHECK_THROWS_AS((x * 2).requires_grad_(false), Error);
}

TEST_CASE("a graph of a million nodes is walked and freed without recursion") {
  const Tensor x = leaf_of({1});
  const Tensor b = tensor({1.0}, kFloat64);
  const int nodes = testing::length_of_long_chain(1000000);
  Tensor y = x;
  for (int i = 0; i < nodes; ++i) y = y + b;
  y.backward();
  CHECK(x.grad().item<double>() == 1);
  y.reset();
  // Freed without a backward pass.
  y = x;
  for (int i = 0; i < nodes; ++i) y = y * b;
  y.reset();
}

TEST_CASE("threads run their own backward passes over shared leaves' graphs") {
  const Tensor shared = leaf_of({2});
  std::vector<std::thread> threads;
  std::vector<double> results(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const Tensor y = shared * shared * static_cast<double>(t);
        results[t] = autograd::grad(y, shared)[0].item<double>();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(results == std::vector<double>{0, 4, 8, 12});
}

TEST_CASE("threads add to the gradient of a leaf that they share") {
  const Tensor weight = ones({64}, kFloat64).requires_grad_();
  constexpr int kThreads = 4, kSteps = 300;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kSteps; ++i) (weight * (t + 1)).sum().backward();
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(weight.grad().equal(full({64}, kSteps * (1 + 2 + 3 + 4), kFloat64)));
}

TEST_CASE("a consumer recorded by another thread comes before what it consumed") {
  const Tensor x = leaf_of({3});
  Tensor y = x;
  std::thread([&] {
    for (int i = 0; i < 100; ++i) y = y * 1.0;
  }).join();
  Tensor z;
  std::thread([&] { z = y * y; }).join();
  z.backward();
  CHECK(x.grad().item<double>() == 6);
}

TEST_CASE("a gradient on another device than its tensor is refused") {
  const Tensor x = leaf_of({1, 2});
  const Device other = get_default_device().is_cpu() ? Device(kMeta) : Device(kCPU);
  CHECK_THROWS_AS((x * 2).backward(ones({2}, TensorOptions(kFloat64).device(other))), ValueError);
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("a leaf that set_data has changed gets gradients of its new shape") {
  const Tensor x = leaf_of({1, 2});
  const Tensor before = x * 2;  // keeps alive what accumulates into the leaf
  x.set_data(tensor({1., 2., 3.}, kFloat32));
  (x * 3).sum().backward();
  CHECK(x.grad().scalar_type() == kFloat32);
  CHECK(list(x.grad()) == std::vector<double>{3, 3, 3});
  // What was computed with the old one has no gradient for the new one.
  CHECK_THROWS_AS(before.sum().backward(), ValueError);
  CHECK(list(x.grad()) == std::vector<double>{3, 3, 3});
}
