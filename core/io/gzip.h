// Decompresses a gzip file that is held in memory, as far as the caller asks: the reader decides how much is produced,
// so a small hostile file cannot fill the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace rush::io {

class GzipReader {
 public:
  /// Does the content begin with gzip's magic number?
  static bool recognises(std::span<const uint8_t> content);

  /// `name` begins every message; `compressed` must outlive the reader. Throws IOError if zlib cannot start.
  GzipReader(std::string name, std::span<const uint8_t> compressed);
  ~GzipReader();

  /// No more than this many bytes can be in the whole file, whatever a header inside promises.
  uint64_t size_limit() const;

  /// Writes the next `size` bytes to `out`. Throws IOError if the data are corrupt or end before that.
  void read(uint8_t* out, size_t size);

  /// Checks that the content ends here: checksum and length agree and nothing follows. Throws IOError otherwise.
  void finish();

 private:
  struct Stream;  // zlib's state
  // Produces up to `size` bytes; fewer only at the end of the content.
  size_t inflate_some(uint8_t* out, size_t size);

  std::string name_;
  std::span<const uint8_t> compressed_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace rush::io
