// In-place operators have derivatives of their own registration: each is checked here as y = x * 1, then y.op_(...).
#include <cmath>
#include <string>

#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

using Inplace = void (*)(Tensor& y, const Tensors& x);

struct Case {
  const char* name;
  Inplace write;
};

// Distinct values in (lowest, lowest + 1) that no rounding and no bound of the cases below comes near.
Tensor between(double lowest, IntArrayRef sizes, double phase) {
  const Tensor t = zeros(sizes, kFloat64);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double x = 0.6180339887 * static_cast<double>(i + 1) + phase;
    t.data_ptr<double>()[i] = lowest + 0.05 + 0.4 * (x - std::floor(x));
  }
  return t.requires_grad_();
}

void check_inplace(const Case& c, const Tensors& inputs) {
  INFO(std::string(c.name));
  const auto written = [&](const Tensors& x) {
    Tensor y = x[0] * 1;
    c.write(y, x);
    return Tensors{y * y};
  };
  check_gradients(written, inputs);
}

TEST_CASE("element-wise, with other tensors and numbers") {
  const Case cases[] = {
      {"addcdiv_", [](Tensor& y, const Tensors& x) { y.addcdiv_(x[1], x[2], 0.5); }},
      {"addcmul_", [](Tensor& y, const Tensors& x) { y.addcmul_(x[1], x[2], 0.5); }},
      {"clamp_", [](Tensor& y, const Tensors& x) { y.clamp_(x[1], x[2] + 1); }},
      {"copysign_", [](Tensor& y, const Tensors& x) { y.copysign_(-x[1]); }},
      {"div_ floor", [](Tensor& y, const Tensors& x) { y.div_(x[1] * x[0], "floor"); }},
      {"div_ trunc", [](Tensor& y, const Tensors& x) { y.div_(x[1] * 0.1, "trunc").add_(x[0]); }},
      {"fill_", [](Tensor& y, const Tensors& x) { y.fill_(2).add_(x[0]); }},
      {"fill_ of a tensor", [](Tensor& y, const Tensors& x) { y.fill_(x[1].sum()); }},
      {"floor_divide_", [](Tensor& y, const Tensors& x) { y.floor_divide_(x[1] * 0.1).add_(x[0]); }},
      {"fmod_", [](Tensor& y, const Tensors& x) { y.fmod_(x[1] * 0.3); }},
      {"remainder_", [](Tensor& y, const Tensors& x) { y.remainder_(x[1] * 0.3); }},
      {"hypot_", [](Tensor& y, const Tensors& x) { y.hypot_(x[1]); }},
      {"lerp_", [](Tensor& y, const Tensors& x) { y.lerp_(x[1], 0.3); }},
      {"lerp_ of tensors", [](Tensor& y, const Tensors& x) { y.lerp_(x[1], x[2]); }},
      {"pow_", [](Tensor& y, const Tensors& x) { y.pow_(x[1]); }},
      {"xlogy_", [](Tensor& y, const Tensors& x) { y.xlogy_(x[1]); }},
  };
  for (const Case& c : cases) {
    check_inplace(c, {between(0.2, {2, 3}, 0), between(0.2, {2, 3}, 0.3), between(0.2, {2, 3}, 0.6)});
    // The others broadcast, and one is not contiguous.
    check_inplace(
        c, {between(0.2, {3, 2}, 0).detach().t().requires_grad_(), between(0.2, {3}, 0.3), between(0.2, {2, 1}, 0.6)});
  }
}

TEST_CASE("element-wise, of the tensor alone") {
  const Case cases[] = {
      {"ceil_", [](Tensor& y, const Tensors& x) { y.ceil_().mul_(x[0]); }},
      {"floor_", [](Tensor& y, const Tensors& x) { y.floor_().mul_(x[0]); }},
      {"frac_", [](Tensor& y, const Tensors&) { y.frac_(); }},
      {"round_", [](Tensor& y, const Tensors& x) { y.round_().mul_(x[0]); }},
      {"round_ to a digit", [](Tensor& y, const Tensors& x) { y.round_(0).mul_(x[0]); }},
      {"trunc_", [](Tensor& y, const Tensors& x) { y.trunc_().mul_(x[0]); }},
      {"sign_", [](Tensor& y, const Tensors& x) { y.sign_().mul_(x[0]); }},
      {"sgn_", [](Tensor& y, const Tensors& x) { y.sgn_().mul_(x[0]); }},
      {"conj_physical_", [](Tensor& y, const Tensors&) { y.conj_physical_(); }},
      {"logit_", [](Tensor& y, const Tensors&) { ops::logit_(y, std::nullopt); }},
      {"nan_to_num_", [](Tensor& y, const Tensors&) { y.nan_to_num_(); }},
      {"triu_", [](Tensor& y, const Tensors&) { y.triu_(); }},
      {"zero_", [](Tensor& y, const Tensors& x) { y.zero_().add_(x[0]); }},
      {"put_",
       [](Tensor& y, const Tensors& x) {
         y.put_(tensor({3, 0}), x[0].flatten().narrow(0, 0, 2), true);
       }},
  };
  for (const Case& c : cases) {
    check_inplace(c, {between(0, {2, 3}, 0)});
    check_inplace(c, {between(0, {3, 2}, 0).detach().t().requires_grad_()});
  }
}

TEST_CASE("products that are added") {
  const auto product = [](auto write) {
    return [write](const Tensors& x) {
      Tensor y = x[0] * 1;
      write(y, x);
      return Tensors{y * y};
    };
  };
  check_gradients(product([](Tensor& y, const Tensors& x) { y.addmv_(x[1], x[2], 0.5, 2); }),
                  {leaf(2, 0.1), leaf({2, 3}, 0.4), leaf(3, 0.7)});
  check_gradients(product([](Tensor& y, const Tensors& x) { y.baddbmm_(x[1], x[2], 0.5, 2); }),
                  {leaf({2, 2, 2}, 0.1), leaf({2, 2, 3}, 0.4), leaf({2, 3, 2}, 0.7)});
}

TEST_CASE("what random numbers replace has no gradient") {
  const Case cases[] = {
      {"bernoulli_", [](Tensor& y, const Tensors& x) { y.bernoulli_(x[0].detach()); }},
      {"bernoulli_ of a number", [](Tensor& y, const Tensors&) { y.bernoulli_(0.5); }},
      {"cauchy_", [](Tensor& y, const Tensors&) { y.cauchy_(); }},
      {"exponential_", [](Tensor& y, const Tensors&) { y.exponential_(); }},
      {"geometric_", [](Tensor& y, const Tensors&) { y.geometric_(0.5); }},
      {"log_normal_", [](Tensor& y, const Tensors&) { y.log_normal_(); }},
      {"normal_", [](Tensor& y, const Tensors&) { y.normal_(); }},
      {"random_", [](Tensor& y, const Tensors&) { y.random_(); }},
      {"random_ up to", [](Tensor& y, const Tensors&) { y.random_(10); }},
      {"random_ between", [](Tensor& y, const Tensors&) { y.random_(2, 10); }},
      {"uniform_", [](Tensor& y, const Tensors&) { y.uniform_(); }},
  };
  for (const Case& c : cases) {
    INFO(std::string(c.name));
    const Tensor x = between(0, {2, 3}, 0);
    Tensor y = x * 1;
    c.write(y, {x});
    CHECK(y.requires_grad());
    y.sum().backward();
    CHECK(values(x.grad()) == Doubles(6, 0.0));
  }
  const Tensor x = between(0, {2, 3}, 0);
  for (const Tensor& drawn : {bernoulli(x), normal(x, 1.0), normal(0.0, x), normal(x, x)}) {
    if (drawn.requires_grad()) {
      x.mutable_grad() = Tensor();
      drawn.sum().backward();
      CHECK(values(x.grad()) == Doubles(6, 0.0));
    }
  }
}

TEST_CASE("complex numbers of their parts, and aliases, are differentiated twice") {
  const auto parts = [](auto make) {
    return [make](const Tensors& in) { return Tensors{view_as_real(make(in[0], in[1]).square())}; };
  };
  const Tensors same = {leaf({2, 3}), leaf({2, 3}, 1)}, strided = {leaf({3, 2}).t(), leaf({2, 3}, 1)},
                broadcast = {leaf({2, 1}), leaf({3}, 1)};
  for (const Tensors& in : {same, strided, broadcast}) {
    check_gradients(parts([](const Tensor& a, const Tensor& b) { return make_complex(a, b); }), in);
    check_gradients(parts([](const Tensor& a, const Tensor& b) { return polar(a.exp(), b); }), in);
    check_gradients([](const Tensors& x) { return Tensors{ops::alias(x[0]).square()}; }, in);
  }
}

}  // namespace
