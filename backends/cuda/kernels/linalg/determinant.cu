#include "backends/cuda/solver/determinant.h"

#include "backends/cuda/kernels/launch.h"

namespace rush::cuda {

namespace {

template <class T>
struct Determinant {
  T* out;
  const T* factors;
  const int64_t* pivots;
  const int32_t* info;
  int64_t n;
  __device__ void operator()(int64_t i) const {
    T product(1);
    for (int64_t k = 0; k < n; ++k) {
      const T diagonal = factors[(i * n + k) * n + k];
      product = product * (pivots[i * n + k] == k + 1 ? diagonal : -diagonal);
    }
    out[i] = info[i] == 0 ? product : T(0);
  }
};

struct DeterminantLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& factors, const Tensor& pivots, const Tensor& info) {
    for_each_index("linalg_det", out.numel(),
                   Determinant<T>{out.data_ptr<T>(), factors.data_ptr<T>(), pivots.data_ptr<int64_t>(),
                                  info.data_ptr<int32_t>(), factors.size(1)});
  }
};

}  // namespace

void determinants(const Tensor& out, const Tensor& factors, const Tensor& pivots, const Tensor& info) {
  using Types = TypeList<float, double, complex<float>, complex<double>>;
  pick<DeterminantLoop>(Types(), out.scalar_type(), "linalg_det")(out, factors, pivots, info);
}

}  // namespace rush::cuda
