// gated_rms_norm, whole: declaration, kernel for the CPU, front, derivative, registration.
#include "operator.h"

#include <cmath>
#include <numeric>

#include "autograd/derive.h"
#include "backends/cpu/pointwise/vector_exp.h"
#include "backends/functors/pick.h"
#include "capstone.h"
#include "core/dispatch/kernel.h"
#include "core/threads/parallel.h"

namespace capstone {

using namespace rush;

namespace ops {
inline constinit Op<Tensor(const Tensor&, const Tensor&, const Tensor&, double)> gated_rms_norm{
    "capstone::gated_rms_norm(Tensor self, Tensor gate, Tensor weight, float eps=1e-05) -> Tensor"};
}

namespace kernels {
inline constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, const Tensor&, double)> gated_rms_norm{
    "gated_rms_norm"};
}

Tensor gated_rms_norm(const Tensor& self, const Tensor& gate, const Tensor& weight, double eps) {
  return ops::gated_rms_norm(self, gate, weight, eps);
}

// In the lanes of a vector register, which do not wait for each other.
template <class T>
double sum_of_squares(const T* z, int64_t n) {
  constexpr int kLanes = 16;
  T sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += z[i + lane] * z[i + lane];
  }
  for (; i < n; ++i) sums[0] += z[i] * z[i];
  return std::accumulate(sums, sums + kLanes, 0.0);
}

// One row of n numbers. z is room for n.
template <class T>
void normalize_row(const T* x, const T* gate, const T* weight, T* out, int64_t n, double eps, opmath_t<T>* z) {
  using Math = opmath_t<T>;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const Math g = static_cast<Math>(gate[i]);
    z[i] = static_cast<Math>(x[i]) * g / (1 + cpu::vector_exp(-g));
  }
  const Math scale = static_cast<Math>(1 / std::sqrt(sum_of_squares(z, n) / static_cast<double>(n) + eps));
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(z[i] * scale * static_cast<Math>(weight[i]));
}

struct Loop {
  template <class T>
  static void run(const Tensor& out, const Tensor& self, const Tensor& gate, const Tensor& weight, double eps) {
    const int64_t n = self.size(-1), rows = n ? self.numel() / n : 0;
    const int64_t grain = std::max<int64_t>(1, kGrain / (8 * std::max<int64_t>(n, 1)));
    parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
      std::vector<opmath_t<T>> z(static_cast<size_t>(n));
      for (int64_t row = begin; row < end; ++row) {
        normalize_row(self.data_ptr<T>() + row * n, gate.data_ptr<T>() + row * n, weight.data_ptr<T>(),
                      out.data_ptr<T>() + row * n, n, eps, z.data());
      }
    });
  }
};

void check_arguments(const Tensor& self, const Tensor& gate, const Tensor& weight, double eps) {
  RUSH_CHECK_VALUE(self.dim() > 0, "gated_rms_norm: `self` needs a dimension to normalise, got a number");
  RUSH_CHECK_VALUE(gate.sizes() == self.sizes(), "gated_rms_norm: `gate` has to have the sizes of `self`, ",
                   self.sizes(), ", got ", gate.sizes());
  RUSH_CHECK_VALUE(weight.dim() == 1 && weight.size(0) == self.size(-1),
                   "gated_rms_norm: `weight` has to have the sizes (", self.size(-1), "), got ", weight.sizes());
  RUSH_CHECK_VALUE(eps >= 0, "gated_rms_norm: `eps` has to be at least 0, got ", eps);
  RUSH_CHECK_TYPE(gate.scalar_type() == self.scalar_type() && weight.scalar_type() == self.scalar_type(),
                  "gated_rms_norm: `gate` and `weight` have to have the dtype of `self`, ", self.scalar_type(),
                  ", got ", gate.scalar_type(), " and ", weight.scalar_type());
}

// The kernel reads rows: other strides are copied first.
Tensor front(const Tensor& self, const Tensor& gate, const Tensor& weight, double eps) {
  check_arguments(self, gate, weight, eps);
  const Tensor out = empty(self.sizes(), self.options());
  kernels::gated_rms_norm(self.device().type, out, self.contiguous(), gate.contiguous(), weight.contiguous(), eps);
  return out;
}

// With z = x silu(g), r = 1 / sqrt(mean(z^2) + eps) and y = z r w:
//   dz = r (dy w - z r^2 mean(dy w z)), dx = dz silu(g), dg = dz x silu'(g), dw = dy z r,
// where silu'(g) = s (1 + g (1 - s)), s = sigmoid(g).
struct GatedRmsNormBackward final : Node {
  Saved self, gate, weight;
  double eps;
  RUSH_SAVED(self, gate, weight)
  auto saved_arguments() { return std::tie(self, gate, weight, eps); }
  Tensors apply(const Tensors& g) override {
    const Tensor x = self.get(), s = sigmoid(gate.get()), silu = gate.get() * s, z = x * silu;
    const Tensor r = (mean(z * z, -1, true) + eps).rsqrt(), dy = g[0] * weight.get();
    const Tensor dz = r * (dy - z * r * r * mean(dy * z, -1, true));
    return {needs(0) ? dz * silu : Tensor(), needs(1) ? dz * x * s * (1 + gate.get() * (1 - s)) : Tensor(),
            needs(2) ? g[0] * z * r : Tensor()};
  }
};

void register_operator(Registry& registry) {
  registry.native(ops::gated_rms_norm, front);
  kernels::gated_rms_norm.set(
      kCPU, [](const Tensor& out, const Tensor& self, const Tensor& gate, const Tensor& weight, double eps) {
        pick<Loop>(RealFloatTypes(), self.scalar_type(), "gated_rms_norm")(out, self, gate, weight, eps);
      });
  derive<ops::gated_rms_norm, GatedRmsNormBackward>(registry);
}

}  // namespace capstone
