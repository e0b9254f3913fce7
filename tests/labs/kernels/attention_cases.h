// The calls of lab 13's functions that are made on the emulated grid and on a GPU alike.
#pragma once
#include <cmath>

#include "tests/labs/kernels/attention.h"
#include "tests/labs/kernels/kernel_call.h"

namespace rush::labs {

struct RowsCase {
  int64_t rows, columns;
  bool whole;
  float largest = 1;  // of the inputs' sizes, before `shift` is added to them
  float shift = 0;
};
inline constexpr RowsCase kRowsCases[] = {{8, 64, true}, {16, 256, true},      {5, 300, false},         {3, 7, false},
                                          {1, 1, false}, {9, 100, false, 200}, {5, 300, false, 1, -200}};

struct AttentionCase {
  AttentionSizes sizes;
  bool whole;
  // How much less the scores of the last key are than those of the first one. Beyond 88, exp of it is infinite.
  float fall = 0;
};
inline constexpr AttentionCase kAttentionCases[] = {
    {{1, 64, 64, 64, false}, true},       {{1, 64, 160, 64, false}, true, 4},   {{1, 64, 128, 64, false}, true, -400},
    {{1, 64, 128, 64, false}, true, 400}, {{2, 37, 75, 64, false}, false, 4},   {{2, 70, 45, 24, false}, false, 4},
    {{1, 3, 2, 5, false}, false},         {{1, 128, 128, 64, true}, true, 4},   {{2, 70, 70, 19, true}, false, 4},
    {{1, 40, 100, 64, true}, false, -4},  {{1, 70, 50, 40, true}, false, -400},
};

// The first number of each key is what makes scores fall, with queries whose first number is sqrt(width).
inline std::vector<float> query_values(const AttentionCase& c) {
  const AttentionSizes& s = c.sizes;
  std::vector<float> values = mixed_values(s.heads * s.queries * s.width, 1.5F);
  const auto width = static_cast<size_t>(s.width);
  for (size_t i = 0; i < values.size(); i += width) values[i] = std::sqrt(static_cast<float>(s.width));
  return values;
}
inline std::vector<float> key_values(const AttentionCase& c) {
  const AttentionSizes& s = c.sizes;
  std::vector<float> values = mixed_values(s.heads * s.keys * s.width, 1.5F, 3001);
  const auto width = static_cast<size_t>(s.width), keys = static_cast<size_t>(s.keys);
  for (size_t i = 0; i < values.size(); i += width) {
    values[i] = c.fall * (0.5F - static_cast<float>(i / width % keys) / static_cast<float>(keys));
  }
  return values;
}

inline KernelCall call_of(const RowsCase& c) {
  const std::string large = c.largest > 1 ? ", up to " + std::to_string(static_cast<int>(c.largest)) : "";
  const std::string low = c.shift != 0 ? ", all near " + std::to_string(static_cast<int>(c.shift)) : "";
  std::vector<float> values = mixed_values(c.rows * c.columns, c.largest);
  for (float& value : values) value += c.shift;
  return {"logsumexp",
          std::to_string(c.rows) + " rows of " + std::to_string(c.columns) + large + low,
          c.whole,
          {{"in", values}},
          c.rows,
          [c](const std::vector<const void*>& in, float* out) {
            logsumexp(static_cast<const float*>(in[0]), out, c.rows, c.columns);
          },
          [](double right) { return 1e-5 * (1 + std::abs(right)); }};
}

inline KernelCall call_of(const AttentionCase& c) {
  const AttentionSizes& s = c.sizes;
  const std::string large = std::abs(c.fall) > 88 ? ", with large scores" : "";
  return {"attention",
          std::to_string(s.heads) + (s.heads == 1 ? " head" : " heads") + ", " + std::to_string(s.queries) +
              " queries, " + std::to_string(s.keys) + " keys of " + std::to_string(s.width) + " numbers" +
              (s.causal ? ", causal" : "") + large,
          c.whole,
          {{"q", query_values(c)}, {"k", key_values(c)}, {"v", mixed_values(s.heads * s.keys * s.width, 1, 777)}},
          s.heads * s.queries * s.width,
          [s](const std::vector<const void*>& in, float* out) {
            attention(static_cast<const float*>(in[0]), static_cast<const float*>(in[1]),
                      static_cast<const float*>(in[2]), out, s);
          },
          [large](double) { return large.empty() ? 2e-5 : 1e-3; }};
}

inline std::vector<KernelCall> attention_calls() {
  std::vector<KernelCall> calls;
  for (const RowsCase& c : kRowsCases) calls.push_back(call_of(c));
  for (const AttentionCase& c : kAttentionCases) calls.push_back(call_of(c));
  return calls;
}

}  // namespace rush::labs
