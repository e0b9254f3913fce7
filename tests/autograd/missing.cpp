// Results, arguments and operators that have no gradient: which they are, and that none is lost without a word.
#include <doctest/doctest.h>

#include "core/ops/nn/fused_attention.h"
#include "rushlight.h"

using namespace rush;

TEST_CASE("results that are constants for autograd have no history, and leave the others' gradients as they are") {
  const auto recorded = [](const auto& results) {
    return std::apply(
        [](const auto&... each) {
          CHECK_FALSE((each.is_view() || ...));  // of what the kernel made inside
          return std::vector<bool>{each.requires_grad()...};
        },
        results);
  };
  using Flags = std::vector<bool>;  // as PyTorch's
  const Tensor x = tensor({0.5, -1.0, 2.0, 0.1, 0.7, -0.3}, kFloat64).view({2, 3}).requires_grad_(),
               labels = tensor({2, 0});
  CHECK(recorded(ops::log_sigmoid_forward(x)) == Flags{true, false});
  CHECK(recorded(ops::nll_loss_forward(x, labels, {}, Reduction::Mean, -100)) == Flags{true, false});
  CHECK(recorded(ops::native_layer_norm(x, 3, {}, {}, 1e-5)) == Flags{true, false, false});
  CHECK(recorded(ops::native_batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5)) == Flags{true, false, false});
  CHECK(recorded(ops::_ctc_loss(x.view({2, 1, 3}), tensor({1}).view({1, 1}), {2}, {1}, 0, false)) ==
        Flags{true, false});
  const Tensor q = x.view({1, 1, 2, 3}).cpu();
  CHECK(recorded(ops::_scaled_dot_product_flash_attention_for_cpu(q, q, q, 0, false, {}, {})) == Flags{true, false});

  const auto [loss, total_weight] = ops::nll_loss_forward(x, labels, {}, Reduction::Sum, -100);
  const Tensor alone = autograd::grad(loss, x, {}, true)[0];
  CHECK(equal(autograd::grad(loss + total_weight, x)[0], alone));
}

TEST_CASE("arguments that an operator takes for constants must not require a gradient") {
  const Tensor x = ones({2, 3}, kFloat64).requires_grad_(), each = ones({3}, kFloat64).requires_grad_();
  const Tensor labels = tensor({2, 0});
  CHECK_THROWS_WITH_AS(
      batch_norm(x, {}, {}, each, each.detach(), false, 0.1, 1e-5),
      "aten::native_batch_norm: there is no derivative by 'running_mean', which must not require a gradient",
      NotImplementedError);
  CHECK_THROWS_WITH_AS(nll_loss(x, labels, each), doctest::Contains("by 'weight'"), NotImplementedError);
  CHECK_THROWS_WITH_AS(cross_entropy_loss(x, labels, each), doctest::Contains("by 'weight'"), NotImplementedError);
  CHECK_THROWS_WITH_AS(binary_cross_entropy(x * 0.5, x.detach() * 0, x), doctest::Contains("by 'weight'"),
                       NotImplementedError);
  const NoGradGuard no_grad;
  CHECK(nll_loss(x, labels, each).item<double>() == -1);
}

TEST_CASE("operators without a derivative say so when a gradient reaches them") {
  const Tensor x = tensor({0.3, 0.7, -1.0}, kFloat64).requires_grad_();
  const auto refuses = [&](const Tensor& result, const char* op) {
    CHECK(result.requires_grad());
    CHECK_THROWS_WITH_AS(result.sum().backward(), doctest::Contains(op), NotImplementedError);
  };
  refuses(heaviside(x, x * 2), "the derivative of aten::heaviside is not implemented");
  refuses((x * 2).heaviside_(x), "aten::heaviside_");
  refuses(nextafter(x, x * 2), "aten::nextafter");
  refuses(std::get<0>(unique_consecutive(x)), "aten::unique_consecutive");
  refuses(ops::linspace_Tensor_Scalar(x.sum(), 1, 5, {}, {}, {}, {}), "aten::linspace.Tensor_Scalar");
  CHECK_FALSE(heaviside(x.detach(), ones({3}, kFloat64)).requires_grad());
  CHECK_FALSE(histc(x, 4).requires_grad());  // what is counted is a constant
}

TEST_CASE("truth values that are written over numbers have a gradient of zero") {
  const Tensor x = tensor({0.3, 0.7, -1.0}, kFloat64).requires_grad_(), zero = zeros({3}, kFloat64);
  const auto gradient = [&](const auto& write) {
    Tensor y = x * 2;
    write(y);
    return autograd::grad((y + x * 0).sum(), x)[0];
  };
  CHECK(equal(gradient([](Tensor& y) { y.lt_(0.5); }), zero));
  CHECK(equal(gradient([&](Tensor& y) { y.eq_(x); }), zero));
  CHECK(equal(gradient([&](Tensor& y) { y.ge_(x.detach()); }), zero));
  CHECK(equal(gradient([&](Tensor& y) { y.logical_and_(x); }), zero));
  CHECK(equal(gradient([](Tensor& y) { y.logical_not_(); }), zero));
  CHECK(equal(gradient([](Tensor& y) { y.narrow(0, 0, 2).ne_(0.6); }), tensor({0.0, 0.0, 2.0}, kFloat64)));

  Tensor leaf = ones({3}, kFloat64).requires_grad_();
  CHECK_THROWS_WITH_AS(leaf.gt_(0.5),
                       doctest::Contains("a leaf Variable that requires grad is being used in an in-place operation"),
                       Error);
  Tensor mask = ones({3}, kBool);  // truth values carry no gradient
  CHECK_FALSE(mask.gt_(x).requires_grad());
  CHECK(equal(mask, tensor({true, true, true})));
  CHECK_FALSE(mask.narrow(0, 1, 2).lt_(x.narrow(0, 1, 2)).requires_grad());
}
