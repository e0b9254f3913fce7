// InputFile: a regular file that is read in parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/io/file_descriptor.h"

namespace rush::io {

class InputFile {
 public:
  /// Throws IOError (one line that starts with `path`) if it cannot be opened or is no regular file: a directory or an
  /// endless device must not be waited for.
  explicit InputFile(std::string path);

  const std::string& path() const { return path_; }  // as it was given
  /// Bytes in the file when it was opened.
  uint64_t size() const { return size_; }
  /// Copies the `size` bytes from `offset` on into `out`. Throws IOError if they are not there or cannot be read. Safe
  /// to call from several threads.
  void read(uint64_t offset, void* out, size_t size) const;

 private:
  std::string path_;
  FileDescriptor file_;
  uint64_t size_;
};

}  // namespace rush::io
