// Vectors and triangles: what the decompositions of dense matrices are made of.
#pragma once
#include <cmath>

#include "backends/cpu/linalg/gemm_pack.h"
#include "backends/cpu/linalg/gemv.h"
#include "backends/cpu/loops.h"
#include "core/tensor.h"

namespace rush::cpu {

using LinalgTypes = TypeList<float, double, complex<float>, complex<double>>;

template <class T>
using real_t = gemm_real_t<T>;

template <class T>
RUSH_ALWAYS_INLINE real_t<T> real_part(T value) {
  if constexpr (is_complex_v<T>) {
    return value.real();
  } else {
    return value;
  }
}
// The size by which BLAS (i?amax), and with it LAPACK and cuSOLVER, choose pivots: of a complex number the sum of its
// parts' magnitudes.
template <class T>
RUSH_ALWAYS_INLINE real_t<T> pivot_size(T value) {
  if constexpr (is_complex_v<T>) {
    return std::abs(value.real()) + std::abs(value.imag());
  } else {
    return std::abs(value);
  }
}

// The sum of conj(a_i) b_i.
template <class T>
T inner_product(const T* a, const T* b, int64_t n) {
  if constexpr (is_complex_v<T>) {
    T total(0);
    for (int64_t i = 0; i < n; ++i) total += conj(a[i]) * b[i];
    return total;
  } else {
    return detail::dot(a, b, n);
  }
}

// y += scale * x
template <class T>
void add_scaled(T* y, T scale, const T* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += scale * x[i];
}

// Matrix `i` of a row-major tensor (B, n, m).
template <class T>
MatrixRef<T> matrix_of(const Tensor& t, int64_t i) {
  return {t.data_ptr<T>() + i * t.size(1) * t.size(2), t.size(2), 1};
}

// Calls body(i) for each matrix of a batch; `work` is about what one costs.
template <class Body>
void for_each_matrix(int64_t batch, int64_t work, const Body& body) {
  parallel_for(0, batch, std::max<int64_t>(1, kGrain / std::max<int64_t>(work, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

// c -= a b, for row-major matrices (n, k), (k, m).
template <class T>
void subtract_product(int64_t n, int64_t m, int64_t k, MatrixRef<T> a, MatrixRef<T> b, MatrixRef<T> c) {
  const MatrixSource<T> rows(a.data, a.row_stride, 1), columns(b.data, 1, b.row_stride);
  multiply<T>(n, m, k, rows, columns, T(-1), T(1), c);
}

// x := a^-1 x for a triangular a (n, n) and row-major x (n, m): by blocks of rows, from what is known already.
template <class T>
void solve_triangular(int64_t n, int64_t m, MatrixRef<T> a, bool upper, bool unit, MatrixRef<T> x) {
  constexpr int64_t block = 64;
  const auto solve_row = [&](int64_t i, int64_t begin, int64_t end) {
    T* row = x.at(i, 0).data;
    for (int64_t j = begin; j < end; ++j) add_scaled(row, -*a.at(i, j).data, x.at(j, 0).data, m);
    const T diagonal = unit ? T(1) : *a.at(i, i).data;
    for (int64_t c = 0; c < m && !unit; ++c) row[c] = row[c] / diagonal;
  };
  const int64_t blocks = (n + block - 1) / block;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = (upper ? blocks - 1 - b : b) * block, end = std::min(begin + block, n);
    if (upper) {
      if (end < n) subtract_product(end - begin, m, n - end, a.at(begin, end), x.at(end, 0), x.at(begin, 0));
      for (int64_t i = end; i-- > begin;) solve_row(i, i + 1, end);
    } else {
      if (begin > 0) subtract_product(end - begin, m, begin, a.at(begin, 0), x.at(0, 0), x.at(begin, 0));
      for (int64_t i = begin; i < end; ++i) solve_row(i, begin, i);
    }
  }
}

}  // namespace rush::cpu
