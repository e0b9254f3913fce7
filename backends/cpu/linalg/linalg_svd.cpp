#include <limits>
#include <numeric>

#include "backends/cpu/linalg/householder_qr.h"
#include "backends/cpu/register.h"
#include "core/ops/linalg/linalg.h"

namespace rush::cpu {

namespace {

// Vectors of one length side by side: the columns of a matrix.
template <class T>
struct Columns {
  Columns(int64_t each, int64_t how_many) : length(each), count(how_many), memory(each * how_many) {}
  T* operator[](int64_t j) const { return memory.data() + j * length; }

  int64_t length, count;
  Scratch<T> memory;
};

// Two columns p and q, and with them those of V, turned so that the former become orthogonal. Returns whether they had
// to be. (Golub and Van Loan, Matrix Computations, 8.6.3; the phase makes complex columns' product real.)
template <class T>
bool orthogonalise(const Columns<T>& a, const Columns<T>& v, int64_t p, int64_t q) {
  using Real = real_t<T>;
  constexpr Real eps = std::numeric_limits<Real>::epsilon();
  const Real pp = real_part(inner_product(a[p], a[p], a.length)), qq = real_part(inner_product(a[q], a[q], a.length));
  const T pq = inner_product(a[p], a[q], a.length);
  const Real size = magnitude(pq);
  if (!(size > eps * std::sqrt(pp) * std::sqrt(qq)) || size < std::numeric_limits<Real>::min()) return false;
  const T phase = conjugate(pq) / T(size);
  const Real zeta = (qq - pp) / (2 * size);
  const Real tangent = std::copysign(Real(1), zeta) / (std::abs(zeta) + std::hypot(Real(1), zeta));
  const Real c = 1 / std::hypot(Real(1), tangent), s = c * tangent;
  const auto turn = [&](T* x, T* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const T old = x[i], other = phase * y[i];
      x[i] = T(c) * old - T(s) * other;
      y[i] = T(s) * old + T(c) * other;
    }
  };
  turn(a[p], a[q], a.length);
  turn(v[p], v[q], v.length);
  return true;
}

// The one-sided Jacobi iteration (Hestenes): A V = U S, A's columns being turned against each other until all are
// orthogonal; then they hold U S. V starts as the identity. Accurate for small singular values too.
template <class T>
bool iterate_jacobi(const Columns<T>& a, const Columns<T>& v) {
  for (int64_t j = 0; j < v.count; ++j) {
    std::fill_n(v[j], v.length, T(0));
    v[j][j] = T(1);
  }
  for (int sweep = 0; sweep < 60; ++sweep) {
    bool turned = false;
    for (int64_t p = 0; p < a.count; ++p) {
      for (int64_t q = p + 1; q < a.count; ++q) turned |= orthogonalise(a, v, p, q);
    }
    if (!turned) return true;
  }
  return false;
}

// Scales orthogonal columns to length one, where they have one; the others, which come last, are filled with what
// completes them to an orthonormal set.
template <class T>
void normalise(const Columns<T>& u, const real_t<T>* lengths) {
  int64_t rank = 0;
  while (rank < u.count && lengths[rank] > 0) ++rank;
  for (int64_t j = 0; j < rank; ++j) {
    for (int64_t i = 0; i < u.length; ++i) u[j][i] = u[j][i] * T(1 / lengths[j]);
  }
  if (rank == u.count) return;
  const HouseholderQr<T> qr(u.length, rank);
  for (int64_t j = 0; j < rank; ++j) std::copy_n(u[j], u.length, qr.column(j));
  qr.factor();
  for (int64_t j = rank; j < u.count; ++j) {
    std::fill_n(u[j], u.length, T(0));
    u[j][j] = T(1);
    qr.apply_q(u[j]);
  }
}

// A (n, m) = U diag(s) V^H for n >= m: of its QR decomposition, R is decomposed. u has m columns, or n; v has m.
template <class T>
bool decompose_tall(int64_t n, int64_t m, MatrixRef<const T> a, const Columns<T>& u, real_t<T>* s,
                    const Columns<T>& v) {
  const HouseholderQr<T> qr(n, m);
  for (int64_t j = 0; j < m; ++j) {
    for (int64_t i = 0; i < n; ++i) qr.column(j)[i] = *a.at(i, j).data;
  }
  qr.factor();
  const Columns<T> r(m, m), turned(m, m);
  for (int64_t j = 0; j < m; ++j) {
    for (int64_t i = 0; i < m; ++i) r[j][i] = qr.r(i, j);
  }
  const bool converged = iterate_jacobi(r, turned);

  const Scratch<real_t<T>> lengths(m);
  const Scratch<int64_t> order(m);
  for (int64_t j = 0; j < m; ++j) lengths[j] = norm_of(r[j], m);
  std::iota(order.data(), order.data() + m, 0);
  std::sort(order.data(), order.data() + m, [&](int64_t x, int64_t y) { return lengths[x] > lengths[y]; });
  const Columns<T> sorted(m, m);
  for (int64_t j = 0; j < m; ++j) {
    s[j] = lengths[order[j]];
    std::copy_n(r[order[j]], m, sorted[j]);
    std::copy_n(turned[order[j]], m, v[j]);
  }
  normalise(sorted, s);
  for (int64_t j = 0; j < u.count; ++j) {
    std::fill_n(u[j], n, T(0));
    if (j < m) {
      std::copy_n(sorted[j], m, u[j]);
    } else {
      u[j][j] = T(1);
    }
    qr.apply_q(u[j]);
  }
  return converged;
}

struct SvdLoop {
  template <class T>
  static void run(const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& a, const Tensor& info) {
    const int64_t n = a.size(1), m = a.size(2), k = std::min(n, m);
    for_each_matrix(a.size(0), n * m * k, [&](int64_t i) {
      const bool wide = n < m;
      const Columns<T> left(n, u.size(2)), right(m, vh.size(1));
      real_t<T>* values = s.data_ptr<real_t<T>>() + i * k;
      const T* data = matrix_of<T>(a, i).data;
      // A wide matrix is the transpose of a tall one: A^T = V* S U^T.
      const bool converged = wide ? decompose_tall<T>(m, n, {data, 1, m}, right, values, left)
                                  : decompose_tall<T>(n, m, {data, m, 1}, left, values, right);
      info.data_ptr<int32_t>()[i] = converged ? 0 : 1;
      const MatrixRef<T> out = matrix_of<T>(u, i), out_h = matrix_of<T>(vh, i);
      for (int64_t j = 0; j < left.count; ++j) {
        for (int64_t r = 0; r < n; ++r) *out.at(r, j).data = wide ? conjugate(left[j][r]) : left[j][r];
      }
      for (int64_t j = 0; j < right.count; ++j) {
        for (int64_t r = 0; r < m; ++r) *out_h.at(j, r).data = wide ? right[j][r] : conjugate(right[j][r]);
      }
    });
  }
};

void svd(const Tensor& u, const Tensor& s, const Tensor& vh, const Tensor& a, const Tensor& info) {
  pick<SvdLoop>(LinalgTypes(), a.scalar_type(), "linalg_svd")(u, s, vh, a, info);
}

}  // namespace

void register_linalg_svd() { kernels::linalg_svd.set(kCPU, svd); }

}  // namespace rush::cpu
