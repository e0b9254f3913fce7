#include "examples/grey_image.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "core/error/error.h"
#include "core/io/png.h"

namespace examples {
namespace {

constexpr int kColumns = 5, kRows = 8, kLetterScale = 2;
static_assert((kColumns + 1) * kLetterScale == GreyImage::kLetterWidth &&
              kRows * kLetterScale == GreyImage::kLetterHeight);

// Columns from the left, each with its uppermost pixel in the lowest bit.
struct Glyph {
  char character;
  std::array<uint8_t, kColumns> columns;
};
constexpr Glyph kGlyphs[] = {
    {'0', {0x3e, 0x51, 0x49, 0x45, 0x3e}}, {'1', {0x00, 0x42, 0x7f, 0x40, 0x00}}, {'2', {0x42, 0x61, 0x51, 0x49, 0x46}},
    {'3', {0x21, 0x41, 0x45, 0x4b, 0x31}}, {'4', {0x18, 0x14, 0x12, 0x7f, 0x10}}, {'5', {0x27, 0x45, 0x45, 0x45, 0x39}},
    {'6', {0x3c, 0x4a, 0x49, 0x49, 0x30}}, {'7', {0x01, 0x71, 0x09, 0x05, 0x03}}, {'8', {0x36, 0x49, 0x49, 0x49, 0x36}},
    {'9', {0x06, 0x49, 0x49, 0x29, 0x1e}}, {'a', {0x20, 0x54, 0x54, 0x54, 0x78}}, {'b', {0x7f, 0x48, 0x44, 0x44, 0x38}},
    {'c', {0x38, 0x44, 0x44, 0x44, 0x20}}, {'d', {0x38, 0x44, 0x44, 0x48, 0x7f}}, {'e', {0x38, 0x54, 0x54, 0x54, 0x18}},
    {'f', {0x08, 0x7e, 0x09, 0x01, 0x02}}, {'g', {0x18, 0xa4, 0xa4, 0xa4, 0x7c}}, {'h', {0x7f, 0x08, 0x04, 0x04, 0x78}},
    {'i', {0x00, 0x44, 0x7d, 0x40, 0x00}}, {'j', {0x40, 0x80, 0x84, 0x7d, 0x00}}, {'k', {0x7f, 0x10, 0x28, 0x44, 0x00}},
    {'l', {0x00, 0x41, 0x7f, 0x40, 0x00}}, {'m', {0x7c, 0x04, 0x18, 0x04, 0x78}}, {'n', {0x7c, 0x08, 0x04, 0x04, 0x78}},
    {'o', {0x38, 0x44, 0x44, 0x44, 0x38}}, {'p', {0xfc, 0x24, 0x24, 0x24, 0x18}}, {'q', {0x18, 0x24, 0x24, 0x24, 0xfc}},
    {'r', {0x7c, 0x08, 0x04, 0x04, 0x08}}, {'s', {0x48, 0x54, 0x54, 0x54, 0x20}}, {'t', {0x04, 0x3f, 0x44, 0x40, 0x20}},
    {'u', {0x3c, 0x40, 0x40, 0x20, 0x7c}}, {'v', {0x1c, 0x20, 0x40, 0x20, 0x1c}}, {'w', {0x3c, 0x40, 0x30, 0x40, 0x3c}},
    {'x', {0x44, 0x28, 0x10, 0x28, 0x44}}, {'y', {0x1c, 0xa0, 0xa0, 0xa0, 0x7c}}, {'z', {0x44, 0x64, 0x54, 0x4c, 0x44}},
    {'H', {0x7f, 0x08, 0x08, 0x08, 0x7f}}, {'(', {0x00, 0x1c, 0x22, 0x41, 0x00}}, {')', {0x00, 0x41, 0x22, 0x1c, 0x00}},
    {'.', {0x00, 0x60, 0x60, 0x00, 0x00}}, {' ', {0x00, 0x00, 0x00, 0x00, 0x00}},
};

const Glyph& glyph_of(char character) {
  const auto found = std::find_if(std::begin(kGlyphs), std::end(kGlyphs),
                                  [character](const Glyph& glyph) { return glyph.character == character; });
  RUSH_CHECK_VALUE(found != std::end(kGlyphs), "GreyImage: there is no letter '", character, "'");
  return *found;
}

}  // namespace

int width_of_text(std::string_view text) { return static_cast<int>(text.size()) * GreyImage::kLetterWidth; }

GreyImage::GreyImage(int width, int height, uint8_t background)
    : width_(width), height_(height), pixels_(static_cast<size_t>(width) * static_cast<size_t>(height), background) {}

void GreyImage::fill(int x, int y, int width, int height, uint8_t grey) {
  RUSH_CHECK_VALUE(x >= 0 && y >= 0 && width >= 0 && height >= 0 && x + width <= width_ && y + height <= height_,
                   "GreyImage: ", width, " x ", height, " pixels at (", x, ", ", y, ") are not within ", width_, " x ",
                   height_);
  for (int row = y; row < y + height; ++row) std::fill_n(pixels_.begin() + row * width_ + x, width, grey);
}

void GreyImage::paste(int x, int y, int width, std::span<const uint8_t> pixels, int scale) {
  for (size_t i = 0; i < pixels.size(); ++i) {
    const int at = static_cast<int>(i);
    fill(x + at % width * scale, y + at / width * scale, scale, scale, pixels[i]);
  }
}

void GreyImage::write(int x, int y, std::string_view text, uint8_t grey) {
  for (const char character : text) {
    const Glyph& glyph = glyph_of(character);
    for (int column = 0; column < kColumns; ++column) {
      for (int row = 0; row < kRows; ++row) {
        if ((glyph.columns[static_cast<size_t>(column)] >> row & 1) == 0) continue;
        fill(x + column * kLetterScale, y + row * kLetterScale, kLetterScale, kLetterScale, grey);
      }
    }
    x += kLetterWidth;
  }
}

void GreyImage::write_before(int x, int y, std::string_view text, uint8_t grey) {
  write(x - width_of_text(text), y, text, grey);
}

void GreyImage::write_around(int x, int y, std::string_view text, uint8_t grey) {
  write(x - width_of_text(text) / 2, y, text, grey);
}

std::string GreyImage::png() const { return rush::io::encode_png(width_, height_, 1, pixels_); }

}  // namespace examples
