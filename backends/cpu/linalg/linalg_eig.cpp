#include "backends/cpu/linalg/decompositions.h"
#include "backends/cpu/register.h"
#include "core/ops/linalg/linalg.h"

namespace rush::cpu {

namespace {

struct EigLoop {
  template <class T>
  static void run(const Tensor& values, const Tensor& vectors, const Tensor& a, const Tensor& info) {
    using Complex = std::conditional_t<is_complex_v<T>, T, complex<real_t<T>>>;
    const int64_t n = a.size(1);
    for_each_matrix(a.size(0), 10 * n * n * n, [&](int64_t i) {
      const auto eig = DecompositionsOf<T>::eig(wide_matrix<T>(a, i));
      info.data_ptr<int32_t>()[i] = eig.info;
      if (eig.info != 0) return;
      eigen_vector<Complex>(values, i) = eig.values.template cast<eigen_t<Complex>>();
      eigen_matrix<Complex>(vectors, i) = eig.vectors.template cast<eigen_t<Complex>>();
    });
  }
};

void eig(const Tensor& values, const Tensor& vectors, const Tensor& a, const Tensor& info) {
  if (a.numel() == 0) {
    info.zero_();
    return;
  }
  pick<EigLoop>(LinalgTypes(), a.scalar_type(), "linalg_eig")(values, vectors, a, info);
}

}  // namespace

void register_linalg_eig() { kernels::linalg_eig.set(kCPU, eig); }

}  // namespace rush::cpu
