#include "examples/spectrogram/sounds.h"

#include <cmath>

#include "rushlight.h"

namespace examples {
namespace {

using rush::Tensor;

constexpr double kTwoPi = 6.283185307179586;
constexpr double kSeconds = static_cast<double>(kSoundLength) / kSampleRate;

// What the formulas are made of: times (1, T), and random numbers (N, 1).
struct Ingredients {
  int64_t count;
  rush::TensorOptions options;
  Tensor time;

  Ingredients(int64_t count, rush::Device device)
      : count(count),
        options(rush::TensorOptions(rush::kFloat32).device(device)),
        time(rush::arange(kSoundLength, options).div(kSampleRate).view({1, kSoundLength})) {}

  Tensor between(double low, double high) const { return rush::rand({count, 1}, options) * (high - low) + low; }
  // As ears hear it: equal ratios are equally likely.
  Tensor pitch(double low, double high) const { return between(std::log(low), std::log(high)).exp(); }
};

// A sine whose frequency goes from `from` to `to` hertz, (N, 1) each, at a steady pace: its phase is the integral.
Tensor sweep(const Ingredients& in, const Tensor& from, const Tensor& to) {
  const Tensor cycles = from * in.time + (to - from) * in.time.square() / (2 * kSeconds);
  return ((cycles + in.between(0, 1)) * kTwoPi).sin();
}

Tensor tone(const Ingredients& in) {
  const Tensor pitch = in.pitch(200, 3000);
  return sweep(in, pitch, pitch);
}
Tensor rising(const Ingredients& in) {
  const Tensor from = in.pitch(200, 1500);
  return sweep(in, from, from * in.between(1.3, 2.5));
}
Tensor falling(const Ingredients& in) {
  const Tensor to = in.pitch(200, 1500);
  return sweep(in, to * in.between(1.3, 2.5), to);
}
Tensor tremolo(const Ingredients& in) {
  const Tensor swell = ((in.time * in.between(6, 14) + in.between(0, 1)) * kTwoPi).sin();
  return tone(in) * (swell + 1) / 2;
}
Tensor clicks(const Ingredients& in) {
  const Tensor since = (in.time * in.between(8, 30) + in.between(0, 1)).frac();  // of the time between two clicks
  return rush::randn({in.count, kSoundLength}, in.options) * (since * -40).exp() * 2;
}
Tensor noise(const Ingredients& in) { return rush::randn({in.count, kSoundLength}, in.options) * 0.7; }

}  // namespace

Sounds make_sounds(int64_t count, rush::Device device) {
  RUSH_CHECK_VALUE(count > 0, "make_sounds: expected a positive number of sounds, got ", count);
  const Ingredients in(count, device);
  const Tensor pure = rush::cat({tone(in), rising(in), falling(in), tremolo(in), clicks(in), noise(in)});
  const int64_t all = pure.size(0);
  const Tensor loudness = (rush::rand({all, 1}, in.options) * -3).exp();
  const Tensor behind = rush::randn({all, kSoundLength}, in.options) * 0.1;
  const Tensor kinds =
      rush::arange(static_cast<int64_t>(kSoundNames.size()), rush::TensorOptions(rush::kLong).device(device));
  return {(pure + behind) * loudness, kinds.repeat_interleave(count)};
}

}  // namespace examples
