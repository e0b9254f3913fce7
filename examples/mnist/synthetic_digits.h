// Handwritten-looking digits that the program draws itself, so that the demo runs where MNIST is not at hand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace examples {

inline constexpr int kDigitSize = 28;  // rows and columns of an image
inline constexpr size_t kDigitPixels = size_t{kDigitSize} * kDigitSize;

struct Digits {
  std::vector<uint8_t> pixels;  // (N, 28, 28), grey: 0 is paper, 255 is ink
  std::vector<int64_t> labels;  // (N), 0 to 9
};

/// Draws `count` random digits: strokes in several ways of writing, bent, slanted, turned, scaled and shifted at
/// random, with a pen of random width. As in MNIST, a digit is about 20 pixels high and its centre of mass near the
/// centre. Image i depends on `seed` and i alone: the same on every run, and the first images of a longer set.
Digits draw_digits(size_t count, uint64_t seed);

}  // namespace examples
