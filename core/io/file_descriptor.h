// FileDescriptor: an open POSIX file, closed when it goes out of scope.
#pragma once

#include <unistd.h>

#include <utility>

namespace rush::io {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (valid()) ::close(fd_);
  }

  bool valid() const { return fd_ >= 0; }  // it holds a file
  int get() const { return fd_; }          // -1 when it holds none
  /// Gives the descriptor up: the caller closes it and sees whether that succeeded.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace rush::io
