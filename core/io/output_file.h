// OutputFile: a file that is written in parts, by several processes at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/io/file_descriptor.h"

namespace rush::io {

/// What one process writes of a file. Others write other bytes of it through OutputFiles of their own.
class OutputFile {
 public:
  enum class Begin { Make, Open };
  /// Makes a new file, or opens one that another process has made. Throws IOError, in a line that starts with `path`,
  /// where it is there or is not.
  OutputFile(std::string path, Begin begin);

  /// Writes `size` bytes to byte `offset` and those after it. Throws IOError (disk full, ...).
  void write(uint64_t offset, const void* bytes, size_t size);
  /// Returns when what was written is on disk; nothing may be written afterwards. Throws IOError.
  void finish();

 private:
  std::string path_;
  FileDescriptor file_;
};

}  // namespace rush::io
