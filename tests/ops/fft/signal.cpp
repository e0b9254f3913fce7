#include "core/ops/fft/signal.h"

#include "tests/ops/fft/fft_testing.h"

namespace {

using namespace rush;
using rush::testing::check_gradients;
using rush::testing::check_values;
using rush::testing::Doubles;
using rush::testing::leaf;
using rush::testing::values;

// out[i] = sum over j of a[i - j] b[j], of two vectors, by the definition.
Doubles naive_convolution(const Doubles& a, const Doubles& b) {
  Doubles out(a.size() + b.size() - 1, 0.0);
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) out[i + j] += a[i] * b[j];
  }
  return out;
}

TEST_CASE("fftconvolve: the definition, in every mode") {
  const int64_t lengths[][2] = {{1, 1}, {5, 3}, {3, 5}, {6, 6}, {40, 7}, {64, 1}, {17, 100}};
  for (const auto& [n, m] : lengths) {
    CAPTURE(n);
    CAPTURE(m);
    const Tensor a = leaf({n}).detach(), b = leaf({m}, 0.7).detach();
    const Doubles full = naive_convolution(values(a), values(b));
    check_values(signal::fftconvolve(a, b), full);
    const auto part = [&](int64_t count) {
      const auto begin = full.begin() + (static_cast<int64_t>(full.size()) - count) / 2;
      return Doubles(begin, begin + count);
    };
    check_values(signal::fftconvolve(a, b, "same"), part(n));
    check_values(signal::fftconvolve(a, b, "valid"), part(std::abs(n - m) + 1));
  }
  check_values(signal::fftconvolve(arange(1, 4), tensor({1, 10})), {1, 12, 23, 30}, 1e-5);
  CHECK(signal::fftconvolve(arange(3), arange(2)).scalar_type() == kFloat32);
}

TEST_CASE("fftconvolve: batches, dimensions, complex operands") {
  const Tensor a = leaf({2, 9, 3}).detach(), b = leaf({1, 4, 3}, 1.1).detach();
  const Tensor rows = signal::fftconvolve(a, b, "full", 1);  // the others broadcast
  CHECK(rows.sizes() == IntArrayRef{2, 12, 3});
  for (const int64_t i : {0, 1}) {
    for (const int64_t k : {0, 1, 2}) {
      const auto line = [&](const Tensor& t, int64_t batch) { return values(t.select(0, batch).select(1, k)); };
      check_values(rows.select(0, i).select(1, k), naive_convolution(line(a, i), line(b, 0)));
    }
  }
  // Over two dimensions: conv2d, whose kernel is not turned around, with a turned one.
  const Tensor image = leaf({7, 6}).detach(), kernel = leaf({3, 2}, 0.4).detach();
  const Tensor expected = conv2d(image.view({1, 1, 7, 6}), kernel.flip({0, 1}).view({1, 1, 3, 2}));
  check_values(signal::fftconvolve(image, kernel, "valid", {0, 1}), values(expected));
  // (a + ib) * c = a * c + i (b * c)
  const Tensor z = ops::complex(leaf({5}).detach(), leaf({5}, 0.2).detach()), c = leaf({3}, 0.9).detach();
  const Tensor product = signal::fftconvolve(z, c);
  CHECK(product.scalar_type() == kComplex128);
  check_values(real(product), naive_convolution(values(real(z)), values(c)));
  check_values(imag(product), naive_convolution(values(imag(z)), values(c)));
}

TEST_CASE("fftconvolve: gradients and bad input") {
  check_gradients([](const Tensors& x) { return Tensors{signal::fftconvolve(x[0], x[1], "same")}; },
                  {leaf({2, 5}), leaf({1, 3}, 0.5)});
  const Tensor a = ones({4, 5}), b = ones({5, 4});
  CHECK_THROWS_AS(signal::fftconvolve(a, b, "half"), ValueError);
  CHECK_THROWS_AS(signal::fftconvolve(a, ones({3})), ValueError);
  CHECK_THROWS_AS(signal::fftconvolve(a, b), ValueError);  // 4 and 5 do not broadcast
  CHECK_THROWS_AS(signal::fftconvolve(a, b, "valid", {0, 1}), ValueError);
  CHECK_THROWS_AS(signal::fftconvolve(a, ones({4, 0})), ValueError);
  CHECK_THROWS_AS(signal::fftconvolve(a, b, "full", 2), IndexError);
  CHECK_THROWS_AS(signal::fftconvolve(a, b, "full", {0, 0}), ValueError);
  CHECK_THROWS_AS(signal::fftconvolve(a, b, "full", IntArrayRef()), ValueError);
  CHECK_THROWS_AS(signal::fftconvolve(tensor(1.0), tensor(1.0)), ValueError);
}

}  // namespace
