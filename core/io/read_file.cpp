#include "core/io/read_file.h"

#include "core/io/input_file.h"

namespace rush::io {

std::vector<uint8_t> read_file(const std::string& path) {
  const InputFile file(path);
  std::vector<uint8_t> bytes(static_cast<size_t>(file.size()));
  file.read(0, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace rush::io
