// Lab 12's functions on a GPU: compares their outputs with those of the emulated grid, and measures the time of each
// beside that of cuBLAS in the same run. nvcc compiles it together with the file of the kernels, and links cuBLAS.
// usage: rush_lab_matmul_gpu FILE, the emulated grid's outputs
#include "tests/labs/gpu/blas.h"
#include "tests/labs/gpu/comparison.h"
#include "tests/labs/kernels/matmul_cases.h"

using namespace rush::labs;

namespace {

// c = a b. cuBLAS stores matrices by columns: to it these are the transposes, whose product is b^T a^T.
void blas_matmul(cublasHandle_t handle, const MatmulCase& c, const void* a, const void* b, float* out) {
  const float one = 1, zero = 0;
  const cudaDataType type = c.is(kOnTensorCores) ? CUDA_R_16BF : CUDA_R_32F;
  const int m = static_cast<int>(c.m), n = static_cast<int>(c.n), k = static_cast<int>(c.k);
  check_blas(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &one, b, type, n, a, type, k, &zero, out,
                          CUDA_R_32F, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
}

void measure() {
  constexpr int64_t kSide = 4096;
  constexpr double kOperations = 2.0 * kSide * kSide * kSide;
  const BlasHandle handle = create_blas();
  std::printf("         of %lld x %lld numbers:\n", static_cast<long long>(kSide), static_cast<long long>(kSide));
  for (const MatmulFunction& function : {kNaive, kTiled, kInRegisters, kOnTensorCores}) {
    const MatmulCase c{function, kSide, kSide, kSide, true};
    const KernelCall call = call_of(c);
    const DeviceCall on_device(call);
    const double seconds = seconds_of([&] { on_device.make(); });
    const double blas = seconds_of(
        [&] { blas_matmul(handle.get(), c, on_device.inputs()[0], on_device.inputs()[1], on_device.out()); });
    std::printf("         %-24s %6.1f TFLOP/s, %3.0f %% of cuBLAS's %.1f in %s\n", function.name,
                kOperations / seconds / 1e12, 100 * blas / seconds, kOperations / blas / 1e12,
                c.is(kOnTensorCores) ? "bfloat16" : "float32");
  }
}

}  // namespace

int main(int argc, char** argv) { return gpu_main(argc, argv, matmul_calls(), measure); }
