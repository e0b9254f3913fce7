// The calls of lab 10's functions that are made on the emulated grid and on a GPU alike.
#pragma once
#include "tests/labs/kernels/kernel_call.h"
#include "tests/labs/kernels/kernels.h"

namespace rush::labs {

struct KernelCase {
  const char* function;
  int64_t rows, columns;  // copy and sum take rows * columns elements
  bool whole;             // sizes are multiples of what a block does: no thread has nothing to do
  float largest = 1;      // of the inputs' sizes, before `shift` is added to them
  float shift = 0;

  int64_t inputs() const { return rows * columns; }
  int64_t outputs() const { return is("sum") ? 1 : inputs(); }
  bool is(const char* name) const { return std::strcmp(function, name) == 0; }
};

inline constexpr KernelCase kKernelCases[] = {
    {"copy", 1, 1024, true},
    {"copy", 1, 1000, false},
    {"copy", 1, 1, false},
    {"transpose", 64, 96, true},
    {"transpose", 70, 45, false},
    {"transpose", 1, 33, false},
    {"sum", 1, 16384, true},
    {"sum", 1, 5000, false},
    {"sum", 1, 1, false},
    {"softmax", 3, 512, true},
    {"softmax", 5, 300, false},
    {"softmax", 4, 7, false},
    {"softmax", 3, 1000, false, 200},
    {"softmax", 3, 300, false, 1, -200},
};

// Copies are exact; a sum's order is free, and it rounds as often as it adds.
inline double tolerance(const KernelCase& c, double right) {
  if (c.is("sum")) return 1e-6 * static_cast<double>(c.inputs());
  return c.is("softmax") ? 1e-5 * right + 1e-30 : 0;
}

// Makes the call; `in` and `out` are memory of the device, and `out` is zero.
inline void make_call(const KernelCase& c, const float* in, float* out) {
  if (c.is("copy")) copy(in, out, c.inputs());
  if (c.is("transpose")) transpose(in, out, c.rows, c.columns);
  if (c.is("sum")) sum(in, out, c.inputs());
  if (c.is("softmax")) softmax(in, out, c.rows, c.columns);
}

inline std::string sizes_of(const KernelCase& c) {
  const bool is_matrix = c.is("transpose") || c.is("softmax");
  const std::string count = std::to_string(c.inputs()) + (c.inputs() == 1 ? " element" : " elements");
  return (is_matrix ? std::to_string(c.rows) + " rows of " + std::to_string(c.columns) : count) +
         (c.largest > 1 ? ", up to " + std::to_string(static_cast<int>(c.largest)) : "") +
         (c.shift != 0 ? ", all near " + std::to_string(static_cast<int>(c.shift)) : "");
}

inline std::vector<float> values_of(const KernelCase& c) {
  std::vector<float> values = mixed_values(c.inputs(), c.largest);
  for (float& value : values) value += c.shift;
  return values;
}

inline KernelCall call_of(const KernelCase& c) {
  return {c.function,
          sizes_of(c),
          c.whole,
          {{"in", values_of(c)}},
          c.outputs(),
          [c](const std::vector<const void*>& in, float* out) { make_call(c, static_cast<const float*>(in[0]), out); },
          [c](double right) { return tolerance(c, right); }};
}

inline std::vector<KernelCall> kernel_calls() {
  std::vector<KernelCall> calls;
  for (const KernelCase& c : kKernelCases) calls.push_back(call_of(c));
  return calls;
}

}  // namespace rush::labs
