#include "core/io/png.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/error/error.h"
#include "tests/io/decoded_png.h"

using rush::io::encode_png;

TEST_CASE("encode_png: the chunks of the standard, from which the pixels come back") {
  const std::vector<uint8_t> pixels{0, 128, 255, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (const int64_t channels : {1, 2, 3, 4}) {
    const rush::testing::DecodedPng png = rush::testing::decode_png(encode_png(
        3, 4 / channels, channels, std::span(pixels).first(static_cast<size_t>(3 * (4 / channels) * channels))));
    CHECK(png.chunks == std::vector<std::string>{"IHDR", "IDAT", "IEND"});
    CHECK(png.width == 3);
    CHECK(png.height == static_cast<size_t>(4 / channels));
    CHECK(png.channels == static_cast<size_t>(channels));
    CHECK(std::equal(png.pixels.begin(), png.pixels.end(), pixels.begin()));
  }
}

TEST_CASE("encode_png: sizes that do not match the pixels are a ValueError") {
  const std::vector<uint8_t> pixels(6);
  CHECK_THROWS_WITH_AS(encode_png(2, 2, 1, pixels), "encode_png: 6 values for an image of 2 x 2 pixels of 1 channel",
                       rush::ValueError);
  CHECK_THROWS_AS(encode_png(0, 0, 1, {}), rush::ValueError);
  CHECK_THROWS_AS(encode_png(-2, -3, 1, pixels), rush::ValueError);
  CHECK_THROWS_AS(encode_png(1, 1, 6, pixels), rush::ValueError);
  CHECK_THROWS_AS(encode_png(int64_t{1} << 62, 4, 1, {}), rush::ValueError);  // a product of 0 in 64 bits
}
