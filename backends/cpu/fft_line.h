// One-dimensional Fourier transforms of numbers side by side in memory: Eigen's, or FFTW's where the builder chose it.
#pragma once
#include <cstdint>
#include <memory>

#include "core/complex.h"

namespace rush::cpu {

enum class FftKind : uint8_t {
  Forward,     // n complex numbers to n
  Backward,    // likewise with the other sign
  RealToHalf,  // n real numbers to the first n/2 + 1 of their n complex frequencies, forward
  HalfToReal,  // and back
};

template <class T>
class FftEngine;

// Transforms lines of n points, without dividing by n. It is used by the thread that made it, while it lives, and is
// cheap to make again: tables and plans are kept.
template <class T>
class FftLine {
 public:
  // Throws ValueError naming `op` where the library cannot count to n.
  FftLine(const char* op, FftKind kind, int64_t n, int threads);
  ~FftLine();
  FftLine(const FftLine&) = delete;
  FftLine& operator=(const FftLine&) = delete;

  // `in` is left as it is; it does not overlap `out`.
  void operator()(const void* in, void* out) const;

  // Whether several threads can share the transform of one line of n points.
  static bool shares_lines(int64_t n);

 private:
  std::unique_ptr<FftEngine<T>> engine_;
};

extern template class FftLine<float>;
extern template class FftLine<double>;

}  // namespace rush::cpu
