#include "core/io/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/io/file_descriptor.h"

namespace rush::io {

std::vector<uint8_t> read_file(const std::string& path) {
  // O_NONBLOCK: opening a pipe without a writer would wait for ever; on regular files it changes nothing.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  RUSH_CHECK_IO(file.valid(), path, ": cannot open: ", std::strerror(errno));
  struct stat info;
  RUSH_CHECK_IO(::fstat(file.get(), &info) == 0, path, ": cannot stat: ", std::strerror(errno));
  RUSH_CHECK_IO(S_ISREG(info.st_mode), path, ": not a regular file");

  std::vector<uint8_t> bytes(static_cast<size_t>(info.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    ssize_t got = ::read(file.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    RUSH_CHECK_IO(got >= 0, path, ": cannot read: ", std::strerror(errno));
    RUSH_CHECK_IO(got > 0, path, ": became shorter while it was read");
    done += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace rush::io
