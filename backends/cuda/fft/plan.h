// cuFFT's plans.
#pragma once
#include <array>
#include <cstdint>

namespace rush::cuda {

// cuFFT's "advanced data layout" of a batch of signals, in elements: number (x0, x1, x2) of signal b is at b dist +
// ((x0 embed[1] + x1) embed[2] + x2) stride. Two dimensions use embed[1] alone; embed[0] is that dimension's size.
struct FftLayout {
  std::array<int64_t, 3> embed = {1, 1, 1};
  int64_t stride = 1, dist = 1;
  bool dense = false;  // contiguous

  friend bool operator==(const FftLayout&, const FftLayout&) = default;
};

enum class FftType : int8_t { C2c, R2c, C2r };

// Everything about a transform that its plan depends on. If one side is real, `points` are its sizes, and the last
// dimension of the complex side has size points/2 + 1.
struct FftProblem {
  FftType type;
  bool double_precision;
  int rank;  // 1 to 3
  std::array<int64_t, 3> points = {1, 1, 1};
  int64_t batch;
  FftLayout in, out;

  friend bool operator==(const FftProblem&, const FftProblem&) = default;
};

// Transforms without scaling, on the current stream, by a plan of the device's cache, which it makes if necessary. Only
// C2c uses `forward`. Complex numbers must be aligned to their size, and real ones to twice theirs; C2r overwrites
// `in`. Throws CudaError, and OutOfMemoryError if the plan's tables or its work area do not fit.
void run_fft_plan(const FftProblem& problem, void* in, void* out, bool forward);

}  // namespace rush::cuda
