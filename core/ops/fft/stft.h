// The short-time Fourier transform, the spectra of overlapping frames of a signal, and its inverse.
// https://pytorch.org/docs/stable/generated/torch.stft.html
#pragma once
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
inline constinit Op<Tensor(const Tensor&, int64_t, std::optional<int64_t>, std::optional<int64_t>,
                           const std::optional<Tensor>&, bool, std::optional<bool>, std::optional<bool>,
                           std::optional<bool>)>
    stft{
        "aten::stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
        "normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t, std::optional<int64_t>, std::optional<int64_t>,
                           const std::optional<Tensor>&, bool, std::string_view, bool, std::optional<bool>,
                           std::optional<bool>, std::optional<bool>)>
    stft_center{
        "aten::stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
        "bool center=True, str pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, bool? "
        "return_complex=None, bool? align_to_window=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t, std::optional<int64_t>, std::optional<int64_t>,
                           const std::optional<Tensor>&, bool, bool, std::optional<bool>, std::optional<int64_t>, bool)>
    istft{
        "aten::istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool "
        "center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> "
        "Tensor"};
}  // namespace ops

/// The spectra of a signal (T) or signals (B, T): (B, frequencies, frames), frame f being the Fourier transform of the
/// n_fft values from f hop_length on times the window. `hop_length` is n_fft/4 and `win_length` n_fft by default; a
/// shorter window (win_length; ones where there is none) has zeros on both sides. `center` pads the signal by n_fft/2
/// on both sides as pad does in `pad_mode`, so that frame f is centred at f hop_length; otherwise `align_to_window`
/// starts with the window's, not the frame's, first value at 0. `normalized` divides by sqrt(n_fft). `onesided` keeps
/// the first n_fft/2 + 1 frequencies: the default where signal and window are real, ValueError otherwise. Real spectra,
/// (..., 2), come of return_complex=false; for a real signal it must be given. Throws ValueError for sizes, a hop or a
/// window that do not fit, TypeError for a dtype that is not transformed.
inline Tensor stft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length = std::nullopt,
                   std::optional<int64_t> win_length = std::nullopt, const std::optional<Tensor>& window = std::nullopt,
                   bool center = true, std::string_view pad_mode = "reflect", bool normalized = false,
                   std::optional<bool> onesided = std::nullopt, std::optional<bool> return_complex = std::nullopt,
                   std::optional<bool> align_to_window = std::nullopt) {
  return ops::stft_center(self, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided,
                          return_complex, align_to_window);
}
/// As above, not centred.
inline Tensor stft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
                   std::optional<int64_t> win_length, const std::optional<Tensor>& window, bool normalized,
                   std::optional<bool> onesided = std::nullopt, std::optional<bool> return_complex = std::nullopt,
                   std::optional<bool> align_to_window = std::nullopt) {
  return ops::stft(self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window);
}
/// The signal (T) or signals (B, T) whose stft with these arguments is closest to `self`, (frequencies, frames) or (B,
/// frequencies, frames) (Griffin and Lim, "Signal estimation from modified short-time Fourier transform", 1984): frames
/// transformed back, times the window, are added up, and divided by the sum of the squared windows. It has `length`
/// values, zeros at its end where the frames give less; by default as many as the frames give, without the padding
/// where `center`. Complex where `return_complex`. Throws as stft does, and ValueError where the squared windows leave
/// a gap.
inline Tensor istft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length = std::nullopt,
                    std::optional<int64_t> win_length = std::nullopt,
                    const std::optional<Tensor>& window = std::nullopt, bool center = true, bool normalized = false,
                    std::optional<bool> onesided = std::nullopt, std::optional<int64_t> length = std::nullopt,
                    bool return_complex = false) {
  return ops::istft(self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex);
}

}  // namespace rush
