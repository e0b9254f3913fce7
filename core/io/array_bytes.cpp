#include "core/io/array_bytes.h"

#include <algorithm>

namespace rush::io {

std::optional<uint64_t> array_bytes(IntArrayRef sizes, ScalarType dtype) {
  int64_t bytes = element_size(dtype);
  bool overflow = false, empty = false;
  for (const int64_t size : sizes) {
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes);
  }
  if (overflow) return std::nullopt;
  return empty ? 0 : static_cast<uint64_t>(bytes);
}

bool values_valid(const void* bytes, size_t size, ScalarType dtype) {
  const uint8_t* begin = static_cast<const uint8_t*>(bytes);
  return dtype != kBool || std::all_of(begin, begin + size, [](uint8_t byte) { return byte <= 1; });
}

}  // namespace rush::io
