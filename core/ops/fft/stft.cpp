#include "core/ops/fft/stft.h"

#include "core/ops/basic.h"
#include "core/ops/fft/fft.h"
#include "core/ops/register.h"
#include "core/ops/view/pad.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

namespace {

// The arguments of stft and istft that describe frames.
struct Frames {
  int64_t n_fft, hop, window_length;

  Frames(const char* op, const Tensor& self, int64_t points, std::optional<int64_t> hop_length,
         std::optional<int64_t> win_length, const std::optional<Tensor>& window)
      : n_fft(points), hop(hop_length.value_or(points / 4)), window_length(win_length.value_or(points)) {
    RUSH_CHECK_VALUE(n_fft > 0, op, ": n_fft must be positive, got ", n_fft);
    RUSH_CHECK_VALUE(hop > 0, op, ": hop_length must be positive, got ", hop);
    RUSH_CHECK_VALUE(window_length > 0 && window_length <= n_fft, op, ": expected 0 < win_length <= n_fft, got ",
                     window_length, " and ", n_fft);
    if (!given(window)) return;
    RUSH_CHECK_VALUE(window->dim() == 1 && window->size(0) == window_length, op, ": expected a window of ",
                     window_length, " values, got shape ", window->sizes());
    RUSH_CHECK_VALUE(window->device() == self.device(), op, ": the window is on ", window->device(), ", the signal on ",
                     self.device());
  }
  int64_t left() const { return (n_fft - window_length) / 2; }
  int64_t right() const { return n_fft - window_length - left(); }
  // The window of n_fft values: the given one, or ones with options `like`, padded with zeros on both sides.
  Tensor window(const std::optional<Tensor>& window, const TensorOptions& like) const {
    const Tensor weights = given(window) ? *window : ones(window_length, like);
    return window_length == n_fft ? weights : constant_pad_nd(weights, {left(), right()});
  }
};

// Signals (B, T) with this many more values on each side.
Tensor padded_signals(const Tensor& signals, int64_t left, int64_t right, std::string_view mode) {
  return pad(signals.unsqueeze(0), {left, right}, mode).squeeze(0);  // reflection wants three dimensions
}

Tensor stft_center(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length,
                   std::optional<int64_t> win_length, const std::optional<Tensor>& window, bool center,
                   std::string_view pad_mode, bool normalized, std::optional<bool> onesided,
                   std::optional<bool> return_complex, std::optional<bool> align_to_window) {
  RUSH_CHECK_TYPE(is_differentiable(self.scalar_type()), "stft: expected a floating-point or complex signal, got ",
                  self.scalar_type());
  RUSH_CHECK_VALUE(self.dim() == 1 || self.dim() == 2, "stft: expected a signal (T) or signals (B, T), got shape ",
                   self.sizes());
  const Frames frames("stft", self, n_fft, hop_length, win_length, window);
  const bool complex = self.is_complex() || (given(window) && window->is_complex());
  RUSH_CHECK_VALUE(complex || return_complex, "stft: return_complex must be given for a real signal");
  RUSH_CHECK_VALUE(!center || !align_to_window, "stft: align_to_window is for center=false");
  RUSH_CHECK_VALUE(!complex || !onesided.value_or(false), "stft: a complex signal or window has no one-sided spectrum");
  Tensor signals = self.dim() == 1 ? self.unsqueeze(0) : self;
  if (center) signals = padded_signals(signals, n_fft / 2, n_fft / 2, pad_mode);
  RUSH_CHECK_VALUE(n_fft <= signals.size(1), "stft: n_fft ", n_fft, " is more than the ", signals.size(1),
                   " values of the signal");
  if (align_to_window.value_or(false)) {
    signals = padded_signals(signals, frames.left(), frames.right(), "constant");
  }
  Tensor pieces = signals.unfold(1, n_fft, frames.hop);  // (B, frames, n_fft)
  if (given(window) || frames.window_length < n_fft) pieces = pieces * frames.window(window, self.options());
  const auto norm = static_cast<int64_t>(normalized ? FftNorm::RootN : FftNorm::None);
  const Tensor spectra =
      complex ? ops::_fft_c2c(pieces, 2, norm, true) : ops::_fft_r2c(pieces, 2, norm, onesided.value_or(true));
  const Tensor columns = spectra.transpose(1, 2);
  const Tensor out = self.dim() == 1 ? columns.squeeze(0) : columns;
  return return_complex.value_or(true) ? out : view_as_real(out);
}

Tensor stft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
            const std::optional<Tensor>& window, bool normalized, std::optional<bool> onesided,
            std::optional<bool> return_complex, std::optional<bool> align_to_window) {
  return native::stft_center(self, n_fft, hop_length, win_length, window, false, "constant", normalized, onesided,
                             return_complex, align_to_window);
}

// Overlap-add of frames (B, frames, n_fft), frame i at i * hop: (B, n_fft + hop (frames - 1)).
Tensor overlap_added(const Tensor& pieces, int64_t hop) {
  const int64_t length = add_sizes("istft", pieces.size(2), multiply_sizes("istft", hop, pieces.size(1) - 1));
  return ops::unfold_backward(pieces, {pieces.size(0), length}, 1, pieces.size(2), hop);
}

// (B, frequencies, frames) -> (B, frames, n_fft)
Tensor pieces_of_spectra(const Tensor& spectra, int64_t n_fft, bool normalized, bool onesided, bool return_complex) {
  const int64_t frequencies = spectra.size(1), expected = onesided ? n_fft / 2 + 1 : n_fft;
  RUSH_CHECK_VALUE(frequencies == expected, "istft: expected ", expected, " frequencies for n_fft ", n_fft,
                   onesided ? " of one side" : "", ", got ", frequencies);
  const auto norm = static_cast<int64_t>(normalized ? FftNorm::RootN : FftNorm::N);
  const Tensor rows = spectra.transpose(1, 2);
  if (return_complex) return ops::_fft_c2c(rows, 2, norm, false);
  return ops::_fft_c2r(rows.narrow(2, 0, n_fft / 2 + 1), 2, norm, n_fft);
}

Tensor istft(const Tensor& self, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
             const std::optional<Tensor>& window, bool center, bool normalized, std::optional<bool> onesided,
             std::optional<int64_t> length, bool return_complex) {
  RUSH_CHECK_TYPE(self.is_complex(), "istft: expected complex spectra, got ", self.scalar_type());
  RUSH_CHECK_VALUE(self.dim() == 2 || self.dim() == 3,
                   "istft: expected spectra (frequencies, frames) or (B, frequencies, frames), got shape ",
                   self.sizes());
  RUSH_CHECK_VALUE(self.numel() > 0, "istft: the spectra of shape ", self.sizes(), " are empty");
  const Frames frames("istft", self, n_fft, hop_length, win_length, window);
  RUSH_CHECK_VALUE(frames.hop <= frames.window_length, "istft: hop_length ", frames.hop, " is more than win_length ",
                   frames.window_length);
  RUSH_CHECK_VALUE(!length || (*length > 0 && *length <= INT64_MAX - n_fft),
                   "istft: length must be positive and fit beside n_fft, got ", *length);
  const bool half = onesided.value_or(self.size(-2) != n_fft);
  RUSH_CHECK_VALUE(!return_complex || !half, "istft: spectra of one side give no complex signal");
  RUSH_CHECK_VALUE(return_complex || !given(window) || !window->is_complex(),
                   "istft: a complex window needs return_complex=true");
  const Tensor spectra = self.dim() == 2 ? self.unsqueeze(0) : self;
  const Tensor pieces = pieces_of_spectra(spectra, n_fft, normalized, half, return_complex);
  const Tensor weights = frames.window(window, self.options().dtype(to_real(self.scalar_type())));
  const Tensor sums = overlap_added(pieces * weights, frames.hop);
  const Tensor squares = overlap_added((weights * weights).expand({1, pieces.size(1), n_fft}), frames.hop);
  const int64_t all = sums.size(1), start = center ? n_fft / 2 : 0;
  const int64_t end = length ? start + *length : center ? all - n_fft / 2 : all;
  const Tensor divisor = squares.slice(1, start, end);
  const bool gap = !divisor.is_meta() && divisor.numel() > 0 && divisor.abs().min().item<double>() < 1e-11;
  RUSH_CHECK_VALUE(!gap, "istft: the windows leave a gap: the sum of their squares is zero somewhere");
  Tensor signals = sums.slice(1, start, end) / divisor;
  if (self.dim() == 2) signals = signals.squeeze(0);
  return end > all ? constant_pad_nd(signals, {0, end - all}) : signals;
}

}  // namespace
}  // namespace native

void register_stft_ops(Registry& r) {
  r.composite(ops::stft, native::stft);
  r.composite(ops::stft_center, native::stft_center);
  r.composite(ops::istft, native::istft);
}

Tensor Tensor::stft(int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
                    const std::optional<Tensor>& window, bool center, std::string_view pad_mode, bool normalized,
                    std::optional<bool> onesided, std::optional<bool> return_complex,
                    std::optional<bool> align_to_window) const {
  return ops::stft_center(*this, n_fft, hop_length, win_length, window, center, pad_mode, normalized, onesided,
                          return_complex, align_to_window);
}
Tensor Tensor::stft(int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
                    const std::optional<Tensor>& window, bool normalized, std::optional<bool> onesided,
                    std::optional<bool> return_complex, std::optional<bool> align_to_window) const {
  return ops::stft(*this, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window);
}
Tensor Tensor::istft(int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
                     const std::optional<Tensor>& window, bool center, bool normalized, std::optional<bool> onesided,
                     std::optional<int64_t> length, bool return_complex) const {
  return ops::istft(*this, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex);
}

}  // namespace rush
