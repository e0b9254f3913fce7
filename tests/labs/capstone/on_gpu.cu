// Runs a capstone's fused kernel on a GPU, for the calls that a file holds, and compares with what the reference gives.
// Each call is its numbers of tensors, rows and columns (int64), the operator's number (double), then its tensors and
// the result, each as a count (int64) and so many floats. usage: on_gpu FILE
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "fused.h"

namespace {

void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
}

// So many numbers; false at the end of the file.
template <class T>
bool read(FILE* file, T* to, size_t count) {
  return std::fread(to, sizeof(T), count, file) == count;
}

std::vector<float> read_tensor(FILE* file) {
  int64_t count = 0;
  std::vector<float> values;
  if (read(file, &count, 1)) values.resize(static_cast<size_t>(count));
  if (values.empty() || !read(file, values.data(), values.size())) throw std::runtime_error("the file is too short");
  return values;
}

// Freed when the program ends.
float* on_device(const std::vector<float>& values) {
  float* data = nullptr;
  check(cudaMalloc(&data, values.size() * sizeof(float)), "cudaMalloc");
  check(cudaMemcpy(data, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
  return data;
}

void run_call(FILE* file, const int64_t (&header)[3]) {
  double number = 0;
  read(file, &number, 1);
  std::vector<const float*> inputs;
  for (int64_t i = 0; i < header[0]; ++i) inputs.push_back(on_device(read_tensor(file)));
  const std::vector<float> right = read_tensor(file);
  std::vector<float> got(right.size());
  float* const out = on_device(got);
  capstone::fused(inputs.data(), static_cast<float>(number), out, header[1], header[2]);
  check(cudaMemcpy(got.data(), out, got.size() * sizeof(float), cudaMemcpyDeviceToHost), "the kernel");
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::abs(got[i] - right[i]) <= 2e-5F * std::max(1.F, std::abs(right[i]))) continue;
    throw std::runtime_error("out[" + std::to_string(i) + "] is " + std::to_string(got[i]) +
                             ", and the reference gives " + std::to_string(right[i]));
  }
}

int run_calls(FILE* file) {
  int64_t header[3];
  int calls = 0;
  for (; read(file, header, 3); ++calls) run_call(file, header);
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  std::printf("on a GPU, %s, %d calls of the kernel give what the reference gives\n", device.name, calls);
  return calls > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  FILE* const file = argc == 2 ? std::fopen(argv[1], "rb") : nullptr;
  if (!file) return std::fprintf(stderr, "usage: %s FILE\n", argv[0]), 2;
  try {
    return run_calls(file);
  } catch (const std::exception& error) {
    std::printf("WRONG on a GPU: %s\n", error.what());
    return 1;
  }
}
