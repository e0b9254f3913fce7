// Writes images as PNG files (ISO/IEC 15948) of 8 bits a channel.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace rush::io {

/// The file of `height` rows of `width` pixels of 1 channel (grey), 2 (grey and alpha), 3 (RGB) or 4 (RGB and alpha).
/// Throws ValueError if there is no pixel or another number of channels, or if `pixels` has another size.
std::string encode_png(int64_t width, int64_t height, int64_t channels, std::span<const uint8_t> pixels);

}  // namespace rush::io
