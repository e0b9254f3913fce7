// ZIP archives through libzip, held to more than it promises by itself: see Note [Hostile archives] in zip_reader.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/io/byte_source.h"

namespace rush::io {

/// An open archive, taken for hostile.
class ZipReader {
 public:
  struct Entry {
    std::string name;
    uint64_t size = 0;  // unpacked
  };

  /// `kind` is what the file should be, for errors: "an npz file". Throws IOError, one line that starts with `path`, if
  /// it cannot be read or is no valid archive, and NotImplementedError for encryption, for an archive of several files
  /// and for a compression other than deflate.
  ZipReader(std::string path, const char* kind);
  ~ZipReader();

  const std::vector<Entry>& entries() const { return entries_; }
  /// The bytes of the archive itself, and of all entries unpacked.
  uint64_t packed_size() const;
  uint64_t unpacked_size() const;
  /// The bytes of entry `index`, to be read before another one is opened; must not outlive this. Reading the last of
  /// them compares the checksum, and throws IOError if the entry holds more or shares bytes of the file with another.
  std::unique_ptr<ByteSource> open(size_t index);

 private:
  struct Archive;
  class EntrySource;
  std::unique_ptr<Archive> archive_;
  std::vector<Entry> entries_;
};

/// Writes an archive: the old file or the whole new one is there, never a part. Equal contents make equal files.
class ZipWriter {
 public:
  /// Throws IOError, as AtomicFile does.
  explicit ZipWriter(std::string path);
  ~ZipWriter();

  /// Adds an entry; `content` is read by `commit`. Throws ValueError for a name that is no UTF-8, is too long or is
  /// there already.
  void add(const std::string& name, std::unique_ptr<ByteSource> content, bool deflated);
  /// Writes the archive and makes it visible. Throws IOError, and what reading a content throws.
  void commit();

 private:
  struct Archive;
  std::unique_ptr<Archive> archive_;
};

}  // namespace rush::io
