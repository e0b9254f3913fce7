#include "examples/png.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <vector>

#include "core/error.h"

using examples::encode_png;
using examples::png_data_uri;

namespace {

uint32_t big_endian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes.at(at + i));
  return value;
}

}  // namespace

TEST_CASE("encode_png: the chunks of the standard, from which the pixels come back") {
  const std::vector<uint8_t> pixels{0, 128, 255, 1, 2, 3};
  const std::string png = encode_png(3, 2, pixels);
  REQUIRE(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");

  std::vector<std::string> names;
  std::string compressed;
  for (size_t at = 8; at < png.size();) {
    const uint32_t size = big_endian(png, at);
    const std::string name_and_data = png.substr(at + 4, 4 + size);
    names.push_back(name_and_data.substr(0, 4));
    if (names.back() == "IHDR") {
      CHECK(name_and_data.substr(4) == std::string("\0\0\0\3\0\0\0\2\x08\0\0\0\0", 13));
    }
    if (names.back() == "IDAT") compressed = name_and_data.substr(4);
    CHECK(big_endian(png, at + 8 + size) == crc32(0, reinterpret_cast<const Bytef*>(name_and_data.data()), size + 4));
    at += 12 + size;
  }
  CHECK(names == std::vector<std::string>{"IHDR", "IDAT", "IEND"});

  std::string rows(8, '\0');
  uLongf size = rows.size();
  REQUIRE(uncompress(reinterpret_cast<Bytef*>(rows.data()), &size, reinterpret_cast<const Bytef*>(compressed.data()),
                     compressed.size()) == Z_OK);
  CHECK(rows == std::string("\0\x00\x80\xff\0\x01\x02\x03", 8));
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
