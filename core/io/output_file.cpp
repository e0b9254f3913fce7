#include "core/io/output_file.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error/error.h"

namespace rush::io {

OutputFile::OutputFile(std::string path, Begin begin) : path_(std::move(path)) {
  const int flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | (begin == Begin::Make ? O_CREAT | O_EXCL : 0);
  file_ = FileDescriptor(::open(path_.c_str(), flags, 0666));  // less the process's umask
  RUSH_CHECK_IO(file_.valid(), path_,
                begin == Begin::Make ? ": cannot make: " : ": cannot open: ", std::strerror(errno));
}

void OutputFile::write(uint64_t offset, const void* bytes, size_t size) {
  const char* next = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t done = ::pwrite(file_.get(), next, size, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    RUSH_CHECK_IO(done >= 0, path_, ": cannot write: ", std::strerror(errno));
    next += done;
    offset += static_cast<uint64_t>(done);
    size -= static_cast<size_t>(done);
  }
}

void OutputFile::finish() {
  RUSH_CHECK_IO(::fsync(file_.get()) == 0, path_, ": cannot flush to disk: ", std::strerror(errno));
  RUSH_CHECK_IO(::close(file_.release()) == 0, path_, ": cannot close: ", std::strerror(errno));
}

}  // namespace rush::io
