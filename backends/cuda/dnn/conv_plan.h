// cuDNN's plans for convolutions.
#pragma once
#include <array>
#include <cstdint>

#include "backends/cuda/dnn/conv.h"
#include "core/scalar_type.h"

namespace rush::cuda {

// A convolution as far as the choice of an algorithm depends on it. Dimensions are (N, C, D, H, W) as in
// kernels::convolution; all tensors are dense, in one memory format.
struct ConvProblem {
  ConvDirection direction;
  ScalarType dtype, result;  // of what is read, and of what is written: float32 sums of 16-bit numbers, or the same
  bool channels_last, bias;
  std::array<int64_t, 5> input, weight, output;
  std::array<int64_t, 3> stride, padding, dilation;

  friend bool operator==(const ConvProblem&, const ConvProblem&) = default;
};

struct ConvPointers {
  void *input, *weight, *output;  // aligned to kConvAlignment; the one that the direction names is written
  void* bias;                     // likewise; null where the problem has none
};
inline constexpr uintptr_t kConvAlignment = 16;

// Computes by the plan that is kept for such problems on this device, or else chosen now: by cuDNN's heuristics, or by
// timing its candidates where globalContext().benchmarkCuDNN(). RUSH_SHOW_PLANS=1 prints each choice. False, with
// nothing done, where cuDNN has no plan that the switches of globalContext() allow.
bool run_conv_plan(const ConvProblem& problem, const ConvPointers& data);

// The same, with nothing computed: counts what run_conv_plan would work in, the timing of candidates included, in the
// estimate of memory that is being made.
bool estimate_conv_plan(const ConvProblem& problem);

}  // namespace rush::cuda
