#include "backends/cpu/linalg/decompositions.h"
#include "backends/cpu/register.h"
#include "core/ops/linalg/linalg.h"

namespace rush::cpu {

namespace {

struct QrLoop {
  template <class T>
  static void run(const Tensor& q, const Tensor& r, const Tensor& a) {
    const int64_t n = a.size(1), m = a.size(2), k = r.size(1);
    for_each_matrix(a.size(0), n * m * std::min(n, m), [&](int64_t i) {
      const auto qr = DecompositionsOf<T>::qr(wide_matrix<T>(a, i), k, q.defined());
      eigen_matrix<T>(r, i) = qr.r.template cast<eigen_t<T>>();
      if (q.defined()) eigen_matrix<T>(q, i) = qr.q.template cast<eigen_t<T>>();
    });
  }
};

}  // namespace

void register_linalg_qr() { set_by_dtype<kernels::linalg_qr, QrLoop, LinalgTypes, 2>(kCPU); }

}  // namespace rush::cpu
