// Bytes that are read in order: a file, or what an archive's entry unpacks to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/io/input_file.h"

namespace rush::io {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Copies the next `size` bytes to `out`. Throws IOError if they are not there, or are not those that were written.
  virtual void read(void* out, size_t size) = 0;
  /// How many bytes are left.
  virtual uint64_t left() const = 0;
};

/// Bytes in memory.
class BytesSource final : public ByteSource {
 public:
  explicit BytesSource(std::string bytes) : bytes_(std::move(bytes)) {}
  void read(void* out, size_t size) override { position_ += bytes_.copy(static_cast<char*>(out), size, position_); }
  uint64_t left() const override { return bytes_.size() - position_; }

 private:
  std::string bytes_;
  size_t position_ = 0;
};

/// A file from its beginning to its end.
class FileSource final : public ByteSource {
 public:
  explicit FileSource(std::string path) : file_(std::move(path)) {}
  void read(void* out, size_t size) override {
    file_.read(position_, out, size);
    position_ += size;
  }
  uint64_t left() const override { return file_.size() - position_; }

 private:
  InputFile file_;
  uint64_t position_ = 0;
};

}  // namespace rush::io
