// Writes a file so that readers find the old content or the whole new one, never a part, even after a crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/io/file_descriptor.h"

namespace rush::io {

/// A file under construction. Bytes go to a temporary file in the folder of `path`; `commit` flushes them to disk and
/// renames it over `path`. Destroyed without `commit`, it removes the temporary file and `path` stays as it was. Where
/// the file system allows, the temporary file has no name before `commit`. What a process that is killed in `commit`
/// (or, elsewhere, while writing) leaves behind is removed by the next AtomicFile of the same path, and by
/// remove_leftovers. A symbolic link is followed, as by fopen: what it leads to is replaced. The permissions of a file
/// that is replaced are kept.
class AtomicFile {
 public:
  /// Throws IOError if the folder does not exist or cannot be written, or if `path` exists and is no regular file.
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  /// Writes `size` bytes after those written last. Throws IOError (disk full, ...).
  void write(const void* bytes, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }

  /// The next bytes go to `offset`, over what is there. Throws IOError.
  void seek(uint64_t offset);

  /// Makes the new content visible under `path`; nothing may be written afterwards. Throws IOError.
  void commit();

 private:
  std::string path_;            // as the caller gave it, for messages
  std::string target_;          // where links lead
  std::string temporary_path_;  // empty while it has no name, and once renamed
  FileDescriptor file_;
};

/// Writes `content` to `path` through an AtomicFile. Throws IOError.
void write_file_atomically(const std::string& path, std::string_view content);

/// Has the names of files that were made or renamed in `folder` be on disk. Throws IOError, in a line that starts with
/// `path`, if that fails.
void flush_folder(const std::string& path, const std::string& folder);

/// Removes the temporary files that killed processes left in `folder`, whatever they were to become; never that of a
/// live writer, see Note [Leftovers of killed writers]. Throws IOError if the folder cannot be read.
void remove_leftovers(const std::string& folder);

}  // namespace rush::io
