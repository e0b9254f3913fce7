#include "core/io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "core/error/error.h"

namespace rush::io {
namespace {

constexpr int kGzipOnly = 15 + 16;          // zlib: a window of 2^15 bytes, a gzip header
constexpr uint64_t kMaxRatio = 1032;        // deflate: 258 bytes from at best two bits
constexpr size_t kChunk = size_t{1} << 30;  // zlib counts in 32 bits

}  // namespace

struct GzipReader::Stream {
  z_stream z{};
  size_t consumed = 0;  // of the compressed bytes
  bool ended = false;   // the member that is read
  ~Stream() { inflateEnd(&z); }
};

bool GzipReader::recognises(std::span<const uint8_t> content) {
  return content.size() >= 2 && content[0] == 0x1f && content[1] == 0x8b;
}

GzipReader::GzipReader(std::string name, std::span<const uint8_t> compressed)
    : name_(std::move(name)), compressed_(compressed), stream_(std::make_unique<Stream>()) {
  RUSH_CHECK_IO(inflateInit2(&stream_->z, kGzipOnly) == Z_OK, name_, ": cannot start zlib");
}

GzipReader::~GzipReader() = default;

uint64_t GzipReader::size_limit() const { return uint64_t{compressed_.size()} * kMaxRatio; }

bool GzipReader::at_end() {
  if (!stream_->ended) return false;
  if (!recognises(compressed_.subspan(stream_->consumed))) return true;
  RUSH_CHECK_IO(inflateReset(&stream_->z) == Z_OK, name_, ": cannot restart zlib");
  stream_->ended = false;
  return false;
}

size_t GzipReader::inflate_some(uint8_t* out, size_t size) {
  z_stream& z = stream_->z;
  size_t produced = 0;
  while (produced < size && !at_end()) {
    uInt offered = static_cast<uInt>(std::min(compressed_.size() - stream_->consumed, kChunk));
    uInt room = static_cast<uInt>(std::min(size - produced, kChunk));
    z.next_in = const_cast<Bytef*>(compressed_.data() + stream_->consumed);  // zlib only reads here
    z.avail_in = offered;
    z.next_out = out + produced;
    z.avail_out = room;

    int status = inflate(&z, Z_NO_FLUSH);
    stream_->consumed += offered - z.avail_in;
    produced += room - z.avail_out;
    if (status == Z_STREAM_END) {
      stream_->ended = true;
    } else if (status == Z_BUF_ERROR) {  // no progress is possible: there is room, so input is missing
      throw IOError(str(name_, ": truncated: the compressed data end early"));
    } else {
      RUSH_CHECK_IO(status == Z_OK, name_, ": corrupt compressed data: ", z.msg ? z.msg : zError(status));
    }
  }
  return produced;
}

void GzipReader::read(uint8_t* out, size_t size) {
  size_t got = inflate_some(out, size);
  RUSH_CHECK_IO(got == size, name_, ": truncated: ", size - got, " bytes are missing at the end");
}

void GzipReader::finish() {
  uint8_t extra;
  RUSH_CHECK_IO(inflate_some(&extra, 1) == 0, name_, ": trailing bytes after the values");
  size_t rest = compressed_.size() - stream_->consumed;
  RUSH_CHECK_IO(rest == 0, name_, ": ", rest, " trailing bytes after the compressed data");
}

}  // namespace rush::io
