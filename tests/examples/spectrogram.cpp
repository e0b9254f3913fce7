// Generated sounds, their mel spectrograms, and that a net learns to tell them apart.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "examples/grey_image.h"
#include "examples/spectrogram/classifier.h"
#include "tests/io/decoded_png.h"

using namespace examples;
using rush::Tensor;

namespace {

double mel_of(double hertz) { return 2595 * std::log10(1 + hertz / 700); }

// A sine of this frequency, as long as a sound, with some noise behind it.
Tensor sine(double hertz) {
  rush::manual_seed(2);
  const Tensor time = rush::arange(kSoundLength, rush::kFloat32) / kSampleRate;
  return ((time * (2 * std::acos(-1.0) * hertz)).sin() + rush::randn({kSoundLength}) * 0.01).unsqueeze(0);
}

}  // namespace

TEST_CASE("mel filters are triangles between neighbouring edges") {
  constexpr int64_t kBands = 5, kFrequencies = 40;
  const Tensor filters = mel_filters(kBands, kFrequencies, kSampleRate);
  REQUIRE(filters.sizes() == rush::IntArrayRef({kBands, kFrequencies}));
  const double step = mel_of(kSampleRate / 2.0) / (kBands + 1);
  const auto edge = [&](int64_t i) { return 700 * (std::pow(10, step * static_cast<double>(i) / 2595) - 1); };
  for (int64_t band = 0; band < kBands; ++band) {
    for (int64_t k = 0; k < kFrequencies; ++k) {
      const double f = static_cast<double>(k) * kSampleRate / 2.0 / (kFrequencies - 1);
      const double low = edge(band), middle = edge(band + 1), high = edge(band + 2);
      const double expected = f < middle ? (f - low) / (middle - low) : (high - f) / (high - middle);
      CHECK(filters[band][k].item<double>() == doctest::Approx(std::max(0.0, expected)).epsilon(1e-4));
    }
  }
  CHECK_THROWS_AS(mel_filters(0, 40, kSampleRate), rush::ValueError);
  CHECK_THROWS_AS(mel_filters(5, 1, kSampleRate), rush::ValueError);
}

TEST_CASE("a tone is loudest in the band of its pitch, however loud it is") {
  const MelSpectrogram spectrogram(kSampleRate, rush::kCPU);
  const double step = mel_of(kSampleRate / 2.0) / (MelSpectrogram::kBands + 1);
  for (const double hertz : {700.0, 1500.0, 3100.0}) {
    const Tensor levels = spectrogram(sine(hertz));
    REQUIRE(levels.sizes() == rush::IntArrayRef({1, MelSpectrogram::kBands, kSoundLength / MelSpectrogram::kHop + 1}));
    const Tensor loudest = levels.select(0, 0).argmax(0);  // the band at each time
    const double band = mel_of(hertz) / step - 1;          // bands are centred at edges 1, 2, ...
    for (int64_t frame = 4; frame + 4 < loudest.numel(); ++frame) {
      CHECK(std::abs(static_cast<double>(loudest[frame].item<int64_t>()) - band) < 0.75);
    }
    CHECK(rush::allclose(spectrogram(sine(hertz) * 7), levels, 1e-3, 1e-3));
  }
}

TEST_CASE("sounds come in the order of their kinds, and are what they are called") {
  rush::manual_seed(3);
  const Sounds sounds = make_sounds(4, rush::kCPU);
  CHECK(sounds.signals.sizes() == rush::IntArrayRef({24, kSoundLength}));
  for (int64_t i = 0; i < 24; ++i) CHECK(sounds.labels[i].item<int64_t>() == i / 4);
  // The loudest band of the beginning and of the end: the same, higher, lower.
  const Tensor levels = MelSpectrogram(kSampleRate, rush::kCPU)(sounds.signals);
  const auto loudest = [&](int64_t sound, int64_t frame) {
    return levels[sound].narrow(1, frame, 4).mean({1}).argmax().item<int64_t>();
  };
  for (int64_t i = 0; i < 4; ++i) {
    CHECK(std::abs(loudest(i, 2) - loudest(i, 58)) <= 1);
    CHECK(loudest(4 + i, 58) > loudest(4 + i, 2));
    CHECK(loudest(8 + i, 58) < loudest(8 + i, 2));
  }
  CHECK_THROWS_AS(make_sounds(0, rush::kCPU), rush::ValueError);
}

TEST_CASE("a net learns to tell the sounds apart") {
  rush::manual_seed(1);
  constexpr int64_t kSteps = 150;
  SoundClassifier classifier(rush::kCPU, 1e-2, kSteps);
  for (int64_t i = 0; i < kSteps; ++i) classifier.step(16);
  const Tensor confusion = classifier.confusion(100);
  CHECK(rush::allclose(confusion.sum(1), rush::ones({6})));
  const double accuracy = confusion.diagonal().mean().item<double>();
  CHECK_MESSAGE(accuracy > 0.95, "accuracy ", accuracy);
}

TEST_CASE("spectrograms are drawn below each other, high above low and loud bright, each beside its name") {
  Tensor two = rush::zeros({2, 8, 5});
  two[0][7][1].fill_(1);
  constexpr std::array<const char*, 2> kNames = {"up", "nothing"};
  const rush::testing::DecodedPng png = rush::testing::decode_png(draw(two, kNames, kSampleRate));
  // The one bright value is the second of the uppermost row, on black: left of it are names and ticks, on white.
  constexpr size_t kScale = 4;
  const size_t left = png.width - 2 * 8 - static_cast<size_t>(width_of_text("time (s)"));
  size_t top = 0;
  while (top < png.height && png.at(left, top) != 0) ++top;
  REQUIRE(top + 2 * 8 * kScale < png.height);
  for (size_t y = top; y < top + 8 * kScale; ++y) {
    for (size_t x = 0; x < 5 * kScale; ++x) {
      const bool bright = y - top < kScale && x / kScale == 1;
      CHECK(png.at(left + x, y) == (bright ? 255 : 0));
    }
  }
  // The ink of a name: "up" is narrower than "nothing".
  const auto width_of_name = [&](size_t picture) {
    size_t width = 0;
    const size_t first = top + picture * (8 * kScale + 14);
    for (size_t y = first; y < first + 8 * kScale; ++y) {
      for (size_t x = 0; x < 8 + 7 * GreyImage::kLetterWidth; ++x)
        width = png.at(x, y) == 0 ? std::max(width, x) : width;
    }
    return width;
  };
  CHECK(width_of_name(0) == 8 + 2 * GreyImage::kLetterWidth - 3);  // but for the space behind the last letter
  CHECK(width_of_name(1) == 8 + 7 * GreyImage::kLetterWidth - 3);
  CHECK_THROWS_AS(draw(two[0], kNames, kSampleRate), rush::ValueError);
  CHECK_THROWS_AS(draw(two.narrow(0, 0, 1), kNames, kSampleRate), rush::ValueError);
}
