// Signals: convolution by the Fourier transform. Windows are in core/ops/fft/window.h, spectra over time in
// core/ops/fft/stft.h.
#pragma once
#include "core/tensor.h"

namespace rush::signal {

/// sum over j of input[i - j] kernel[j], along each of `dim`; the other dimensions broadcast. The mathematical
/// convolution, which turns the kernel around, unlike nn's conv; scipy.signal.fftconvolve. `mode` says which i there
/// are: "full" all n + m - 1 where the two meet, "same" the n of them in the middle, n being the size of `input`,
/// "valid" those where the shorter one lies within the longer one, |n - m| + 1 in each dimension. Real for two real
/// operands, in their common dtype, integers counting as the default dtype. The cost is that of Fourier transforms of n
/// + m - 1 points, whatever the kernel's size. Can be differentiated any number of times. Throws ValueError for another
/// mode, for operands of different numbers of dimensions, without points or that do not broadcast, and, with "valid",
/// where neither operand is the longer one in all of `dim`; IndexError for a dimension out of range.
Tensor fftconvolve(const Tensor& input, const Tensor& kernel, std::string_view mode = "full", IntArrayRef dim = -1);

}  // namespace rush::signal
