// Lab 10's functions on a GPU: compares their outputs with those of the emulated grid (kernel_results.cpp), and
// measures the bytes a second of each beside those of a copy that the driver makes in the same run. nvcc compiles it
// together with the file of the kernels. usage: rush_lab_kernels_gpu FILE, the emulated grid's outputs
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>

#include "tests/labs/kernel_cases.h"

using namespace rush::labs;

namespace {

void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
}
#define RUSH_CHECK(call) check(call, #call)

struct FreeOnDevice {
  void operator()(float* data) const { cudaFree(data); }
};
using DeviceMemory = std::unique_ptr<float, FreeOnDevice>;

// Zero at first.
DeviceMemory allocate(int64_t count) {
  float* data = nullptr;
  RUSH_CHECK(cudaMalloc(&data, static_cast<size_t>(count) * sizeof(float)));
  DeviceMemory memory(data);
  RUSH_CHECK(cudaMemset(data, 0, static_cast<size_t>(count) * sizeof(float)));
  return memory;
}

std::vector<float> outputs_of(const KernelCase& c) {
  const std::vector<float> in = inputs_of(c);
  const DeviceMemory device_in = allocate(c.inputs()), device_out = allocate(c.outputs());
  RUSH_CHECK(cudaMemcpy(device_in.get(), in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice));
  make_call(c, device_in.get(), device_out.get());
  std::vector<float> out(static_cast<size_t>(c.outputs()));
  RUSH_CHECK(cudaMemcpy(out.data(), device_out.get(), out.size() * sizeof(float), cudaMemcpyDeviceToHost));
  return out;
}

// Whether the GPU's outputs are the emulated grid's, which `file` has next.
bool is_same(const KernelCase& c, FILE* file) {
  const std::vector<float> got = outputs_of(c);
  std::vector<float> emulated(got.size());
  if (std::fread(emulated.data(), sizeof(float), emulated.size(), file) != emulated.size()) {
    throw std::runtime_error("the file of the emulated grid's outputs is too short");
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::abs(got[i] - emulated[i]) <= tolerance(c, emulated[i])) continue;
    std::printf(
        "  WRONG  %s of %lld x %lld on the GPU: first wrong element: out[%zu] is %g, and on the emulated grid %g\n",
        c.function, static_cast<long long>(c.rows), static_cast<long long>(c.columns), i, got[i], emulated[i]);
    return false;
  }
  return true;
}

// The median of the seconds that `launch` takes on the device.
template <class Launch>
double seconds_of(const Launch& launch) {
  constexpr int kTimes = 21, kWarmUps = 3;
  cudaEvent_t begin, end;
  RUSH_CHECK(cudaEventCreate(&begin));
  RUSH_CHECK(cudaEventCreate(&end));
  std::vector<float> milliseconds;
  for (int time = -kWarmUps; time < kTimes; ++time) {
    RUSH_CHECK(cudaEventRecord(begin));
    launch();
    RUSH_CHECK(cudaEventRecord(end));
    RUSH_CHECK(cudaEventSynchronize(end));
    float each = 0;
    RUSH_CHECK(cudaEventElapsedTime(&each, begin, end));
    if (time >= 0) milliseconds.push_back(each);
  }
  RUSH_CHECK(cudaEventDestroy(begin));
  RUSH_CHECK(cudaEventDestroy(end));
  std::nth_element(milliseconds.begin(), milliseconds.begin() + kTimes / 2, milliseconds.end());
  return milliseconds[kTimes / 2] / 1000;
}

void measure() {
  constexpr int64_t kSide = 8192, kBytes = kSide * kSide * static_cast<int64_t>(sizeof(float));
  const DeviceMemory in = allocate(kSide * kSide), out = allocate(kSide * kSide);
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

int compare_and_measure(FILE* file) {
  cudaDeviceProp device;
  RUSH_CHECK(cudaGetDeviceProperties(&device, 0));
  for (const KernelCase& c : kKernelCases) {
    if (!is_same(c, file)) return 1;
  }
  std::printf("  right  %zu calls on a GPU, %s, give what they give on the emulated grid\n", std::size(kKernelCases),
              device.name);
  measure();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const File file(argc == 2 ? std::fopen(argv[1], "rb") : nullptr);
  if (!file) {
    std::fputs("usage: rush_lab_kernels_gpu FILE\n", stderr);
    return 2;
  }
  try {
    return compare_and_measure(file.get());
  } catch (const std::exception& error) {
    std::printf("  WRONG  %s\n", error.what());
    return 1;
  }
}
