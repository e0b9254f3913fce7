#include "core/io/png.h"

#include <zlib.h>

#include <string_view>

#include "core/error/error.h"
#include "core/io/crc32.h"

namespace rush::io {
namespace {

void append_big_endian(std::string* out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) *out += static_cast<char>(value >> shift);
}

// A chunk: length, name, data, and the CRC of name and data.
void append_chunk(std::string* png, std::string_view name, std::string_view data) {
  append_big_endian(png, static_cast<uint32_t>(data.size()));
  Crc32 sum;
  sum.update(name.data(), name.size());
  sum.update(data.data(), data.size());
  png->append(name).append(data);
  append_big_endian(png, sum.value());
}

std::string compress_rows(size_t row_size, std::span<const uint8_t> pixels) {
  std::string rows;
  for (size_t at = 0; at < pixels.size(); at += row_size) {
    rows += '\0';  // filter type "none"
    rows.append(reinterpret_cast<const char*>(pixels.data() + at), row_size);
  }
  uLongf size = compressBound(static_cast<uLong>(rows.size()));
  std::string out(size, '\0');
  int status = compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
                         static_cast<uLong>(rows.size()), Z_BEST_COMPRESSION);
  RUSH_CHECK(status == Z_OK, "encode_png: zlib failed: ", zError(status));
  out.resize(size);
  return out;
}

}  // namespace

std::string encode_png(int64_t width, int64_t height, int64_t channels, std::span<const uint8_t> pixels) {
  constexpr int64_t kLongest = 1 << 20;  // so that no product below overflows
  RUSH_CHECK_VALUE(0 < width && width <= kLongest && 0 < height && height <= kLongest && 0 < channels &&
                       channels <= 4 && pixels.size() == static_cast<size_t>(width * height * channels),
                   "encode_png: ", pixels.size(), " values for an image of ", width, " x ", height, " pixels of ",
                   channels, channels == 1 ? " channel" : " channels");
  constexpr char kColourTypes[] = {0, 4, 2, 6};  // by the number of channels, from 1 on
  std::string header;
  append_big_endian(&header, static_cast<uint32_t>(width));
  append_big_endian(&header, static_cast<uint32_t>(height));
  header += '\x08';  // bits
  header += kColourTypes[channels - 1];
  header.append(3, '\0');  // the only defined compression and filter, no interlace

  std::string png = "\x89PNG\r\n\x1a\n";
  append_chunk(&png, "IHDR", header);
  append_chunk(&png, "IDAT", compress_rows(static_cast<size_t>(width * channels), pixels));
  append_chunk(&png, "IEND", "");
  return png;
}

}  // namespace rush::io
