// cuFFT's plans.
#pragma once
#include <array>
#include <cstdint>

namespace rush::cuda {

// Where the numbers of a batch of signals lie, counted in elements: number (x0, x1, x2) of signal b is at b dist +
// ((x0 embed[1] + x1) embed[2] + x2) stride. Two dimensions use embed[1] alone; embed[0] is that dimension's size.
struct FftLayout {
  std::array<int64_t, 3> embed = {1, 1, 1};
  int64_t stride = 1, dist = 1;
  bool dense = false;  // row-major, signal behind signal

  friend bool operator==(const FftLayout&, const FftLayout&) = default;
};

enum class FftType : int8_t { C2c, R2c, C2r };

// A transform as far as the plan depends on it. `points` counts real numbers where the signal is real; of the complex
// side the last dimension then has points/2 + 1.
struct FftProblem {
  FftType type;
  bool double_precision;
  int rank;  // 1 to 3
  std::array<int64_t, 3> points = {1, 1, 1};
  int64_t batch;
  FftLayout in, out;

  friend bool operator==(const FftProblem&, const FftProblem&) = default;
};

// Transforms without scaling, on the current stream, by the plan that is kept for such problems on this device, or else
// made now. `forward` counts for C2c. Complex numbers are aligned to their size, and so are real ones to twice theirs;
// C2r overwrites `in`. Throws CudaError, OutOfMemoryError where a plan's tables or its work area do not fit.
void run_fft_plan(const FftProblem& problem, void* in, void* out, bool forward);

}  // namespace rush::cuda
