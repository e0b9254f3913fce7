// Lab 10's functions on a GPU: compares their outputs with those of the emulated grid, and measures the bytes a second
// of each beside those of a copy that the driver makes in the same run. nvcc compiles it together with the file of the
// kernels. usage: rush_lab_kernels_gpu FILE, the emulated grid's outputs
#include "tests/labs/gpu/comparison.h"
#include "tests/labs/kernels/kernel_cases.h"

using namespace rush::labs;

namespace {

void measure() {
  constexpr int64_t kSide = 8192, kBytes = kSide * kSide * static_cast<int64_t>(sizeof(float));
  const DeviceMemory<float> in = allocate<float>(kSide * kSide), out = allocate<float>(kSide * kSide);
  const double roof = rate_of_copy(kBytes) / 1e9;
  std::printf("         of %lld x %lld numbers, cudaMemcpyAsync moves %.0f GB/s;\n", static_cast<long long>(kSide),
              static_cast<long long>(kSide), roof);
  for (const char* function : {"copy", "transpose", "sum", "softmax"}) {
    const KernelCase c{function, kSide, kSide, true};
    const double moved = c.is("sum") ? kBytes : 2 * kBytes;
    const double rate = moved / seconds_of([&] { make_call(c, in.get(), out.get()); }) / 1e9;
    std::printf("         %-9s %5.0f GB/s, %3.0f %% of that\n", function, rate, 100 * rate / roof);
  }
}

}  // namespace

int main(int argc, char** argv) { return gpu_main(argc, argv, kernel_calls(), measure); }
