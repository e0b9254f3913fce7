// ZIP archives (PKWARE's APPNOTE 6.3), as far as .npz files need them: entries stored or deflated, of any size.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/atomic_file.h"
#include "core/io/byte_source.h"
#include "core/io/input_file.h"

namespace rush::io {

/// An open archive, taken for hostile: its directory is believed only when every entry lies inside the file, overlaps
/// no other and unpacks to no more than its compressed size allows.
class ZipReader {
 public:
  struct Entry {
    std::string name;
    uint64_t size = 0, compressed_size = 0;
    uint64_t header = 0, data = 0;  // where its local header and its data begin
    uint32_t crc = 0;
    bool deflated = false;
  };

  /// Throws IOError, one line that starts with `path`, if it cannot be read or is no valid archive, and
  /// NotImplementedError for encryption, for an archive of several files and for a compression other than deflate.
  explicit ZipReader(std::string path);

  const std::vector<Entry>& entries() const { return entries_; }
  /// The entry's bytes; must not outlive this. Reading the last of them compares the checksum.
  std::unique_ptr<ByteSource> open(const Entry& entry) const;

 private:
  struct Directory {
    uint64_t offset, size, count;
  };
  Directory find_directory() const;
  void read_directory(const Directory& directory);
  void locate_data(Entry& entry, uint64_t directory_offset) const;
  void check_overlaps() const;

  InputFile file_;
  std::vector<Entry> entries_;
};

/// Writes an archive: the old file or the whole new one is there, never a part. Every size stands in 64 bits (the
/// "zip64" fields), so that big entries are no special case.
class ZipWriter {
 public:
  /// Throws IOError, as AtomicFile does.
  explicit ZipWriter(std::string path) : file_(std::move(path)) {}

  /// Adds an entry that consists of `header` and then the `size` bytes from `data` on. Throws ValueError for a name
  /// that is too long, and IOError.
  void add(std::string_view name, std::string_view header, const void* data, size_t size, bool deflated);
  /// Writes the directory and makes the archive visible. Throws IOError.
  void commit();

 private:
  void write(std::string_view bytes);

  AtomicFile file_;
  uint64_t position_ = 0, count_ = 0;
  std::string directory_;
};

}  // namespace rush::io
