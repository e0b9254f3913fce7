#include "nn/state/temporary_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "core/error/error.h"

namespace rush::serialize {

namespace {
constexpr size_t kBlockSize = size_t{1} << 20;  // of what a reader or writer is asked for at once
}  // namespace

TemporaryFile::TemporaryFile() {
  path_ = (std::filesystem::temp_directory_path() / "rushlight-XXXXXX").string();
  const int descriptor = ::mkstemp(path_.data());
  RUSH_CHECK_IO(descriptor >= 0, path_, ": cannot be created: ", std::generic_category().message(errno));
  ::close(descriptor);
}

TemporaryFile::~TemporaryFile() { std::remove(path_.c_str()); }

void TemporaryFile::copy_to(std::ostream& stream) const {
  std::ifstream file(path_, std::ios::binary);
  stream << file.rdbuf();
  RUSH_CHECK_IO(stream.good() && file.good(), "save: the stream cannot be written to");
}

void TemporaryFile::copy_from(std::istream& stream) const {
  std::ofstream file(path_, std::ios::binary | std::ios::trunc);
  RUSH_CHECK_IO(stream.good(), "load: the stream cannot be read");
  if (stream.peek() != std::istream::traits_type::eof()) file << stream.rdbuf();
  file.close();
  RUSH_CHECK_IO(!stream.bad() && file.good(), path_, ": cannot be written");
}

void TemporaryFile::copy_to(const ByteWriter& writer) const {
  std::ifstream file(path_, std::ios::binary);
  std::vector<char> block(kBlockSize);
  while (file.read(block.data(), kBlockSize) || file.gcount() > 0) {
    const size_t size = static_cast<size_t>(file.gcount());
    RUSH_CHECK_IO(writer(block.data(), size) == size, "save: the writer did not take all bytes");
  }
}

void TemporaryFile::copy_from(const ByteReader& reader, size_t size) const {
  std::ofstream file(path_, std::ios::binary | std::ios::trunc);
  std::vector<char> block(std::min(size, kBlockSize));
  for (size_t position = 0; position < size;) {
    const size_t asked = std::min(size - position, kBlockSize), read = reader(position, block.data(), asked);
    RUSH_CHECK_IO(read > 0, "load: the reader ends after ", position, " of ", size, " bytes");
    RUSH_CHECK_IO(read <= asked, "load: the reader gave ", read, " bytes, and was asked for ", asked);
    file.write(block.data(), static_cast<std::streamsize>(read));
    position += read;
  }
  file.close();
  RUSH_CHECK_IO(file.good(), path_, ": cannot be written");
}

void TemporaryFile::copy_from(const char* data, size_t size) const {
  const auto from_memory = [data](uint64_t position, void* block, size_t part) {
    std::memcpy(block, data + position, part);
    return part;
  };
  copy_from(from_memory, size);
}

}  // namespace rush::serialize
