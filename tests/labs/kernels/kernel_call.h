// A call of a function of the labs of CUDA kernels, which is made on the emulated grid and on a GPU alike.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/labs/grid/kernel.h"

namespace rush::labs {

// Of files that hold the calls' outputs.
struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// An input, as float32 or as bfloat16; for these, the values have at most 8 bits of significand.
struct Operand {
  const char* name;
  std::vector<float> values;
  bool in_16_bits = false;

  std::vector<__nv_bfloat16> rounded() const {
    std::vector<__nv_bfloat16> result;
    for (float value : values) result.push_back(__float2bfloat16(value));
    return result;
  }
};

struct KernelCall {
  std::string function;  // the learner's; its kernel has this name and _kernel
  std::string sizes;     // in words
  bool whole;            // sizes are multiples of what a block does: no thread has nothing to do
  std::vector<Operand> inputs;
  int64_t outputs;  // how many
  // Makes the call on memory of the device that has the inputs; `out` is zero.
  std::function<void(const std::vector<const void*>& in, float* out)> make;
  // How far an output may be from the right one.
  std::function<double(double right)> tolerance;

  std::string text() const { return function + " of " + sizes; }
};

// Different for neighbours in rows and in columns, in no order, of sizes up to `largest`. `seed` makes inputs differ.
inline std::vector<float> mixed_values(int64_t count, float largest = 1, size_t seed = 0) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = largest * (static_cast<float>((i + seed) * 7919 % 10007) / 5003 - 1);
  }
  return values;
}

}  // namespace rush::labs
