// FileCache: files that took long to make, kept for the next process.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/io/file_descriptor.h"

namespace rush::library {

/// A folder of files in the user's cache: RUSH_CACHE_DIR, else XDG_CACHE_HOME/rushlight, else ~/.cache/rushlight. A
/// file ends with a checksum of what stands before it: one that is damaged counts as missing. A process that asks for
/// an entry while another works on it waits. Nothing here throws because of the folder: where it cannot be made, read
/// or written there is no cache. No entry is removed: the folder may be deleted at any time.
class FileCache {
 public:
  /// `entry` is a folder below it, as "inline/scale-0123", which is made.
  explicit FileCache(const std::string& entry);

  /// What made it unusable, or refused a file, in a line.
  const std::string& reason() const { return reason_; }
  const std::string& folder() const { return folder_; }

  /// What a file of the entry that is there and whole was given. It is found in a folder that is read-only, too.
  std::optional<std::string> read(const std::string& name) const;
  /// Keeps a file: all of it or, where the disk is full, nothing. Whether it is kept.
  bool keep(const std::string& name, std::string_view bytes);
  std::string path_of(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_, reason_;
  io::FileDescriptor lock_;  // this process has the entry to itself as long as this object lives
};

}  // namespace rush::library
