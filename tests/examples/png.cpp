#include "examples/png.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/error/error.h"
#include "tests/examples/decoded_png.h"

using examples::encode_png;
using examples::png_data_uri;

TEST_CASE("encode_png: the chunks of the standard, from which the pixels come back") {
  const std::vector<uint8_t> pixels{0, 128, 255, 1, 2, 3};
  const examples::DecodedPng png = examples::decode_png(encode_png(3, 2, pixels));
  CHECK(png.chunks == std::vector<std::string>{"IHDR", "IDAT", "IEND"});
  CHECK(png.width == 3);
  CHECK(png.height == 2);
  CHECK(png.pixels == pixels);
}

TEST_CASE("encode_png: sizes that do not match the pixels are a ValueError") {
  const std::vector<uint8_t> pixels(6);
  CHECK_THROWS_WITH_AS(encode_png(2, 2, pixels), "encode_png: 6 pixels for an image of 2 x 2", rush::ValueError);
  CHECK_THROWS_AS(encode_png(0, 0, {}), rush::ValueError);
  CHECK_THROWS_AS(encode_png(-2, -3, pixels), rush::ValueError);
}

TEST_CASE("png_data_uri: base64 of the file") {
  // A PNG begins with these eight bytes, and "iVBORw0KGgo" is what they are in base64.
  const std::string uri = png_data_uri(1, 1, std::vector<uint8_t>{7});
  CHECK(uri.starts_with("data:image/png;base64,iVBORw0KGgo"));
  CHECK((uri.size() - std::string("data:image/png;base64,").size()) % 4 == 0);
}
