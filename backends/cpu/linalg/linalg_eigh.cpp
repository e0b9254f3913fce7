#include <numeric>

#include "backends/cpu/linalg/dense.h"
#include "backends/cpu/register.h"
#include "core/ops/linalg/linalg.h"

namespace rush::cpu {

namespace {

// A Hermitian matrix as Q T Q^H, T real and tridiagonal, by Householder's reflections from both sides (Golub and Van
// Loan, Matrix Computations, 8.3.1). Q is returned by its columns: column j is q[j * n ... j * n + n).
template <class T>
class Tridiagonal {
 public:
  using Real = real_t<T>;

  // Only the lower triangle of `a` is read.
  Tridiagonal(int64_t n, const T* a, T* q, Real* diagonal, Real* below)
      : n_(n), matrix_(n * n), tau_(n), product_(n), q_(q), diagonal_(diagonal), below_(below) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        at(i, j) = a[i * n + j];
        at(j, i) = conjugate(a[i * n + j]);
      }
      at(i, i) = T(real_part(a[i * n + i]));
    }
    reduce();
    form_q();
  }

 private:
  T& at(int64_t i, int64_t j) const { return matrix_[i * n_ + j]; }

  // The vector of reflection k is kept in row k, from element k + 1 on.
  void reduce() const {
    for (int64_t k = 0; k + 1 < n_; ++k) {
      const int64_t rest = n_ - k - 1;
      T* v = &at(k, k + 1);
      for (int64_t i = 0; i < rest; ++i) v[i] = at(k + 1 + i, k);
      tau_[k] = make_reflection(v, rest);
      diagonal_[k] = real_part(at(k, k));
      below_[k] = real_part(v[0]);
      v[0] = T(1);
      if (tau_[k] != T(0)) update(k, rest, v);
    }
    if (n_ > 0) diagonal_[n_ - 1] = real_part(at(n_ - 1, n_ - 1));
  }

  // What remains, A, becomes H^H A H = A - v w^H - w v^H, with p = tau A v and w = p - (tau / 2) (p^H v) v.
  void update(int64_t k, int64_t rest, const T* v) const {
    T* w = product_.data();
    for (int64_t i = 0; i < rest; ++i) {
      const T* row = &at(k + 1 + i, k + 1);
      T sum(0);
      for (int64_t j = 0; j < rest; ++j) sum += row[j] * v[j];
      w[i] = tau_[k] * sum;
    }
    add_scaled(w, -(tau_[k] * inner_product(w, v, rest) / T(2)), v, rest);
    for (int64_t i = 0; i < rest; ++i) {
      T* row = &at(k + 1 + i, k + 1);
      for (int64_t j = 0; j < rest; ++j) row[j] -= v[i] * conjugate(w[j]) + w[i] * conjugate(v[j]);
    }
  }

  // Q = H_0 H_1 ..., applied to the identity from the last on.
  void form_q() const {
    std::fill_n(q_, n_ * n_, T(0));
    for (int64_t j = 0; j < n_; ++j) q_[j * n_ + j] = T(1);
    for (int64_t k = n_ - 1; k-- > 0;) {
      for (int64_t j = k + 1; j < n_; ++j) reflect(q_ + j * n_ + k + 1, &at(k, k + 1), tau_[k], n_ - k - 1);
    }
  }

  int64_t n_;
  Scratch<T> matrix_, tau_, product_;
  T* q_;
  Real *diagonal_, *below_;
};

// Columns a and b of Q by the rotation (c, s): b := s a + c b, a := c a - s b.
template <class T, class Real>
void rotate(T* a, T* b, Real c, Real s, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T old = b[i];
    b[i] = T(s) * a[i] + T(c) * old;
    a[i] = T(c) * a[i] - T(s) * old;
  }
}

// The eigenvalues of a real tridiagonal matrix, over its diagonal d, by the QL iteration with implicit shifts (Martin,
// Reinsch and Wilkinson, tql2, in the Handbook for Automatic Computation II, 1971); rotations go into Q's columns. `e`
// holds the elements below the diagonal and is used up. Returns false when some value takes more than 50 steps.
template <class T, class Real>
bool iterate_ql(int64_t n, Real* d, Real* e, T* q) {
  constexpr Real eps = std::numeric_limits<Real>::epsilon();
  if (n > 0) e[n - 1] = 0;
  Real size = 0;  // of what was seen: an element that is lost beside it counts as zero
  for (int64_t l = 0; l < n; ++l) {
    size = std::max(size, std::abs(d[l]) + std::abs(e[l]));
    for (int step = 0;; ++step) {
      int64_t m = l;
      while (m + 1 < n && std::abs(e[m]) > eps * size) ++m;
      if (m == l) break;
      if (step == 50) return false;
      // Wilkinson's shift, from the 2 x 2 block at l.
      Real g = (d[l + 1] - d[l]) / (2 * e[l]);
      g = d[m] - d[l] + e[l] / (g + std::copysign(std::hypot(g, Real(1)), g));
      Real s = 1, c = 1, p = 0;
      int64_t i = m;
      while (i-- > l) {
        const Real f = s * e[i], b = c * e[i], r = std::hypot(f, g);
        e[i + 1] = r;
        if (r == 0) {  // the block splits here
          d[i + 1] -= p;
          e[m] = 0;
          break;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        const Real t = (d[i] - g) * s + 2 * c * b;
        p = s * t;
        d[i + 1] = g + p;
        g = c * t - b;
        rotate(q + i * n, q + (i + 1) * n, c, s, n);
      }
      if (i >= l) continue;
      d[l] -= p;
      e[l] = g;
      e[m] = 0;
    }
  }
  return true;
}

struct EighLoop {
  template <class T>
  static void run(const Tensor& values, const Tensor& vectors, const Tensor& a, const Tensor& info) {
    using Real = real_t<T>;
    const int64_t n = a.size(1);
    for_each_matrix(a.size(0), n * n * n, [&](int64_t i) {
      const Scratch<T> q(n * n);
      const Scratch<Real> diagonal(n), below(n);
      const Tridiagonal<T> tridiagonal(n, matrix_of<T>(a, i).data, q.data(), diagonal.data(), below.data());
      info.data_ptr<int32_t>()[i] = iterate_ql(n, diagonal.data(), below.data(), q.data()) ? 0 : 1;

      const Scratch<int64_t> order(n);
      std::iota(order.data(), order.data() + n, 0);
      std::sort(order.data(), order.data() + n, [&](int64_t x, int64_t y) { return diagonal[x] < diagonal[y]; });
      const MatrixRef<T> out = matrix_of<T>(vectors, i);
      for (int64_t j = 0; j < n; ++j) {
        values.data_ptr<Real>()[i * n + j] = diagonal[order[j]];
        for (int64_t r = 0; r < n; ++r) *out.at(r, j).data = q[order[j] * n + r];
      }
    });
  }
};

void eigh(const Tensor& values, const Tensor& vectors, const Tensor& a, const Tensor& info) {
  pick<EighLoop>(LinalgTypes(), a.scalar_type(), "linalg_eigh")(values, vectors, a, info);
}

}  // namespace

void register_linalg_eigh() { kernels::linalg_eigh.set(kCPU, eigh); }

}  // namespace rush::cpu
