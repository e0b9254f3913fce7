#include "backends/cpu/linalg/decompositions.h"
#include "backends/cpu/register.h"
#include "core/ops/linalg/linalg.h"

namespace rush::cpu {

namespace {

struct EighLoop {
  template <class T>
  static void run(const Tensor& values, const Tensor& vectors, const Tensor& a, const Tensor& info) {
    const int64_t n = a.size(1);
    for_each_matrix(a.size(0), n * n * n, [&](int64_t i) {
      const auto eigh = DecompositionsOf<T>::eigh(wide_matrix<T>(a, i));
      info.data_ptr<int32_t>()[i] = eigh.info;
      eigen_vector<real_t<T>>(values, i) = eigh.values.template cast<eigen_t<real_t<T>>>();
      eigen_matrix<T>(vectors, i) = eigh.vectors.template cast<eigen_t<T>>();
    });
  }
};

void eigh(const Tensor& values, const Tensor& vectors, const Tensor& a, const Tensor& info) {
  if (a.numel() == 0) {
    info.zero_();
    return;
  }
  pick<EighLoop>(LinalgTypes(), a.scalar_type(), "linalg_eigh")(values, vectors, a, info);
}

}  // namespace

void register_linalg_eigh() { kernels::linalg_eigh.set(kCPU, eigh); }

}  // namespace rush::cpu
