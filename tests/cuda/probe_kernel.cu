#include "tests/cuda/probe_kernel.h"

namespace rush::testing {

namespace {

template <int kCopy>
__global__ void probe(int64_t* out, int64_t number, const __grid_constant__ LargeArgument large, const float* none) {
  if (threadIdx.x != 0 || blockIdx.x != 0 || blockIdx.y != 0) return;
  uint32_t shared;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(shared));
  const int64_t told[kProbed] = {gridDim.x,  gridDim.y, gridDim.z, blockDim.x,        blockDim.y,
                                 blockDim.z, shared,    number,    large.values[479], none == nullptr};
  for (int i = 0; i < kProbed; ++i) out[i] = told[i];
}

}  // namespace

ProbeKernel probe_kernel() { return probe<0>; }
ProbeKernel probe_kernel_for_capture() { return probe<1>; }
ProbeKernel probe_kernel_for_thread() { return probe<2>; }

}  // namespace rush::testing
