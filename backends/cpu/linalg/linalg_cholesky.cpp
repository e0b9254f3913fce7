#include <cmath>

#include "backends/cpu/linalg/dense.h"
#include "backends/cpu/register.h"
#include "core/ops/linalg/linalg.h"

namespace rush::cpu {

namespace {

// Row by row (Banachiewicz): l_ij = (a_ij - sum over k < j of l_ik conj(l_jk)) / l_jj. Returns 0, or the order of the
// first leading minor that is not positive.
template <class T>
int32_t factor_cholesky(int64_t n, const T* a, T* factor) {
  for (int64_t i = 0; i < n; ++i) {
    T* row = factor + i * n;
    for (int64_t j = 0; j < i; ++j) {
      const T* other = factor + j * n;
      row[j] = (a[i * n + j] - inner_product(other, row, j)) / other[j];
    }
    const real_t<T> square = real_part(a[i * n + i] - inner_product(row, row, i));
    if (!(square > 0)) return static_cast<int32_t>(i + 1);
    row[i] = T(std::sqrt(square));
    std::fill(row + i + 1, row + n, T(0));
  }
  return 0;
}

struct CholeskyLoop {
  template <class T>
  static void run(const Tensor& factor, const Tensor& a, const Tensor& info) {
    const int64_t n = a.size(1);
    for_each_matrix(a.size(0), n * n * n, [&](int64_t i) {
      info.data_ptr<int32_t>()[i] = factor_cholesky(n, matrix_of<T>(a, i).data, matrix_of<T>(factor, i).data);
    });
  }
};

}  // namespace

void register_linalg_cholesky() { set_by_dtype<kernels::linalg_cholesky, CholeskyLoop, LinalgTypes, 1>(kCPU); }

}  // namespace rush::cpu
