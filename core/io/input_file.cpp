#include "core/io/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error/error.h"

namespace rush::io {

// O_NONBLOCK: opening a pipe without a writer would wait for ever; on regular files it changes nothing.
InputFile::InputFile(std::string path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  RUSH_CHECK_IO(file_.valid(), path_, ": cannot open: ", std::strerror(errno));
  struct stat info;
  RUSH_CHECK_IO(::fstat(file_.get(), &info) == 0, path_, ": cannot stat: ", std::strerror(errno));
  RUSH_CHECK_IO(S_ISREG(info.st_mode), path_, ": not a regular file");
  size_ = static_cast<uint64_t>(info.st_size);
}

void InputFile::read(uint64_t offset, void* out, size_t size) const {
  RUSH_CHECK_IO(offset <= size_ && size <= size_ - offset, path_, ": truncated: expected ", size, " bytes from byte ",
                offset, " on, the file has ", size_);
  char* next = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t got = ::pread(file_.get(), next, size, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    RUSH_CHECK_IO(got >= 0, path_, ": cannot read: ", std::strerror(errno));
    RUSH_CHECK_IO(got > 0, path_, ": became shorter while it was read");
    next += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
  }
}

}  // namespace rush::io
