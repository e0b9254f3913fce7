// Sounds to tell apart, made of formulas.
#pragma once

#include <array>

#include "core/tensor.h"

namespace examples {

inline constexpr int64_t kSampleRate = 8000, kSoundLength = 4096;  // half a second

/// The kinds of sounds, by their labels: a tone, one that rises, one that falls, one that swells and fades several
/// times a second, a series of clicks, and noise.
inline constexpr std::array<const char*, 6> kSoundNames = {"tone", "rising", "falling", "tremolo", "clicks", "noise"};

struct Sounds {
  rush::Tensor signals;  // (N, kSoundLength)
  rush::Tensor labels;   // (N), places in kSoundNames
};

/// `count` sounds of each kind, in the order of the kinds, of random pitch, speed and loudness, with noise behind them.
/// Random numbers are the device's default generator's.
Sounds make_sounds(int64_t count, rush::Device device);

}  // namespace examples
