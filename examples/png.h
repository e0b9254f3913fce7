// Grey images as PNG: small enough to embed in a page.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace examples {

/// Encodes `height` rows of `width` 8-bit grey pixels as a PNG file (ISO/IEC 15948).
/// Throws rush::ValueError if the sizes are not positive or do not match the number of pixels.
std::string encode_png(int width, int height, std::span<const uint8_t> pixels);

/// The same as a `data:` URI, for the `src` of an HTML image.
std::string png_data_uri(int width, int height, std::span<const uint8_t> pixels);

}  // namespace examples
