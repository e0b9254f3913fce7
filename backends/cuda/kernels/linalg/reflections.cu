#include "backends/cuda/solver/reflections.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/block_combine.h"

namespace rush::cuda {

namespace {

template <class T>
__device__ T conjugate(const T& x) {
  if constexpr (is_complex_v<T>) return conj(x);
  return x;
}

// A warp computes column c of Q = H_0 ... H_(k-1), which is H_0 ... H_c e_c: v_j begins at j, so that those after c
// leave e_c as it is. Its lanes hold every 32nd element.
template <class T>
struct ColumnOfQ {
  static constexpr int kHeld = kMostReflectedRows / 32;
  T* q;
  const T* vectors;
  const T* taus;
  int64_t n, m, w, k;
  __device__ void operator()(int64_t thread) const {
    const int64_t column = thread / 32, i = column / w, c = column % w;
    const auto lane = static_cast<int>(thread % 32);
    T x[kHeld], v[kHeld];
#pragma unroll
    for (int h = 0; h < kHeld; ++h) x[h] = T(h * 32 + lane == c ? 1 : 0);
    for (int64_t j = c < k ? c : k - 1; j >= 0; --j) {
      T product(0);  // tau v^H x
#pragma unroll
      for (int h = 0; h < kHeld; ++h) {
        const int row = h * 32 + lane;
        v[h] = row == j ? T(1) : row > j && row < n ? vectors[(i * m + j) * n + row] : T(0);
        product = product + conjugate(v[h]) * x[h];
      }
      for (int mask = 16; mask > 0; mask /= 2) product = product + shuffle_xor(product, mask);
      product = taus[i * k + j] * product;
#pragma unroll
      for (int h = 0; h < kHeld; ++h) x[h] = x[h] - v[h] * product;
    }
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
      if (h * 32 + lane < n) q[(i * n + h * 32 + lane) * w + c] = x[h];
    }
  }
};

struct ReflectionsLoop {
  template <class T>
  static void run(const Tensor& q, const Tensor& vectors, const Tensor& tau) {
    for_each_index("linalg_qr", q.size(0) * q.size(2) * 32,
                   ColumnOfQ<T>{q.data_ptr<T>(), vectors.data_ptr<T>(), tau.data_ptr<T>(), q.size(1), vectors.size(1),
                                q.size(2), tau.size(1)});
  }
};

}  // namespace

void multiply_reflections(const Tensor& q, const Tensor& vectors, const Tensor& tau) {
  using Types = TypeList<float, double, complex<float>, complex<double>>;
  pick<ReflectionsLoop>(Types(), q.scalar_type(), "linalg_qr")(q, vectors, tau);
}

}  // namespace rush::cuda
