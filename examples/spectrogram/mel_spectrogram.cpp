#include "examples/spectrogram/mel_spectrogram.h"

#include <cmath>

#include "core/ops/stft.h"
#include "core/ops/window.h"
#include "examples/png.h"
#include "rushlight.h"

namespace examples {

using rush::Tensor;

namespace {

double mels(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
Tensor hertz(const Tensor& mels) { return ((mels * (std::log(10.0) / 2595)).exp() - 1) * 700; }

}  // namespace

// Band b rises from edge b to edge b + 1, and falls to edge b + 2.
Tensor mel_filters(int64_t bands, int64_t frequencies, double sample_rate) {
  RUSH_CHECK_VALUE(bands >= 1 && frequencies >= 2, "mel_filters: expected a band and two frequencies, got ", bands,
                   " and ", frequencies);
  const Tensor edges = hertz(rush::linspace(0, mels(sample_rate / 2), bands + 2, rush::kFloat64)).unsqueeze(1);
  const Tensor frequency = rush::linspace(0, sample_rate / 2, frequencies, rush::kFloat64).unsqueeze(0);
  const Tensor low = edges.narrow(0, 0, bands), middle = edges.narrow(0, 1, bands), high = edges.narrow(0, 2, bands);
  const Tensor rise = (frequency - low) / (middle - low), fall = (high - frequency) / (high - middle);
  return rush::minimum(rise, fall).clamp_min(0).to(rush::kFloat32);
}

MelSpectrogram::MelSpectrogram(double sample_rate, rush::Device device)
    : window_(rush::hann_window(kFft, rush::TensorOptions(rush::kFloat32).device(device))),
      filters_(mel_filters(kBands, kFft / 2 + 1, sample_rate).to(device)) {}

Tensor MelSpectrogram::operator()(const Tensor& signals) const {
  const Tensor spectrum = rush::stft(signals, kFft, kHop, kFft, window_, /*center=*/true, "reflect",
                                     /*normalized=*/false, /*onesided=*/true, /*return_complex=*/true);
  const Tensor power = spectrum.abs().square();                 // (N, kFft / 2 + 1, frames)
  const Tensor levels = (filters_.matmul(power) + 1e-8).log();  // (N, kBands, frames)
  const Tensor mean = levels.mean({1, 2}, /*keepdim=*/true), deviation = levels.std({1, 2}, /*unbiased=*/false, true);
  return (levels - mean) / (deviation + 1e-5);
}

std::string draw(const Tensor& spectrograms) {
  constexpr int64_t kScale = 4, kGap = 2;  // pixels to a value, values between two pictures
  RUSH_CHECK_VALUE(spectrograms.dim() == 3 && spectrograms.numel() > 0,
                   "draw: expected spectrograms (N, bands, frames), got shape ", spectrograms.sizes());
  Tensor levels = spectrograms.detach().cpu().flip({1});  // the highest band comes first
  levels = levels - levels.amin({1, 2}, true);
  levels = levels / levels.amax({1, 2}, true).clamp_min(1e-5) * 255;
  const Tensor framed = rush::nn::functional::pad(levels, rush::nn::functional::PadFuncOptions({0, 0, 0, kGap}));
  const Tensor pixels = framed.reshape({-1, levels.size(2)})
                            .repeat_interleave(kScale, 0)
                            .repeat_interleave(kScale, 1)
                            .round()
                            .to(rush::kUInt8)
                            .contiguous();
  const std::span<const uint8_t> all(pixels.data_ptr<uint8_t>(), static_cast<size_t>(pixels.numel()));
  return encode_png(static_cast<int>(pixels.size(1)), static_cast<int>(pixels.size(0)), all);
}

}  // namespace examples
