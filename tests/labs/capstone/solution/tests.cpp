// The tests of gated_rms_norm. What has to come is computed here in double precision, by the formula of page.md.
#include <cmath>
#include <initializer_list>

#include "capstone.h"
#include "operator.h"

using namespace rush;
using capstone::gated_rms_norm;

namespace {

// y of contiguous float64 tensors.
Tensor by_formula(const Tensor& x, const Tensor& gate, const Tensor& weight, double eps) {
  const Tensor y = x.clone();
  const int64_t n = x.size(-1);
  for (int64_t row = 0; row < x.numel() / n; ++row) {
    double* z = y.data_ptr<double>() + row * n;
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) {
      z[i] /= 1 / gate.data_ptr<double>()[row * n + i] * (1 + std::exp(-gate.data_ptr<double>()[row * n + i]));
      squares += z[i] * z[i];
    }
    for (int64_t i = 0; i < n; ++i) {
      z[i] *= weight.data_ptr<double>()[i] / std::sqrt(squares / static_cast<double>(n) + eps);
    }
  }
  return y;
}

void expect_close(const Tensor& got, const Tensor& x, const Tensor& gate, const Tensor& weight, double eps,
                  double tolerance) {
  const auto wide = [](const Tensor& t) { return t.to(kFloat64).contiguous(); };
  const Tensor right = by_formula(wide(x), wide(gate), wide(weight), eps);
  RUSH_CHECK(got.scalar_type() == x.scalar_type(), "the dtype is ", got.scalar_type());
  RUSH_CHECK(allclose(wide(got), right, tolerance, tolerance), "the largest error is ",
             (wide(got) - right).abs().max().item<double>());
}

void check_values(ScalarType dtype, double tolerance) {
  const Tensor x = randn({3, 2, 7}).to(dtype), gate = randn({3, 2, 7}).to(dtype), weight = randn({7}).to(dtype);
  expect_close(gated_rms_norm(x, gate, weight), x, gate, weight, 1e-5, tolerance);
}

void test_float32() { check_values(kFloat32, 1e-5); }
void test_bfloat16() { check_values(kBFloat16, 1e-2); }

void test_eps() {
  const Tensor x = randn({2, 5}), gate = randn({2, 5}), weight = ones({5});
  expect_close(gated_rms_norm(x, gate, weight, 2), x, gate, weight, 2, 1e-5);
}

void test_transposed() {
  const Tensor x = randn({4, 3}).t(), gate = randn({3, 4}), weight = randn({4, 2}).select(1, 0);
  expect_close(gated_rms_norm(x, gate, weight), x, gate, weight, 1e-5, 1e-5);
}

void test_empty() {
  for (const DimVector& sizes : {DimVector{0, 4}, DimVector{3, 0}}) {
    const Tensor x = ones(sizes), y = gated_rms_norm(x, x, ones({sizes.back()}));
    RUSH_CHECK(y.sizes() == x.sizes(), "the result has the sizes ", y.sizes());
  }
}

template <class Call>
void expect_value_error(const Call& call) {
  try {
    call();
  } catch (const ValueError&) {
    return;
  }
  RUSH_CHECK(false, "no ValueError was thrown");
}

void test_errors() {
  const Tensor x = ones({2, 3}), weight = ones({3});
  expect_value_error([&] { gated_rms_norm(x, ones({2, 4}), weight); });
  expect_value_error([&] { gated_rms_norm(x, x, ones({2})); });
  expect_value_error([&] { gated_rms_norm(x, x, weight, -0.5); });
}

// Random ones that ask for gradients.
Tensors differentiable() {
  const auto one = [](IntArrayRef sizes) { return randn(sizes, kFloat64).requires_grad_(); };
  return {one({2, 3}), one({2, 3}), one({3})};
}
Tensors operator_of(const Tensors& inputs) { return {gated_rms_norm(inputs[0], inputs[1], inputs[2], 0.1)}; }

void test_gradient() { autograd::gradcheck(operator_of, differentiable()); }
void test_second_gradient() { autograd::gradgradcheck(operator_of, differentiable()); }

void test_fused() {
  for (const int64_t columns : {1, 70, 300}) {
    const Tensor x = randn({2, columns}), gate = randn({2, columns}), weight = randn({columns});
    expect_close(capstone::fused_on_grid({x, gate, weight}, 1e-5), x, gate, weight, 1e-5, 1e-5);
  }
}

}  // namespace

int main() {
  capstone::register_operator(registry());
  manual_seed(0);
  return capstone::run_tests({{"float32", test_float32},
                              {"bfloat16", test_bfloat16},
                              {"eps", test_eps},
                              {"transposed", test_transposed},
                              {"empty", test_empty},
                              {"errors", test_errors},
                              {"gradient", test_gradient},
                              {"second_gradient", test_second_gradient},
                              {"fused", test_fused}});
}
