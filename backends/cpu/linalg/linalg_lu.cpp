// LU decompositions, inverses and linear equations.
#include <numeric>

#include "backends/cpu/linalg/dense.h"
#include "backends/cpu/register.h"
#include "core/ops/linalg/linalg.h"
#include "core/ops/linalg/lu.h"

namespace rush::cpu {

namespace {

// LU decomposition of a (n, m) with partial pivoting, or without, in place: P A = L U, L with ones on its diagonal. By
// panels of columns: a panel is eliminated, then what is right of it is brought up to date by one product (Golub and
// Van Loan, Matrix Computations, 3.2.11). pivots[k] is the row that k was exchanged with. Returns 0, or one more than
// the first column without a pivot.
template <class T>
int32_t factor_lu(int64_t n, int64_t m, MatrixRef<T> a, int64_t* pivots, bool pivoting = true) {
  constexpr int64_t panel = 48;
  const int64_t steps = std::min(n, m);
  int32_t info = 0;
  const auto row = [&](int64_t i) { return a.data + i * a.row_stride; };
  for (int64_t first = 0; first < steps; first += panel) {
    const int64_t end = std::min(first + panel, steps);
    for (int64_t k = first; k < end; ++k) {
      int64_t pivot = k;
      for (int64_t i = k + 1; i < n && pivoting; ++i) {
        if (pivot_size(row(i)[k]) > pivot_size(row(pivot)[k])) pivot = i;
      }
      pivots[k] = pivot;
      if (row(pivot)[k] == T(0)) {
        if (info == 0) info = static_cast<int32_t>(k + 1);
        continue;
      }
      if (pivot != k) std::swap_ranges(row(k), row(k) + m, row(pivot));
      for (int64_t i = k + 1; i < n; ++i) {
        T& factor = row(i)[k];
        factor = factor / row(k)[k];
        add_scaled(row(i) + k + 1, -factor, row(k) + k + 1, end - k - 1);
      }
    }
    if (end == m) break;
    solve_triangular(end - first, m - end, a.at(first, first), false, true, a.at(first, end));
    if (end < n) subtract_product(n - end, m - end, end - first, a.at(end, first), a.at(first, end), a.at(end, end));
  }
  return info;
}

template <class T>
struct Lu {
  Lu(int64_t n, const T* matrix) : size(n), memory(n * n), pivots(n) {
    std::copy_n(matrix, n * n, memory.data());
    info = factor_lu(n, n, factors(), pivots.data());
  }
  MatrixRef<T> factors() const { return {memory.data(), size, 1}; }

  T determinant() const {
    T product(info == 0 ? 1 : 0);
    for (int64_t i = 0; i < size && info == 0; ++i) {
      product = (pivots[i] != i ? -product : product) * memory[i * size + i];
    }
    return product;
  }
  // x := A^-1 x, x (n, m).
  void solve(int64_t m, MatrixRef<T> x) const {
    for (int64_t i = 0; i < size; ++i) {
      if (pivots[i] != i) std::swap_ranges(x.at(i, 0).data, x.at(i, 0).data + m, x.at(pivots[i], 0).data);
    }
    solve_triangular(size, m, factors(), false, true, x);
    solve_triangular(size, m, factors(), true, false, x);
  }

  int64_t size;
  Scratch<T> memory;
  Scratch<int64_t> pivots;
  int32_t info;
};

struct DetLoop {
  template <class T>
  static void run(const Tensor& det, const Tensor& a) {
    const int64_t n = a.size(1);
    for_each_matrix(a.size(0), n * n * n,
                    [&](int64_t i) { det.data_ptr<T>()[i] = Lu<T>(n, matrix_of<T>(a, i).data).determinant(); });
  }
};

struct FactorLoop {
  template <class T>
  static void run(const Tensor& lu, const Tensor& pivots, const Tensor& a, bool pivoting, const Tensor& info) {
    const int64_t n = a.size(1), m = a.size(2), k = pivots.size(1);
    for_each_matrix(a.size(0), n * m * k, [&](int64_t i) {
      const MatrixRef<T> out = matrix_of<T>(lu, i);
      const Scratch<int64_t> rows(k);
      std::copy_n(matrix_of<T>(a, i).data, n * m, out.data);
      info.data_ptr<int32_t>()[i] = factor_lu(n, m, out, rows.data(), pivoting);
      for (int64_t j = 0; j < k; ++j) pivots.data_ptr<int32_t>()[i * k + j] = static_cast<int32_t>(rows[j] + 1);
    });
  }
};

struct SolveLoop {
  template <class T>
  static void run(const Tensor& x, const Tensor& a, const Tensor& b, const Tensor& info) {
    const int64_t n = a.size(1), m = b.size(2);
    for_each_matrix(a.size(0), n * n * (n + m), [&](int64_t i) {
      const Lu<T> lu(n, matrix_of<T>(a, i).data);
      info.data_ptr<int32_t>()[i] = lu.info;
      if (lu.info != 0) return;
      const MatrixRef<T> out = matrix_of<T>(x, i);
      std::copy_n(matrix_of<T>(b, i).data, n * m, out.data);
      lu.solve(m, out);
    });
  }
};

struct InverseLoop {
  template <class T>
  static void run(const Tensor& inverse, const Tensor& a, const Tensor& info) {
    const int64_t n = a.size(1);
    for_each_matrix(a.size(0), n * n * n, [&](int64_t i) {
      const Lu<T> lu(n, matrix_of<T>(a, i).data);
      info.data_ptr<int32_t>()[i] = lu.info;
      if (lu.info != 0) return;
      const MatrixRef<T> out = matrix_of<T>(inverse, i);
      std::fill_n(out.data, n * n, T(0));
      for (int64_t d = 0; d < n; ++d) *out.at(d, d).data = T(1);
      lu.solve(n, out);
    });
  }
};

struct TriangularLoop {
  template <class T>
  static void run(const Tensor& x, const Tensor& a, const Tensor& b, bool upper, bool unit) {
    const int64_t n = a.size(1), m = b.size(2);
    for_each_matrix(a.size(0), n * n * m, [&](int64_t i) {
      const MatrixRef<T> out = matrix_of<T>(x, i);
      std::copy_n(matrix_of<T>(b, i).data, n * m, out.data);
      solve_triangular(n, m, matrix_of<T>(a, i), upper, unit, out);
    });
  }
};

void det(const Tensor& out, const Tensor& a) { pick<DetLoop>(LinalgTypes(), a.scalar_type(), "linalg_det")(out, a); }
void permutation(const Tensor& order, const Tensor& pivots) {
  const int64_t n = order.size(1), k = pivots.size(1);
  for (int64_t i = 0; i < order.size(0); ++i) {
    int64_t* rows = order.data_ptr<int64_t>() + i * n;
    std::iota(rows, rows + n, 0);
    for (int64_t j = 0; j < k; ++j) std::swap(rows[j], rows[pivots.data_ptr<int32_t>()[i * k + j] - 1]);
  }
}
}  // namespace

void register_linalg_lu() {
  kernels::linalg_det.set(kCPU, det);
  set_by_dtype<kernels::linalg_lu_factor, FactorLoop, LinalgTypes, 2>(kCPU);
  kernels::pivots_to_permutation.set(kCPU, permutation);
  set_by_dtype<kernels::linalg_inv, InverseLoop, LinalgTypes, 1>(kCPU);
  set_by_dtype<kernels::linalg_solve, SolveLoop, LinalgTypes, 1>(kCPU);
  set_by_dtype<kernels::linalg_solve_triangular, TriangularLoop, LinalgTypes, 1>(kCPU);
}

}  // namespace rush::cpu
