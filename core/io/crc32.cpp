#include "core/io/crc32.h"

#include <zlib.h>

namespace rush::io {

void Crc32::update(const void* bytes, size_t size) {
  if (size == 0) return;  // zlib takes a null pointer for the wish to start over
  value_ = static_cast<uint32_t>(crc32_z(value_, static_cast<const Bytef*>(bytes), size));
}

}  // namespace rush::io
