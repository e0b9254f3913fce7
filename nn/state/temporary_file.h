// TemporaryFile: a file that exists for as long as an object; readers and writers of files serve streams by it.
#pragma once
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>

namespace rush::serialize {

/// A program's own place for bytes: takes `size` bytes, in order, and returns how many it took.
using ByteWriter = std::function<size_t(const void* data, size_t size)>;
/// A program's own source of bytes: reads `size` bytes at `position` and returns how many it read.
using ByteReader = std::function<size_t(uint64_t position, void* data, size_t size)>;

class TemporaryFile {
 public:
  /// An empty file in the system's folder of temporary files. Throws IOError.
  TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();

  const std::string& path() const { return path_; }  // where the file is
  /// All its bytes. Throws IOError when the stream does not take them.
  void copy_to(std::ostream& stream) const;
  void copy_to(const ByteWriter& writer) const;
  /// The rest of the stream. Throws IOError when that cannot be read or written.
  void copy_from(std::istream& stream) const;
  /// So many bytes of a source or of memory. Throws IOError when there are fewer.
  void copy_from(const ByteReader& reader, size_t size) const;
  void copy_from(const char* data, size_t size) const;

 private:
  std::string path_;
};

}  // namespace rush::serialize
