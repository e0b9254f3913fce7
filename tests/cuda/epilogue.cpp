// cuBLASLt's epilogues against the operators that they stand for.
#include <cmath>

#include "backends/cuda/blas/epilogue.h"

#include <doctest/doctest.h>

#include "backends/cuda/devices.h"
#include "rushlight.h"
#include "tests/cuda/same_as_cpu.h"

namespace {

using namespace rush;
using namespace rush::testing;

double epilogue_tolerance(ScalarType dtype) { return dtype == kFloat32 ? 1e-4 : dtype == kFloat16 ? 2e-2 : 1.2e-1; }

struct EpilogueSetup {
  ScalarType dtype;
  int64_t rows, in, out;  // the last has sizes that no epilogue's alignment rule allows
  Tensor input, weight, bias;

  EpilogueSetup(ScalarType type, int64_t n, int64_t k, int64_t m) : dtype(type), rows(n), in(k), out(m) {
    manual_seed(7);
    input = randn({n, k}, kFloat64).to(type);
    weight = randn({m, k}, kFloat64).div(std::sqrt(static_cast<double>(k))).to(type);
    bias = randn({m}, kFloat64).to(type);
  }
  Tensor pre() const { return linear(input.to(kFloat64), weight.to(kFloat64), bias.to(kFloat64)); }
  Tensor empty_like_gpu(IntArrayRef sizes) const { return empty(sizes, TensorOptions(dtype).device(kCUDA)); }
};

template <class Body>
void for_each_setup(const Body& body) {
  for (const ScalarType dtype : {kFloat32, kFloat16, kBFloat16}) {
    for (const int64_t size : {32, 128, 13}) {
      CAPTURE(str(dtype));
      CAPTURE(size);
      body(EpilogueSetup(dtype, size + 3 * (size % 8), 2 * size, size));
    }
  }
}

}  // namespace

TEST_CASE("cuda: linear with GELU" * doctest::skip(!cuda::is_available())) {
  for_each_setup([](const EpilogueSetup& s) {
    const Tensor expected = gelu(s.pre(), "tanh");
    const Tensor out = s.empty_like_gpu({s.rows, s.out}), pre = s.empty_like_gpu({s.rows, s.out});
    cuda::linear_gelu(out, pre, s.input.cuda(), s.weight.cuda(), s.bias.cuda());
    check_within(out, expected, epilogue_tolerance(s.dtype));
    check_within(pre, s.pre(), epilogue_tolerance(s.dtype));
  });
}

TEST_CASE("cuda: the gradients of linear's parameters" * doctest::skip(!cuda::is_available())) {
  for_each_setup([](const EpilogueSetup& s) {
    const Tensor grad = s.pre().to(s.dtype);
    const Tensor grad_weight = s.empty_like_gpu({s.out, s.in}), grad_bias = s.empty_like_gpu(s.out);
    kernels::linear_parameter_gradients(kCUDA, grad_weight, grad_bias, grad.cuda(), s.input.cuda());
    const double most = epilogue_tolerance(s.dtype) * std::sqrt(static_cast<double>(s.rows));
    const Tensor expected = grad.to(kFloat64).t().mm(s.input.to(kFloat64));
    CHECK(grad_weight.cpu().to(kFloat64).allclose(expected, most, most));
    CHECK(grad_bias.cpu().to(kFloat64).allclose(grad.to(kFloat64).sum(0), most, most));
  });
}

TEST_CASE("cuda: cuBLASLt has kernels for every epilogue" * doctest::skip(!cuda::is_available())) {
  using cuda::Epilogue;
  for (const ScalarType dtype : {kFloat16, kBFloat16}) {
    const auto make = [&](IntArrayRef sizes) { return randn(sizes, kFloat32).to(dtype).cuda(); };
    const Tensor c = make({1, 128, 64}), a = make({1, 128, 256}), b = make({1, 256, 64});
    const Tensor bias = make({64}), pre = make({128, 64});
    CAPTURE(str(dtype));
    CHECK(cuda::multiply_with_epilogue({c, a, b, Epilogue::Bias, bias, Tensor()}));
    CHECK(cuda::multiply_with_epilogue({c, a, b, Epilogue::GeluAuxBias, bias, pre}));
  }
}
