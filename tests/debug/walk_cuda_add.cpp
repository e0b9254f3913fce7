// The program that docs/walk_cuda_add.md walks through: sums on the GPU, of two rows, and of a column and a row.
#include <cstdio>

#include "backends/cuda/cuda.h"
#include "rushlight.h"

namespace {

rush::Tensor add_tensors(const rush::Tensor& a, const rush::Tensor& b) { return a + b; }

}  // namespace

int main() {
  if (!rush::cuda::is_available()) return std::puts("skipped: no CUDA device") < 0;
  const rush::Tensor a = rush::full({2048}, 1.0, rush::kCUDA), b = rush::full({2048}, 0.5, rush::kCUDA);
  const rush::Tensor sum = add_tensors(a, b);
  const rush::cuda::CUDAStreamGuard on_another(rush::cuda::getStreamFromPool());
  rush::cuda::synchronize();
  const rush::Tensor table = add_tensors(a.narrow(0, 0, 24).view({24, 1}), b.narrow(0, 0, 48));
  return sum[0].item<float>() == 1.5 && table[23][47].item<float>() == 1.5 ? 0 : 1;
}
