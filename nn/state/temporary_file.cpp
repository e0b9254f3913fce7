#include "nn/state/temporary_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "core/error/error.h"

namespace rush::serialize {

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

}  // namespace rush::serialize
