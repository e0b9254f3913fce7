#include "examples/mnist/synthetic_digits.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

using examples::Digits;
using examples::draw_digits;
using examples::kDigitPixels;
using examples::kDigitSize;

TEST_CASE("draw_digits: depends on the seed alone, and a longer set begins with a shorter one") {
  Digits a = draw_digits(50, 7), b = draw_digits(80, 7), c = draw_digits(50, 8);
  CHECK(std::equal(a.pixels.begin(), a.pixels.end(), b.pixels.begin()));
  CHECK(std::equal(a.labels.begin(), a.labels.end(), b.labels.begin()));
  CHECK(a.pixels != c.pixels);
  // Neighbouring seeds share no images, as a training and a test set must not.
  for (size_t i = 0; i < 50; ++i) {
    for (size_t j = 0; j < 50; ++j) {
      auto first = a.pixels.begin() + static_cast<std::ptrdiff_t>(i * kDigitPixels);
      auto second = c.pixels.begin() + static_cast<std::ptrdiff_t>(j * kDigitPixels);
      CHECK_FALSE(std::equal(first, first + kDigitPixels, second));
    }
  }
}

TEST_CASE("draw_digits: brightness and position are MNIST's") {
  constexpr size_t count = 2000;
  Digits digits = draw_digits(count, 1);
  std::array<int, 10> labels{};
  for (int64_t label : digits.labels) ++labels.at(static_cast<size_t>(label));
  for (int n : labels) CHECK(n > 130);

  double sum = 0, squares = 0;
  for (uint8_t pixel : digits.pixels) sum += pixel / 255.0, squares += pixel / 255.0 * (pixel / 255.0);
  const double n = static_cast<double>(digits.pixels.size()), mean = sum / n;
  CHECK(mean == doctest::Approx(0.1307).epsilon(0.1));
  CHECK(std::sqrt(squares / n - mean * mean) == doctest::Approx(0.3081).epsilon(0.05));

  for (size_t i = 0; i < count; ++i) {
    double mass = 0, x = 0, y = 0, border = 0;
    for (int row = 0; row < kDigitSize; ++row) {
      for (int column = 0; column < kDigitSize; ++column) {
        const double ink = digits.pixels[i * kDigitPixels + static_cast<size_t>(row * kDigitSize + column)];
        mass += ink, x += ink * (column + .5), y += ink * (row + .5);
        if (row == 0 || column == 0 || row == kDigitSize - 1 || column == kDigitSize - 1) border += ink;
      }
    }
    CAPTURE(i);
    REQUIRE(mass > 20 * 255);
    CHECK(std::abs(x / mass - 14) < 2.5);
    CHECK(std::abs(y / mass - 14) < 2.5);
    CHECK(border < 0.05 * mass);
  }
}

TEST_CASE("draw_digits: the mean images tell the digits apart, so there is something to learn") {
  constexpr size_t train = 2000, test = 500;
  Digits seen = draw_digits(train, 1), unseen = draw_digits(test, 2);
  std::array<std::array<double, kDigitPixels>, 10> means{};
  std::array<double, 10> counts{};
  for (size_t i = 0; i < train; ++i) {
    const size_t label = static_cast<size_t>(seen.labels[i]);
    ++counts[label];
    for (size_t p = 0; p < kDigitPixels; ++p) means[label][p] += seen.pixels[i * kDigitPixels + p];
  }
  size_t right = 0;
  for (size_t i = 0; i < test; ++i) {
    std::array<double, 10> distance{};
    for (size_t d = 0; d < 10; ++d) {
      for (size_t p = 0; p < kDigitPixels; ++p) {
        distance[d] += std::pow(means[d][p] / counts[d] - unseen.pixels[i * kDigitPixels + p], 2);
      }
    }
    right += std::min_element(distance.begin(), distance.end()) - distance.begin() == unseen.labels[i];
  }
  CHECK(right > test * 6 / 10);
}
