// Lab 10's functions on a GPU: compares their outputs with those of the emulated grid, and measures the bytes a second
// of each beside those of a copy that the driver makes in the same run. nvcc compiles it together with the file of the
// kernels. usage: rush_lab_kernels_gpu FILE, the emulated grid's outputs
#include "tests/labs/gpu/comparison.h"
#include "tests/labs/kernel_cases.h"

using namespace rush::labs;

namespace {

void measure() {
  constexpr int64_t kSide = 8192, kBytes = kSide * kSide * static_cast<int64_t>(sizeof(float));
  const DeviceMemory<float> in = allocate<float>(kSide * kSide), out = allocate<float>(kSide * kSide);
  const auto gigabytes = [&](int64_t bytes, const auto& launch) {
    return static_cast<double>(bytes) / seconds_of(launch) / 1e9;
  };
  const double roof = gigabytes(
      2 * kBytes, [&] { RUSH_CHECK(cudaMemcpyAsync(out.get(), in.get(), kBytes, cudaMemcpyDeviceToDevice)); });
  std::printf("         of %lld x %lld numbers, cudaMemcpyAsync moves %.0f GB/s;\n", static_cast<long long>(kSide),
              static_cast<long long>(kSide), roof);
  for (const char* function : {"copy", "transpose", "sum", "softmax"}) {
    const KernelCase c{function, kSide, kSide, true};
    const int64_t moved = c.is("sum") ? kBytes : 2 * kBytes;
    const double rate = gigabytes(moved, [&] { make_call(c, in.get(), out.get()); });
    std::printf("         %-9s %5.0f GB/s, %3.0f %% of that\n", function, rate, 100 * rate / roof);
  }
}

}  // namespace

int main(int argc, char** argv) { return gpu_main(argc, argv, kernel_calls(), measure); }
