#include "examples/spectrogram/mel_spectrogram.h"

#include <algorithm>
#include <cmath>

#include "core/ops/fft/stft.h"
#include "core/ops/fft/window.h"
#include "examples/grey_image.h"
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

namespace {

// Pixels. Each spectrogram has its name and its frequencies to the left, and all share the axis of time below.
constexpr int kScale = 4, kGap = 14, kTick = 6, kSpace = 8;
constexpr int kFrequencyWidth = 4 * GreyImage::kLetterWidth;  // "2000"
constexpr const char* kTimeTitle = "time (s)";
constexpr uint8_t kPaper = 255, kInk = 0, kFaint = 110;

int centre(double value) { return static_cast<int>(std::lround((value + 0.5) * kScale)); }

// Loud is bright, the highest band comes first: (N, bands, frames) of uint8.
Tensor to_pixels(const Tensor& spectrograms) {
  Tensor levels = spectrograms.detach().cpu().flip({1});
  levels = levels - levels.amin({1, 2}, true);
  levels = levels / levels.amax({1, 2}, true).clamp_min(1e-5) * 255;
  return levels.round().to(rush::kUInt8).contiguous();
}

// Ticks with their hertz to the left of the picture whose upper left corner is (x, y).
void draw_frequencies(GreyImage& image, int x, int y, int bands, double sample_rate) {
  for (const int hertz : {250, 500, 1000, 2000, 3000}) {
    const double band = mels(hertz) / mels(sample_rate / 2) * (bands + 1) - 1;
    if (band < 0 || band > bands - 1) continue;
    const int at = y + centre(bands - 1 - band);
    image.fill(x - kTick, at, kTick, 1, kInk);
    image.write_before(x - kTick - kSpace / 2, at - GreyImage::kLetterHeight / 2, rush::str(hertz), kFaint);
  }
}

// As wide as the spectrograms, and wide enough for its title.
int width_of_times(int frames) { return std::max(frames * kScale, width_of_text(kTimeTitle)); }

void draw_times(GreyImage& image, int x, int y, int frames, double frames_per_second) {
  for (int tenths = 0; tenths * frames_per_second / 10 <= frames - 1; ++tenths) {
    const int at = x + centre(tenths * frames_per_second / 10);
    image.fill(at, y, 1, kTick, kInk);
    image.write_around(at, y + kTick + kSpace / 2, rush::str(tenths / 10, ".", tenths % 10), kFaint);
  }
  const int below = y + kTick + kSpace / 2 + GreyImage::kLetterHeight + kSpace;
  image.write_around(x + width_of_times(frames) / 2, below, kTimeTitle, kFaint);
}

}  // namespace

std::string draw(const Tensor& spectrograms, std::span<const char* const> names, double sample_rate) {
  RUSH_CHECK_VALUE(
      spectrograms.dim() == 3 && spectrograms.numel() > 0 && spectrograms.size(0) == static_cast<int64_t>(names.size()),
      "draw: expected spectrograms (", names.size(), ", bands, frames), got shape ", spectrograms.sizes());
  const Tensor pixels = to_pixels(spectrograms);
  const int bands = static_cast<int>(pixels.size(1)), frames = static_cast<int>(pixels.size(2));
  int names_width = 0;
  for (const char* name : names) names_width = std::max(names_width, width_of_text(name));
  const int left = kSpace + names_width + kSpace + kFrequencyWidth + kSpace + kTick, row = bands * kScale + kGap;
  const int top = kSpace + GreyImage::kLetterHeight + kSpace,
            bottom = top + static_cast<int>(names.size()) * row - kGap;
  GreyImage image(left + width_of_times(frames) + 2 * kSpace,
                  bottom + kTick + 2 * (GreyImage::kLetterHeight + kSpace) + kSpace / 2, kPaper);
  image.write_before(left - kTick - kSpace / 2, kSpace, "Hz", kFaint);
  const auto size = static_cast<size_t>(bands) * static_cast<size_t>(frames);
  for (size_t i = 0; i < names.size(); ++i) {
    const int y = top + static_cast<int>(i) * row;
    image.write(kSpace, y + (bands * kScale - GreyImage::kLetterHeight) / 2, names[i], kInk);
    draw_frequencies(image, left, y, bands, sample_rate);
    image.paste(left, y, frames, {pixels.data_ptr<uint8_t>() + i * size, size}, kScale);
  }
  draw_times(image, left, bottom, frames, sample_rate / MelSpectrogram::kHop);
  return image.png();
}

}  // namespace examples
