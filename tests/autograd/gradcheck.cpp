#include "autograd/debug/gradcheck.h"

#include <doctest/doctest.h>

#include <stdexcept>

#include "rushlight.h"

using namespace rush;
using autograd::gradcheck;
using autograd::gradgradcheck;

namespace {

// factor * x * x, whose derivative claims to be `claimed(x)`.
struct Parabola : autograd::Function<Parabola> {
  static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, Tensor (*claimed)(const Tensor&)) {
    ctx->save_for_backward({x});
    ctx->saved_data["claimed"] = reinterpret_cast<int64_t>(claimed);
    return x * x;
  }
  static Tensors backward(autograd::AutogradContext* ctx, const Tensors& grads) {
    const auto claimed = reinterpret_cast<Tensor (*)(const Tensor&)>(ctx->saved_data["claimed"].toInt());
    return {grads[0] * claimed(ctx->get_saved_variables()[0]), Tensor()};
  }
};

Tensor right(const Tensor& x) { return 2 * x; }
Tensor wrong(const Tensor& x) { return 2.1 * x; }
Tensor constant(const Tensor& x) { return (2 * x).detach(); }
Tensor conjugate(const Tensor& x) { return 2 * x.conj(); }
Tensor by_memory(const Tensor& x) { return 2 * x.as_strided(x.sizes(), {3, 1}); }

template <Tensor (*claimed)(const Tensor&)>
Tensors parabola(const Tensors& inputs) {
  return {Parabola::apply(inputs[0], claimed)};
}

// x, whose derivative is lost where the gradient is one number for all, as that of a sum is.
struct LosesRepeated : autograd::Function<LosesRepeated> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& x) { return x.clone(); }
  static Tensors backward(autograd::AutogradContext*, const Tensors& grads) {
    return {grads[0].stride(0) == 0 ? zeros_like(grads[0]) : grads[0]};
  }
};

}  // namespace

TEST_CASE("gradcheck tells right derivatives from wrong ones") {
  const Tensor x = tensor({1.0, 2.0, -3.0, 0.5, 4.0, -1.0}, kFloat64).reshape({2, 3}).requires_grad_();
  CHECK(gradcheck(parabola<right>, {x}));
  CHECK(gradgradcheck(parabola<right>, {x}));
  CHECK_THROWS_WITH_AS(gradcheck(parabola<wrong>, {x}),
                       doctest::Contains("gradcheck: d output 0[0] / d input 0[0] is 2.1, finite differences give 2"),
                       Error);
  CHECK(gradcheck(parabola<constant>, {x}));
  CHECK_THROWS_AS(gradgradcheck(parabola<constant>, {x}), Error);
}

TEST_CASE("gradcheck finds a derivative that takes its input's memory for contiguous") {
  const Tensor x = tensor({1.0, 2.0, -3.0, 0.5, 4.0, -1.0}, kFloat64).reshape({2, 3}).requires_grad_();
  CHECK_THROWS_WITH_AS(gradcheck(parabola<by_memory>, {x}), doctest::Contains("with other strides of the inputs"),
                       Error);
  autograd::GradcheckOptions options;
  options.any_layout = false;
  CHECK(gradcheck(parabola<by_memory>, {x}, options));
}

TEST_CASE("gradcheck finds a derivative that goes wrong at an expanded gradient") {
  const Tensor x = tensor({1.0, 2.0, -3.0}, kFloat64).requires_grad_();
  const auto fn = [](const Tensors& in) { return Tensors{LosesRepeated::apply(in[0])}; };
  CHECK_THROWS_WITH_AS(gradcheck(fn, {x}), doctest::Contains("is 0 with a gradient that is expanded, and was 0.7"),
                       Error);
}

TEST_CASE("gradcheck of a function that asks for gradients itself") {
  const Tensor x = tensor({1.0, 2.0, -3.0}, kFloat64).requires_grad_();
  const auto slope = [](const Tensors& in) {
    return autograd::grad({in[0].pow(3).sum()}, {in[0]}, {}, true, /*create_graph=*/true);
  };
  CHECK(gradcheck(slope, {x}));
  CHECK(gradgradcheck(slope, {x}));
  const auto frozen = [](const Tensors& in) {
    return Tensors{autograd::grad({in[0].pow(3).sum()}, {in[0]})[0] * in[0]};  // without the graph: a wrong derivative
  };
  CHECK_THROWS_AS(gradcheck(frozen, {x}), Error);
}

TEST_CASE("gradcheck's fast mode tells right derivatives from wrong ones by one projection") {
  autograd::GradcheckOptions fast;
  fast.fast_mode = true;
  const Tensor x = tensor({1.0, 2.0, -3.0, 0.5, 4.0, -1.0}, kFloat64).reshape({2, 3}).requires_grad_();
  CHECK(gradcheck(parabola<right>, {x}, fast));
  CHECK(gradgradcheck(parabola<right>, {x}, fast));
  CHECK_THROWS_WITH_AS(gradcheck(parabola<wrong>, {x}, fast), doctest::Contains("gradcheck: d output 0 / d input 0 in"),
                       Error);
  CHECK_THROWS_AS(gradgradcheck(parabola<constant>, {x}, fast), Error);
  CHECK_THROWS_WITH_AS(gradcheck(parabola<by_memory>, {x}, fast), doctest::Contains("with other strides"), Error);
  const auto undifferentiated = [](const Tensors& in) { return Tensors{in[0].detach() * 2, in[0] * 2}; };
  CHECK_THROWS_WITH_AS(gradcheck(undifferentiated, {x}, fast), doctest::Contains("does not require a gradient"), Error);

  // The gradient of x m by x is not g m, but where m is symmetric.
  const auto by_untransposed = [](const Tensors& in) {
    struct Product : autograd::Function<Product> {
      static Tensor forward(autograd::AutogradContext* ctx, const Tensor& x, const Tensor& m) {
        ctx->save_for_backward({m});
        return x.matmul(m);
      }
      static Tensors backward(autograd::AutogradContext* ctx, const Tensors& grads) {
        return {grads[0].matmul(ctx->get_saved_variables()[0]), Tensor()};
      }
    };
    return Tensors{Product::apply(in[0], in[1])};
  };
  const Tensor row = x[0].detach().unsqueeze(0).requires_grad_(), m = arange(9, kFloat64).view({3, 3});
  CHECK_THROWS_AS(gradcheck(by_untransposed, {row, m}, fast), Error);
  CHECK(gradcheck(by_untransposed, {row, m + m.t()}, fast));

  // However many elements there are, `fn` is called for the outputs, twice per input, and four times for other layouts;
  // once more where an observer looks at it.
  int calls = 0;
  const auto counted = [&](const Tensors& in) {
    ++calls;
    return Tensors{in[0] * in[1], in[0].exp()};
  };
  const Tensor large = linspace(-1, 1, 600, kFloat64).requires_grad_();
  CHECK(gradcheck(counted, {large, large.detach().clone().requires_grad_()}, fast));
  CHECK(calls == 1 + 2 * 2 + 4 + (autograd::gradcheck_observer ? 1 : 0));
  const Tensor before = x.detach().clone();
  CHECK_THROWS_AS(gradcheck(parabola<wrong>, {x}, fast), Error);
  CHECK(equal(x, before));
}

TEST_CASE("gradcheck of complex numbers, of which each is two") {
  const complex<double> i(0, 1);
  const Tensor z = (arange(6, kFloat64).view({2, 3}) * (1.0 - 0.5 * i) + i).requires_grad_();
  autograd::GradcheckOptions fast;
  fast.fast_mode = true;
  for (const autograd::GradcheckOptions& options : {autograd::GradcheckOptions(), fast}) {
    CHECK(gradcheck(parabola<conjugate>, {z}, options));
    CHECK(gradgradcheck(parabola<conjugate>, {z}, options));
    CHECK_THROWS_AS(gradcheck(parabola<right>, {z}, options), Error);
    CHECK_THROWS_AS(gradcheck(parabola<by_memory>, {z}, options), Error);
    // From real numbers to complex ones and back.
    const Tensor x = tensor({1.0, 2.0, -3.0}, kFloat64).requires_grad_();
    const auto lengths = [](const Tensors& in) { return Tensors{(in[0] * in[1]).abs(), in[1].exp()}; };
    CHECK(gradcheck(lengths, {z, x}, options));
    CHECK(gradgradcheck(lengths, {z, x}, options));
  }
  // 1 + i times 2: the imaginary part comes second.
  CHECK_THROWS_WITH_AS(gradcheck(parabola<right>, {tensor({1.0}, kFloat64).mul(1.0 + i).requires_grad_()}),
                       doctest::Contains("d output 0[0] / d input 0[1] is 2, finite differences give -2"), Error);
}

TEST_CASE("gradcheck refuses what it cannot check") {
  const Tensor x = ones({2}, kFloat64);
  const auto same = [](const Tensors& inputs) { return inputs; };
  CHECK_THROWS_WITH_AS(gradcheck(same, {x}), doctest::Contains("no input requires a gradient"), ValueError);
  CHECK_THROWS_AS(gradcheck(same, {ones({2}, kFloat32).requires_grad_()}), TypeError);
  CHECK_THROWS_WITH_AS(gradcheck(same, {ones({1}, kFloat64).expand({3}).detach().requires_grad_()}),
                       doctest::Contains("share memory"), ValueError);
  const auto integers = [](const Tensors& inputs) { return Tensors{inputs[0].to(kInt64)}; };
  CHECK_THROWS_WITH_AS(gradcheck(integers, {ones({2}, kFloat64).requires_grad_()}),
                       doctest::Contains("no differentiable output"), ValueError);
  CHECK_THROWS_WITH_AS(gradcheck(same, {eye(2, kFloat64).to_sparse().requires_grad_()}), doctest::Contains("is sparse"),
                       ValueError);
}

TEST_CASE("gradcheck takes sparse inputs that require no gradient") {
  const Tensor sparse = eye(2, kFloat64).to_sparse(), x = ones({2, 2}, kFloat64).requires_grad_();
  const auto product = [](const Tensors& in) { return Tensors{in[0].mm(in[1])}; };
  CHECK(gradcheck(product, {sparse, x}));
  CHECK(gradgradcheck(product, {sparse.to_sparse_csr(), x}));
}

TEST_CASE("gradcheck leaves the inputs as they were when the function throws") {
  const Tensor x = ones({2}, kFloat64).requires_grad_();
  int calls = 0;
  const auto fails = [&](const Tensors& in) {
    if (++calls == 2) throw std::runtime_error("the second call");
    return Tensors{in[0] * 2};
  };
  CHECK_THROWS_AS(gradcheck(fails, {x}), std::runtime_error);
  CHECK(x.detach().equal(ones({2}, kFloat64)));
}
