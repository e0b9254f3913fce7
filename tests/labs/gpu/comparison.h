// The programs of the labs' kernels on a GPU: memory of the device, the comparison with the outputs that the emulated
// grid gives (kernel_results.cpp), and the time that launches take.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

#include "tests/labs/kernels/kernel_call.h"

namespace rush::labs {

inline void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
}
#define RUSH_CHECK(call) check(call, #call)

struct FreeOnDevice {
  void operator()(void* data) const { cudaFree(data); }
};
template <class T>
using DeviceMemory = std::unique_ptr<T, FreeOnDevice>;

// Zero at first.
template <class T>
DeviceMemory<T> allocate(int64_t count) {
  void* data = nullptr;
  RUSH_CHECK(cudaMalloc(&data, static_cast<size_t>(count) * sizeof(T)));
  DeviceMemory<T> memory(static_cast<T*>(data));
  RUSH_CHECK(cudaMemset(data, 0, static_cast<size_t>(count) * sizeof(T)));
  return memory;
}

template <class T>
DeviceMemory<T> to_device(const std::vector<T>& values) {
  DeviceMemory<T> memory = allocate<T>(static_cast<int64_t>(values.size()));
  RUSH_CHECK(cudaMemcpy(memory.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

// A call and its inputs on the GPU.
class DeviceCall {
 public:
  explicit DeviceCall(const KernelCall& call) : call_(call), out_(allocate<float>(call.outputs)) {
    for (const Operand& input : call.inputs) {
      if (input.in_16_bits) {
        in_16_bits_.push_back(to_device(input.rounded()));
        data_.push_back(in_16_bits_.back().get());
      } else {
        in_32_bits_.push_back(to_device(input.values));
        data_.push_back(in_32_bits_.back().get());
      }
    }
  }
  void make() const { call_.make(data_, out_.get()); }
  float* out() const { return out_.get(); }
  const std::vector<const void*>& inputs() const { return data_; }
  std::vector<float> outputs() const {
    std::vector<float> out(static_cast<size_t>(call_.outputs));
    RUSH_CHECK(cudaMemcpy(out.data(), out_.get(), out.size() * sizeof(float), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  const KernelCall& call_;
  std::vector<DeviceMemory<float>> in_32_bits_;
  std::vector<DeviceMemory<__nv_bfloat16>> in_16_bits_;
  DeviceMemory<float> out_;
  std::vector<const void*> data_;
};

// Whether the GPU's outputs are the emulated grid's, which `file` has next.
inline bool is_same(const KernelCall& call, FILE* file) {
  const DeviceCall on_device(call);
  on_device.make();
  const std::vector<float> got = on_device.outputs();
  std::vector<float> emulated(got.size());
  if (std::fread(emulated.data(), sizeof(float), emulated.size(), file) != emulated.size()) {
    throw std::runtime_error("the file of the emulated grid's outputs is too short");
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::abs(got[i] - emulated[i]) <= call.tolerance(emulated[i])) continue;
    std::printf("  WRONG  %s on the GPU: first wrong element: out[%zu] is %g, and on the emulated grid %g\n",
                call.text().c_str(), i, got[i], emulated[i]);
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

// The bytes a second, read and written, of a copy that the driver makes: about as fast as memory can be.
inline double rate_of_copy(int64_t bytes) {
  const DeviceMemory<char> from = allocate<char>(bytes), to = allocate<char>(bytes);
  const auto copy = [&] {
    RUSH_CHECK(cudaMemcpyAsync(to.get(), from.get(), static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice));
  };
  return 2 * static_cast<double>(bytes) / seconds_of(copy);
}

inline int compare_and_measure(const std::vector<KernelCall>& calls, FILE* file, void (*measure)()) {
  cudaDeviceProp device;
  RUSH_CHECK(cudaGetDeviceProperties(&device, 0));
  for (const KernelCall& call : calls) {
    if (!is_same(call, file)) return 1;
  }
  std::printf("  right  %zu calls on a GPU, %s, give what they give on the emulated grid\n", calls.size(), device.name);
  measure();
  return 0;
}

// The main function of such a program. Its argument is the file of the emulated grid's outputs.
inline int gpu_main(int argc, char** argv, const std::vector<KernelCall>& calls, void (*measure)()) {
  const File file(argc == 2 ? std::fopen(argv[1], "rb") : nullptr);
  if (!file) {
    std::fprintf(stderr, "usage: %s FILE\n", argv[0]);
    return 2;
  }
  try {
    return compare_and_measure(calls, file.get(), measure);
  } catch (const std::exception& error) {
    std::printf("  WRONG  %s\n", error.what());
    return 1;
  }
}

}  // namespace rush::labs
