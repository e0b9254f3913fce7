// Decompresses a gzip file that is held in memory, as far as the caller asks: the reader decides how much is produced,
// so a small hostile file cannot fill the memory. Members that follow one another are one stream, as gzip reads them
// (RFC 1952, section 2.2).
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

  /// Checks that the content ends here: checksums and lengths agree and nothing follows. Throws IOError otherwise.
  void finish();

 private:
  struct Stream;  // zlib's state
  // Whether the compressed bytes are used up; starts on the next member where one has ended and another follows.
  bool at_end();
  // Produces up to `size` bytes; fewer only at the end of the content.
  size_t inflate_some(uint8_t* out, size_t size);

  std::string name_;
  std::span<const uint8_t> compressed_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace rush::io
