#include <Eigen/QR>

#include "backends/cpu/linalg/eigen.h"
#include "backends/cpu/register.h"
#include "core/ops/linalg/linalg.h"

namespace rush::cpu {

namespace {

struct QrLoop {
  template <class T>
  static void run(const Tensor& q, const Tensor& r, const Tensor& a) {
    const int64_t n = a.size(1), m = a.size(2), k = r.size(1);
    for_each_matrix(a.size(0), n * m * std::min(n, m), [&](int64_t i) {
      const Eigen::HouseholderQR<EigenMatrix<T>> qr(wide_matrix<T>(a, i));
      const EigenMatrix<T> upper = qr.matrixQR().topRows(k).template triangularView<Eigen::Upper>();
      eigen_matrix<T>(r, i) = upper.template cast<eigen_t<T>>();
      if (!q.defined()) return;
      const EigenMatrix<T> columns = qr.householderQ() * EigenMatrix<T>::Identity(n, k);
      eigen_matrix<T>(q, i) = columns.template cast<eigen_t<T>>();
    });
  }
};

}  // namespace

void register_linalg_qr() { set_by_dtype<kernels::linalg_qr, QrLoop, LinalgTypes, 2>(kCPU); }

}  // namespace rush::cpu
