#include "backends/cpu/linalg/householder_qr.h"
#include "backends/cpu/register.h"
#include "core/ops/linalg/linalg.h"

namespace rush::cpu {

namespace {

struct QrLoop {
  template <class T>
  static void run(const Tensor& q, const Tensor& r, const Tensor& a) {
    const int64_t n = a.size(1), m = a.size(2), k = r.size(1);
    for_each_matrix(a.size(0), n * m * std::min(n, m), [&](int64_t b) {
      const HouseholderQr<T> qr(n, m);
      const MatrixRef<T> from = matrix_of<T>(a, b), triangle = matrix_of<T>(r, b);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < m; ++j) qr.column(j)[i] = *from.at(i, j).data;
      }
      qr.factor();
      for (int64_t i = 0; i < k; ++i) {
        for (int64_t j = 0; j < m; ++j) *triangle.at(i, j).data = qr.r(i, j);
      }
      if (q.defined()) write_q(qr, matrix_of<T>(q, b), n, k);
    });
  }

  template <class T>
  static void write_q(const HouseholderQr<T>& qr, MatrixRef<T> q, int64_t n, int64_t k) {
    const Scratch<T> column(n);
    for (int64_t j = 0; j < k; ++j) {
      std::fill_n(column.data(), n, T(0));
      column[j] = T(1);
      qr.apply_q(column.data());
      for (int64_t i = 0; i < n; ++i) *q.at(i, j).data = column[i];
    }
  }
};

void qr(const Tensor& q, const Tensor& r, const Tensor& a) {
  pick<QrLoop>(LinalgTypes(), a.scalar_type(), "linalg_qr")(q, r, a);
}

}  // namespace

void register_linalg_qr() { kernels::linalg_qr.set(kCPU, qr); }

}  // namespace rush::cpu
