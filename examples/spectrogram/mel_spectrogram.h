// The spectrum of a sound over time, with pitches as far apart as they sound.
#pragma once

#include <span>
#include <string>

#include "core/tensor.h"

namespace examples {

/// The triangular filters of `bands` pitches between 0 and sample_rate / 2, equally far apart in mels (2595 log10(1 +
/// f/700); O'Shaughnessy, "Speech communication", 1987), which overlap by half: (bands, frequencies), the frequencies
/// being those of a Fourier transform of 2 (frequencies - 1) values. Throws rush::ValueError for fewer than 1 band or 2
/// frequencies.
rush::Tensor mel_filters(int64_t bands, int64_t frequencies, double sample_rate);

class MelSpectrogram {
 public:
  static constexpr int64_t kFft = 256, kHop = 64, kBands = 32;

  MelSpectrogram(double sample_rate, rush::Device device);

  /// (N, T) -> (N, kBands, T / kHop + 1): the logarithms of the power in each band, less their mean over the sound,
  /// over their deviation; so loudness does not matter.
  rush::Tensor operator()(const rush::Tensor& signals) const;

 private:
  rush::Tensor window_;   // (kFft)
  rush::Tensor filters_;  // (kBands, kFft / 2 + 1)
};

/// Pictures of spectrograms (N, bands, frames) below each other, as a PNG file, each beside its name: time to the
/// right, pitch upwards, loud is bright; with axes in seconds and hertz. Throws rush::ValueError unless there are N
/// names.
std::string draw(const rush::Tensor& spectrograms, std::span<const char* const> names, double sample_rate);

}  // namespace examples
