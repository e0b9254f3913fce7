// An operator with kernels, a meta function and a derivative, which is an operator too.
#include <algorithm>

#include "clamp.h"

using namespace rush;

constinit Op<Tensor(const Tensor&, double)> clamp_by{"outside::clamp_by(Tensor x, float limit) -> Tensor"};
constinit Op<Tensor(const Tensor&, const Tensor&, double)> clamp_by_backward{
    "outside::clamp_by_backward(Tensor gradient, Tensor x, float limit) -> Tensor"};

static Tensor clamp_on_cpu(const Tensor& x, double limit) {
  const Tensor in = x.contiguous(), out = empty_like(in);
  const float* from = in.data_ptr<float>();
  float* to = out.data_ptr<float>();
  for (int64_t i = 0; i < in.numel(); ++i)
    to[i] = std::clamp(from[i], -static_cast<float>(limit), static_cast<float>(limit));
  return out;
}

static Tensor like_first(const Tensor& x, double) { return empty_like(x.contiguous()); }

RUSH_OPERATORS(library) {
  library.register_kernel<clamp_by>(kCPU, clamp_on_cpu);
#ifdef RUSH_HAS_CUDA
  library.register_kernel<clamp_by>(kCUDA, clamp_on_gpu);
#endif
  library.register_fake<clamp_by>(like_first);
  library.register_autograd<clamp_by, clamp_by_backward>();
  library.register_composite<clamp_by_backward>(
      [](const Tensor& gradient, const Tensor& x, double limit) { return gradient * (x.abs() < limit); });
}
