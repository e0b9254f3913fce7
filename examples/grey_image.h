// A grey picture with labels: pixels, rectangles and small letters of its own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace examples {

/// Whatever is drawn must lie within the picture: all but the constructor throw rush::ValueError otherwise.
class GreyImage {
 public:
  static constexpr int kLetterWidth = 12,
                       kLetterHeight = 16;  // pixels that a character takes, with the space behind it

  GreyImage(int width, int height, uint8_t background);

  /// Draws rows of `width` pixels each, every one as a square of `scale` x `scale`, with the upper left corner at (x,
  /// y).
  void paste(int x, int y, int width, std::span<const uint8_t> pixels, int scale);
  void fill(int x, int y, int width, int height, uint8_t grey);
  /// Writes lower-case letters, digits, "H", "(", ")", "." and spaces, from (x, y) to the right and downwards.
  void write(int x, int y, std::string_view text, uint8_t grey);
  /// The same with the right end at x.
  void write_before(int x, int y, std::string_view text, uint8_t grey);
  /// The same with the middle at x.
  void write_around(int x, int y, std::string_view text, uint8_t grey);

  /// The PNG file.
  std::string png() const;

 private:
  int width_, height_;
  std::vector<uint8_t> pixels_;
};

/// How many pixels `text` takes to the right.
int width_of_text(std::string_view text);

}  // namespace examples
