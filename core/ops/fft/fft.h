// Discrete Fourier transforms: of complex, real and Hermitian signals, over one dimension, two or any.
// https://pytorch.org/docs/stable/fft.html
#pragma once
#include "core/ops/factory/factories.h"

namespace rush {

using FftOp = Op<Tensor(const Tensor&, std::optional<int64_t>, int64_t, std::optional<std::string_view>)>;
using Fft2Op = Op<Tensor(const Tensor&, OptionalIntArrayRef, IntArrayRef, std::optional<std::string_view>)>;
using FftnOp = Op<Tensor(const Tensor&, OptionalIntArrayRef, OptionalIntArrayRef, std::optional<std::string_view>)>;
using FftshiftOp = Op<Tensor(const Tensor&, OptionalIntArrayRef)>;
using FftfreqOp = Op<Tensor(int64_t, double, RUSH_FACTORY_ARGS)>;

/// What a sum over n points is divided by, in the numbers that ATen passes.
enum class FftNorm : int64_t { None = 0, RootN = 1, N = 2 };

namespace ops {
/// The three transforms that all others are made of; `normalization` is an FftNorm.
inline constinit Op<Tensor(const Tensor&, IntArrayRef, int64_t, bool)> _fft_c2c{
    "aten::_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor"};
/// The last of `dim` has n/2 + 1 results, or all n where not `onesided`.
inline constinit Op<Tensor(const Tensor&, IntArrayRef, int64_t, bool)> _fft_r2c{
    "aten::_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor"};
/// The inverse of a one-sided _fft_r2c whose input had `last_dim_size` points along the last of `dim`.
inline constinit Op<Tensor(const Tensor&, IntArrayRef, int64_t, int64_t)> _fft_c2r{
    "aten::_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor"};

#define RUSH_FFT_OPS(name)                                                                                    \
  inline constinit FftOp fft_##name{"aten::fft_" #name                                                        \
                                    "(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> "           \
                                    "Tensor"};                                                                \
  inline constinit Fft2Op fft_##name##2 {                                                                     \
      "aten::fft_" #name "2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor"}; \
  inline constinit FftnOp fft_##name##n {                                                                     \
    "aten::fft_" #name "n(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor"        \
  }
RUSH_FFT_OPS(fft);
RUSH_FFT_OPS(ifft);
RUSH_FFT_OPS(rfft);
RUSH_FFT_OPS(irfft);
RUSH_FFT_OPS(hfft);
RUSH_FFT_OPS(ihfft);
#undef RUSH_FFT_OPS
inline constinit FftshiftOp fft_fftshift{"aten::fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor"};
inline constinit FftshiftOp fft_ifftshift{"aten::fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor"};
inline constinit FftfreqOp fft_fftfreq{"aten::fft_fftfreq(int n, float d=1., *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
inline constinit FftfreqOp fft_rfftfreq{"aten::fft_rfftfreq(int n, float d=1., *, " RUSH_FACTORY_SCHEMA ") -> Tensor"};
}  // namespace ops

namespace fft {

// Note [The Fourier transforms]
// X_k = sum over j of x_j e^(-2 pi i jk/n), k = 0, ..., n - 1, and the inverse with +2 pi i, divided by n. `norm` moves
// the division: "backward" (the default) divides the inverses by n, "forward" the others, "ortho" both by sqrt(n).
// `n`, or `s` for several dimensions, is how many points are transformed: the input is cut to that length, or padded
// with zeros at its end; -1 in `s` leaves a dimension as it is.
//   fft, ifft     complex to complex; a real input counts as complex.
//   rfft, irfft   a real signal of n points and the first n/2 + 1 frequencies: the rest are their conjugates. The n of
//                 irfft is that of the signal; by default it is even, 2 (frequencies - 1).
//   hfft, ihfft   the same with signal and frequencies in each other's place: hfft makes real frequencies of the first
//                 half of a Hermitian signal.
// Over several dimensions the half is that of the last. Integers count as the default dtype, float16 on a GPU as
// float32. Each can be differentiated any number of times.
// All throw ValueError where there are less than one point or the norm is no such name, IndexError for a dimension out
// of range, and TypeError for a dtype that is not transformed, which for rfft and ihfft complex ones are.

#define RUSH_FFT_FUNCTIONS(name)                                                                                       \
  inline Tensor name(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1,                    \
                     std::optional<std::string_view> norm = std::nullopt) {                                            \
    return ops::fft_##name(self, n, dim, norm);                                                                        \
  }                                                                                                                    \
  inline Tensor name##2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1},          \
                        std::optional<std::string_view> norm = std::nullopt) {                                         \
    return ops::fft_##name##2(self, s, dim, norm);                                                                     \
  }                                                                                                                    \
  inline Tensor name##n(const Tensor& self, OptionalIntArrayRef s = std::nullopt,                                      \
                        OptionalIntArrayRef dim = std::nullopt, std::optional<std::string_view> norm = std::nullopt) { \
    return ops::fft_##name##n(self, s, dim, norm);                                                                     \
  }
// Over dimension `dim`; name2: over two; namen: over those given, else over as many of the last as `s` has, else all.
RUSH_FFT_FUNCTIONS(fft)
RUSH_FFT_FUNCTIONS(ifft)
RUSH_FFT_FUNCTIONS(rfft)
RUSH_FFT_FUNCTIONS(irfft)
RUSH_FFT_FUNCTIONS(hfft)
RUSH_FFT_FUNCTIONS(ihfft)
#undef RUSH_FFT_FUNCTIONS

/// Frequency zero moved to the middle, index n/2, of each of `dim`, by default of all dimensions; and back.
inline Tensor fftshift(const Tensor& self, OptionalIntArrayRef dim = std::nullopt) {
  return ops::fft_fftshift(self, dim);
}
inline Tensor ifftshift(const Tensor& self, OptionalIntArrayRef dim = std::nullopt) {
  return ops::fft_ifftshift(self, dim);
}
/// The frequencies of fft's n results, in cycles per unit, where `d` units lie between two points: 0, 1, ..., ..., -2,
/// -1, each over (d n). In the default dtype, or the options' floating or complex one. Throw ValueError for n below 1.
Tensor fftfreq(int64_t n, double d = 1.0, const TensorOptions& options = {});
inline Tensor fftfreq(int64_t n, const TensorOptions& options) { return fftfreq(n, 1.0, options); }
/// The same of rfft's: 0, 1, ..., n/2, each over (d n).
Tensor rfftfreq(int64_t n, double d = 1.0, const TensorOptions& options = {});
inline Tensor rfftfreq(int64_t n, const TensorOptions& options) { return rfftfreq(n, 1.0, options); }

}  // namespace fft

namespace kernels {
// out = scale * the transform of `in` over `dim` (not empty, different, counted from the front), without dividing by
// n. `out` is row-major, or of such a tensor the first part of its last transformed dimension. c2c: complex, of one
// shape. r2c: along dim.back() `out` has n/2 + 1 elements, `in` n. c2r: the other way round; frequency 0, and for an
// even n the last one, count as real.
inline constinit Kernel<void(const Tensor& out, const Tensor& in, IntArrayRef dim, bool forward, double scale)> fft_c2c{
    "_fft_c2c"};
inline constinit Kernel<void(const Tensor& out, const Tensor& in, IntArrayRef dim, double scale)> fft_r2c{"_fft_r2c"};
inline constinit Kernel<void(const Tensor& out, const Tensor& in, IntArrayRef dim, double scale)> fft_c2r{"_fft_c2r"};
}  // namespace kernels

}  // namespace rush
