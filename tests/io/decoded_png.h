// Reads what encode_png writes, as strictly as the standard (ISO/IEC 15948) allows.
#pragma once

#include <doctest/doctest.h>
#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rush::testing {

struct DecodedPng {
  std::vector<std::string> chunks;  // their names
  size_t width = 0, height = 0, channels = 0;
  std::vector<uint8_t> pixels;  // by rows

  uint8_t at(size_t x, size_t y) const { return pixels.at(y * width + x); }  // of a grey image
};

inline uint32_t big_endian(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes.at(at + i));
  return value;
}

inline DecodedPng decode_png(const std::string& png) {
  REQUIRE(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  DecodedPng out;
  std::string compressed;
  for (size_t at = 8; at < png.size();) {
    const uint32_t size = big_endian(png, at);
    const std::string name_and_data = png.substr(at + 4, 4 + size);
    const std::string name = name_and_data.substr(0, 4), data = name_and_data.substr(4);
    out.chunks.push_back(name);
    if (name == "IHDR") {
      out.width = big_endian(data, 0), out.height = big_endian(data, 4);
      out.channels = 1 + std::string{0, 4, 2, 6}.find(data.at(9));
      REQUIRE(out.channels >= 1);
      CHECK(data[8] == 8);                          // bits
      CHECK(data.substr(10) == std::string(3, 0));  // no interlace
    }
    if (name == "IDAT") compressed = data;
    CHECK(big_endian(png, at + 8 + size) == crc32(0, reinterpret_cast<const Bytef*>(name_and_data.data()), size + 4));
    at += 12 + size;
  }
  const size_t row_size = out.width * out.channels;
  std::string rows((row_size + 1) * out.height, '\xff');
  uLongf size = rows.size();
  REQUIRE(uncompress(reinterpret_cast<Bytef*>(rows.data()), &size, reinterpret_cast<const Bytef*>(compressed.data()),
                     compressed.size()) == Z_OK);
  REQUIRE(size == rows.size());
  for (size_t y = 0; y < out.height; ++y) {
    REQUIRE(rows[y * (row_size + 1)] == '\0');  // filter type "none"
    const auto row = rows.begin() + static_cast<std::ptrdiff_t>(y * (row_size + 1) + 1);
    out.pixels.insert(out.pixels.end(), row, row + static_cast<std::ptrdiff_t>(row_size));
  }
  return out;
}

}  // namespace rush::testing
