// The calls of lab 10's functions that are made on the emulated grid and on a GPU alike.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/labs/kernels.h"

namespace rush::labs {

// Of files that hold the calls' outputs.
struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

struct KernelCase {
  const char* function;
  int64_t rows, columns;  // copy and sum take rows * columns elements
  bool whole;             // sizes are multiples of what a block does: no thread has nothing to do
  float largest = 1;      // of the inputs' sizes

  int64_t inputs() const { return rows * columns; }
  int64_t outputs() const { return is("sum") ? 1 : inputs(); }
  bool is(const char* name) const { return std::strcmp(function, name) == 0; }
};

inline constexpr KernelCase kKernelCases[] = {
    {"copy", 1, 1024, true},          {"copy", 1, 1000, false},     {"copy", 1, 1, false},
    {"transpose", 64, 96, true},      {"transpose", 70, 45, false}, {"transpose", 1, 33, false},
    {"sum", 1, 16384, true},          {"sum", 1, 5000, false},      {"sum", 1, 1, false},
    {"softmax", 3, 512, true},        {"softmax", 5, 300, false},   {"softmax", 4, 7, false},
    {"softmax", 3, 1000, false, 200},
};

// Different for neighbours in rows and in columns, in no order.
inline std::vector<float> inputs_of(const KernelCase& c) {
  std::vector<float> values(static_cast<size_t>(c.inputs()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = c.largest * (static_cast<float>(i * 7919 % 10007) / 5003 - 1);
  }
  return values;
}

// How far an output may be from the right one. Copies are exact; a sum's order is free, and it rounds as often as it
// adds.
inline double tolerance(const KernelCase& c, double right) {
  if (c.is("sum")) return 1e-6 * static_cast<double>(c.inputs());
  return c.is("softmax") ? 1e-5 * right + 1e-30 : 0;
}

// Makes the call; `in` and `out` are memory of the device, and `out` is zero.
inline void make_call(const KernelCase& c, const float* in, float* out) {
  if (c.is("copy")) return copy(in, out, c.inputs());
  if (c.is("transpose")) return transpose(in, out, c.rows, c.columns);
  if (c.is("sum")) return sum(in, out, c.inputs());
  if (c.is("softmax")) return softmax(in, out, c.rows, c.columns);
  throw std::invalid_argument("unknown function");
}

}  // namespace rush::labs
