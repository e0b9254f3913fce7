// Cubins of earlier runs, in a folder.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "backends/cuda/jit/source.h"

namespace rush::cuda::jit {

// Note [The cache of cubins]
// The folder is RUSH_CACHE_DIR, else rushlight in XDG_CACHE_HOME, else ~/.cache/rushlight. An entry is a file named by
// the MD5 digest of its key, which is all that the machine code follows from: source, options, architecture, NVRTC's
// version and the library's headers. In the file stand the key, the symbols and the image, behind a
// digest of them; one that is cut off, changed, or of another key with the same digest is not there, and is written
// again. It is written as a temporary file and renamed, so that processes that share the folder find whole entries. A
// folder that is missing, full or read-only costs the time of compiling. No entry is removed: the folder may be deleted
// at any time.
class CubinCache {
 public:
  // Keeps nothing where `folder` is empty. The folder is made when the first entry is stored.
  explicit CubinCache(std::string folder) : folder_(std::move(folder)) {}
  // That of the environment, which is read each time.
  static CubinCache of_environment();

  // None where there is no such entry, or a damaged one. Throws only bad_alloc.
  std::optional<Cubin> find(std::string_view key) const;
  // Whether it was written. Throws only bad_alloc.
  bool store(std::string_view key, const Cubin& cubin) const;

  // The file of an entry.
  std::string path_of(std::string_view key) const;

 private:
  std::string folder_;
};

}  // namespace rush::cuda::jit
