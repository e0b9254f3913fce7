#include "core/ops/matmul.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

struct GemmLoop {
  template <class T>
  static void run(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
    using Math = opmath_t<T>;
    const T *pa = a.data_ptr<T>(), *pb = b.data_ptr<T>();
    T* pc = c.data_ptr<T>();
    const Math scale = alpha.to<Math>(), keep = beta.to<Math>();
    for (int64_t batch = 0; batch < c.size(0); ++batch) {
      for (int64_t i = 0; i < c.size(1); ++i) {
        for (int64_t j = 0; j < c.size(2); ++j) {
          Math total(0);
          for (int64_t k = 0; k < a.size(2); ++k) {
            total = total + static_cast<Math>(pa[batch * a.stride(0) + i * a.stride(1) + k * a.stride(2)]) *
                                static_cast<Math>(pb[batch * b.stride(0) + k * b.stride(1) + j * b.stride(2)]);
          }
          T& out = pc[batch * c.stride(0) + i * c.stride(1) + j * c.stride(2)];
          out = static_cast<T>(keep == Math(0) ? scale * total : keep * static_cast<Math>(out) + scale * total);
        }
      }
    }
  }
};

void gemm(const Tensor& c, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
  pick<GemmLoop>(NumberTypes(), c.scalar_type(), "mm")(c, a, b, beta, alpha);
}

}  // namespace

void register_matmul() { kernels::gemm.set(kCPU, gemm); }

}  // namespace rush::cpu
