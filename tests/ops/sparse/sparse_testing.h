// What the tests of sparse tensors share: random patterns and comparisons with dense tensors.
#pragma once
#include <cmath>

#include "tests/ops/index/index_testing.h"

namespace rush::testing {

// A dense matrix of which about half of the elements are not zero, with empty rows and empty columns.
inline Tensor patterned(int64_t rows, int64_t columns, ScalarType dtype = kFloat64, int64_t phase = 0) {
  const Tensor t = zeros({rows, columns}, kFloat64);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t mixed = (i * 7 + j * 5 + i * j + phase) % 11;
      if (i % 4 == 1 || j % 5 == 3 || mixed > 6) continue;
      t.data_ptr<double>()[i * columns + j] = std::sin(static_cast<double>(3 * i + 2 * j + phase)) + 1.5;
    }
  }
  return t.to(dtype);
}

inline bool close(const Tensor& got, const Tensor& expected, double tolerance = 1e-12) {
  const Tensor a = got.to_dense().cpu(), b = expected.to_dense().cpu();
  if (!(a.sizes() == b.sizes()) || a.scalar_type() != b.scalar_type()) return false;
  return allclose(a.to(kComplex128), b.to(kComplex128), tolerance, tolerance);
}
inline double tolerance_of(ScalarType dtype) {
  return element_size(dtype) / (is_complex(dtype) ? 2 : 1) == 8 ? 1e-12 : 1e-5;
}

inline Tensor longs(std::initializer_list<int64_t> values, ScalarType dtype = kInt64) {
  const Tensor t = empty(static_cast<int64_t>(values.size()), kInt64);
  std::copy(values.begin(), values.end(), t.data_ptr<int64_t>());
  return t.to(dtype);
}

// The same entries split in two each, in another order: not coalesced.
inline Tensor with_duplicates(const Tensor& coo) {
  const Tensor indices = coo._indices(), values = coo._values();
  return sparse_coo_tensor(cat({indices.flip(1), indices}, 1), cat({values.flip(0) * 0.25, values * 0.75}, 0),
                           coo.sizes());
}

inline constexpr Layout kAllLayouts[] = {kSparse, kSparseCsr, kSparseCsc, kSparseBsr, kSparseBsc};

// In this layout, with blocks of `block` by `block` where it has any.
inline Tensor in_layout(const Tensor& tensor, Layout layout, int64_t block = 2) {
  return is_blocked(layout) ? tensor.to_sparse(layout, {block, block}) : tensor.to_sparse(layout);
}

}  // namespace rush::testing
