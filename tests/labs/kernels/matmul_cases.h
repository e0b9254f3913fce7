// The calls of lab 12's functions that are made on the emulated grid and on a GPU alike.
#pragma once
#include "tests/labs/kernels/kernel_call.h"
#include "tests/labs/kernels/matmul.h"

namespace rush::labs {

// How a function of the lab is called.
struct MatmulFunction {
  const char* name;
  void (*in_float32)(const float*, const float*, float*, int64_t, int64_t, int64_t);
  void (*in_bfloat16)(const __nv_bfloat16*, const __nv_bfloat16*, float*, int64_t, int64_t, int64_t);
};
inline constexpr MatmulFunction kNaive = {"matmul_naive", matmul_naive, nullptr},
                                kTiled = {"matmul_tiled", matmul_tiled, nullptr},
                                kInRegisters = {"matmul_in_registers", matmul_in_registers, nullptr},
                                kOnTensorCores = {"matmul_on_tensor_cores", nullptr, matmul_on_tensor_cores};

struct MatmulCase {
  MatmulFunction function;
  int64_t m, n, k;
  bool whole;  // sizes are multiples of what a block does

  bool is(const MatmulFunction& other) const { return std::strcmp(function.name, other.name) == 0; }
};

inline constexpr MatmulCase kMatmulCases[] = {
    {kNaive, 32, 64, 40, true},           {kNaive, 37, 45, 29, false},           {kNaive, 1, 3, 2, false},
    {kTiled, 64, 96, 64, true},           {kTiled, 70, 45, 50, false},           {kTiled, 33, 1, 65, false},
    {kInRegisters, 128, 256, 24, true},   {kInRegisters, 70, 132, 20, false},    {kInRegisters, 130, 45, 27, false},
    {kInRegisters, 1, 3, 2, false},       {kOnTensorCores, 128, 128, 128, true}, {kOnTensorCores, 72, 136, 80, false},
    {kOnTensorCores, 130, 45, 67, false}, {kOnTensorCores, 5, 3, 2, false},
};

// Makes the call on memory of the device.
inline void make_call(const MatmulCase& c, const void* a, const void* b, float* out) {
  if (c.function.in_bfloat16) {
    return c.function.in_bfloat16(static_cast<const __nv_bfloat16*>(a), static_cast<const __nv_bfloat16*>(b), out, c.m,
                                  c.n, c.k);
  }
  c.function.in_float32(static_cast<const float*>(a), static_cast<const float*>(b), out, c.m, c.n, c.k);
}

// Numbers that bfloat16 has, too, so that its products are exact.
inline std::vector<float> matrix_values(int64_t count, bool in_16_bits, size_t seed) {
  std::vector<float> values = mixed_values(count, 1, seed);
  if (!in_16_bits) return values;
  for (float& value : values) value = __bfloat162float(__float2bfloat16(value));
  return values;
}

inline std::string size_of(int64_t rows, int64_t columns) {
  std::string text = "(";
  return text.append(std::to_string(rows)).append(", ").append(std::to_string(columns)).append(")");
}

inline KernelCall call_of(const MatmulCase& c) {
  const bool in_16_bits = c.function.in_bfloat16 != nullptr;
  const std::string sizes = size_of(c.m, c.k) + " by " + size_of(c.k, c.n);
  return {c.function.name,
          sizes,
          c.whole,
          {{"a", matrix_values(c.m * c.k, in_16_bits, 0), in_16_bits},
           {"b", matrix_values(c.k * c.n, in_16_bits, 5000), in_16_bits}},
          c.m * c.n,
          [c](const std::vector<const void*>& in, float* out) { make_call(c, in[0], in[1], out); },
          [c](double) { return 1e-6 * static_cast<double>(c.k + 1); }};
}

inline std::vector<KernelCall> matmul_calls() {
  std::vector<KernelCall> calls;
  for (const MatmulCase& c : kMatmulCases) calls.push_back(call_of(c));
  return calls;
}

}  // namespace rush::labs
