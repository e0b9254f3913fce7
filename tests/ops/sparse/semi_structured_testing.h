// What the tests of 2:4 matrices share.
#pragma once
#include <cmath>

#include "tests/ops/index/index_testing.h"

namespace rush::testing {

// Values of both signs, with zeros and equal magnitudes among them.
inline Tensor uneven(int64_t rows, int64_t columns, ScalarType dtype, int64_t phase = 0) {
  const Tensor t = zeros({rows, columns}, TensorOptions(kFloat64).device(kCPU));
  for (int64_t i = 0; i < t.numel(); ++i) {
    const int64_t mixed = (i * 37 + i / 7 * 11 + phase) % 29 - 14;
    t.data_ptr<double>()[i] = static_cast<double>(mixed) / 8;
  }
  return t.to(dtype);
}

// The definition, value by value, on the host: of each four the two largest magnitudes, of equal ones the first.
inline Tensor pruned_by_hand(const Tensor& matrix) {
  const Tensor t = matrix.detach().cpu().to(kFloat64).clone();
  for (int64_t four = 0; four < t.numel(); four += 4) {
    double* const x = t.data_ptr<double>() + four;
    for (int dropped = 0; dropped < 2; ++dropped) {
      int smallest = -1;
      for (int i = 0; i < 4; ++i) {
        if (x[i] != 0 && (smallest < 0 || std::abs(x[i]) <= std::abs(x[smallest]))) smallest = i;
      }
      int zeros = 0;
      for (int i = 0; i < 4; ++i) zeros += x[i] == 0;
      if (zeros < 2) x[smallest] = 0;
    }
  }
  return t.to(matrix.scalar_type());
}

// Whether `got` is the float64 reference, computed in float32 at worst and rounded to its dtype once.
inline bool is_rounded(const Tensor& got, const Tensor& reference) {
  const ScalarType dtype = got.scalar_type();
  const double rounding = dtype == kFloat64 ? 1e-12 : dtype == kFloat32 ? 1e-6 : dtype == kFloat16 ? 0x1p-11 : 0x1p-8;
  const double summing = dtype == kFloat64 ? 1e-12 : 2e-5;
  return got.sizes() == reference.sizes() &&
         allclose(got.detach().cpu().to(kFloat64), reference, 1.01 * rounding, summing);
}

// diag(alpha) a b + bias in float64, on the host.
inline Tensor product_by_definition(const Tensor& a, const Tensor& b, const Tensor& bias = {},
                                    const Tensor& alpha = {}) {
  const auto wide = [](const Tensor& t) { return t.detach().cpu().to(kFloat64); };
  Tensor c = wide(a).mm(wide(b));
  if (alpha.defined()) c = c * wide(alpha).view({-1, 1});
  return bias.defined() ? c + wide(bias).view({-1, 1}) : c;
}

}  // namespace rush::testing
