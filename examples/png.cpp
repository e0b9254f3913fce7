#include "examples/png.h"

#include <zlib.h>

#include <string_view>

#include "core/error/error.h"

namespace examples {
namespace {

void append_big_endian(std::string* out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) *out += static_cast<char>(value >> shift);
}

// A chunk: length, name, data, and the CRC of name and data.
void append_chunk(std::string* png, std::string_view name, std::string_view data) {
  append_big_endian(png, static_cast<uint32_t>(data.size()));
  const size_t start = png->size();
  png->append(name).append(data);
  const Bytef* covered = reinterpret_cast<const Bytef*>(png->data() + start);
  append_big_endian(png, static_cast<uint32_t>(crc32(0, covered, static_cast<uInt>(png->size() - start))));
}

std::string compress_rows(size_t width, std::span<const uint8_t> pixels) {
  std::string rows;
  for (size_t at = 0; at < pixels.size(); at += width) {
    rows += '\0';  // filter type "none"
    rows.append(reinterpret_cast<const char*>(pixels.data() + at), width);
  }
  uLongf size = compressBound(static_cast<uLong>(rows.size()));
  std::string out(size, '\0');
  int status = compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
                         static_cast<uLong>(rows.size()), Z_BEST_COMPRESSION);
  RUSH_CHECK(status == Z_OK, "encode_png: zlib failed: ", zError(status));
  out.resize(size);
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;  // 24 bits: four characters of six
    for (size_t i = 0; i < 3; ++i) {
      group = group << 8 | (at + i < bytes.size() ? static_cast<uint8_t>(bytes[at + i]) : 0u);
    }
    for (int shift = 18; shift >= 0; shift -= 6) out += alphabet[group >> shift & 63];
  }
  const size_t padding = (3 - bytes.size() % 3) % 3;
  out.replace(out.size() - padding, padding, padding, '=');
  return out;
}

}  // namespace

std::string encode_png(int width, int height, std::span<const uint8_t> pixels) {
  RUSH_CHECK_VALUE(width > 0 && height > 0 && pixels.size() == static_cast<size_t>(width) * static_cast<size_t>(height),
                   "encode_png: ", pixels.size(), " pixels for an image of ", width, " x ", height);
  std::string header;
  append_big_endian(&header, static_cast<uint32_t>(width));
  append_big_endian(&header, static_cast<uint32_t>(height));
  header.append("\x08\x00\x00\x00\x00", 5);  // 8 bits, grey, and the only defined compression, filter, no interlace

  std::string png = "\x89PNG\r\n\x1a\n";
  append_chunk(&png, "IHDR", header);
  append_chunk(&png, "IDAT", compress_rows(static_cast<size_t>(width), pixels));
  append_chunk(&png, "IEND", "");
  return png;
}

std::string png_data_uri(int width, int height, std::span<const uint8_t> pixels) {
  return "data:image/png;base64," + base64(encode_png(width, height, pixels));
}

}  // namespace examples
