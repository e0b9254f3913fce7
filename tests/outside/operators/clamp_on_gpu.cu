// The kernel for a GPU.
#include "clamp.h"
#include "core/device/stream.h"

static __global__ void clamp_kernel(const float* from, float* to, int64_t n, float limit) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) to[i] = fminf(fmaxf(from[i], -limit), limit);
}

rush::Tensor clamp_on_gpu(const rush::Tensor& x, double limit) {
  const rush::Tensor in = x.contiguous(), out = rush::empty_like(in);
  const auto stream = static_cast<cudaStream_t>(rush::current_stream(in.device()).handle);
  const int64_t n = in.numel();
  if (n == 0) return out;
  clamp_kernel<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(in.data_ptr<float>(), out.data_ptr<float>(),
                                                                           n, static_cast<float>(limit));
  const cudaError_t status = cudaGetLastError();
  RUSH_CHECK(status == cudaSuccess, "clamp_by: ", cudaGetErrorString(status));
  return out;
}
