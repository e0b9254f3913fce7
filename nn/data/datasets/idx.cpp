#include "nn/data/datasets/idx.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error/error.h"
#include "core/io/gzip.h"
#include "core/io/read_file.h"

namespace rush::data::datasets {
namespace {

constexpr size_t kMagicSize = 4;
constexpr size_t kDimSize = 4;
constexpr size_t kReadStep = size_t{64} << 20;

// Reads uncompressed bytes through the interface of GzipReader, so that one parser serves both.
class PlainReader {
 public:
  PlainReader(std::string name, std::span<const uint8_t> content) : name_(std::move(name)), rest_(content) {}

  uint64_t size_limit() const { return rest_.size(); }

  void read(uint8_t* out, size_t size) {
    RUSH_CHECK_IO(size <= rest_.size(), name_, ": truncated: ", size - rest_.size(), " bytes are missing at the end");
    if (size > 0) std::memcpy(out, rest_.data(), size);
    rest_ = rest_.subspan(size);
  }

  void finish() { RUSH_CHECK_IO(rest_.empty(), name_, ": ", rest_.size(), " trailing bytes after the values"); }

 private:
  std::string name_;
  std::span<const uint8_t> rest_;
};

// Bytes per element; 0 for a code that IDX does not define.
size_t element_size(uint8_t code) {
  switch (static_cast<IdxType>(code)) {
    case IdxType::UInt8:
    case IdxType::Int8: return 1;
    case IdxType::Int16: return 2;
    case IdxType::Int32:
    case IdxType::Float32: return 4;
    case IdxType::Float64: return 8;
  }
  return 0;
}

uint32_t load_big_endian(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | uint32_t{p[3]};
}

// Bytes of all values, or IOError if more than the file can hold or the caller allows.
uint64_t checked_size(const std::string& path, const IdxFile& idx, uint64_t limit, uint64_t max_bytes) {
  uint64_t size = element_size(static_cast<uint8_t>(idx.type));
  bool overflow = false;
  for (int64_t dim : idx.dims) overflow |= __builtin_mul_overflow(size, static_cast<uint64_t>(dim), &size);
  RUSH_CHECK_IO(!overflow, path, ": corrupt IDX header: its dimensions multiply to more than 2^64 bytes");
  RUSH_CHECK_IO(size <= limit, path, ": truncated: the IDX header promises ", size,
                " bytes of values, the file cannot hold more than ", limit);
  RUSH_CHECK_IO(size <= max_bytes, path, ": too large: ", size, " bytes of values, at most ", max_bytes,
                " are accepted");
  return size;
}

// Appends `size` bytes to `out`, step by step: a small compressed file that promises gigabytes is found out early.
template <class Reader>
void append(Reader& reader, uint64_t size, std::vector<uint8_t>* out) {
  while (size > 0) {
    const size_t step = std::min<uint64_t>(size, kReadStep), at = out->size();
    out->resize(at + step);
    reader.read(out->data() + at, step);
    size -= step;
  }
}

template <class Reader>
IdxFile parse(const std::string& path, Reader&& reader, uint64_t max_bytes) {
  const uint64_t limit = reader.size_limit();
  IdxFile idx{};
  append(reader, kMagicSize, &idx.content);
  const uint8_t type = idx.content[2], dim_count = idx.content[3];
  RUSH_CHECK_IO(idx.content[0] == 0 && idx.content[1] == 0, path,
                ": not an IDX file: it does not begin with two zeros");
  RUSH_CHECK_IO(element_size(type) > 0, path, ": corrupt IDX header: unknown element type ", int{type});
  RUSH_CHECK_IO(dim_count > 0, path, ": corrupt IDX header: it has no dimensions");
  idx.type = static_cast<IdxType>(type);

  append(reader, kDimSize * dim_count, &idx.content);
  idx.header_size = idx.content.size();
  for (size_t at = kMagicSize; at < idx.header_size; at += kDimSize) {
    idx.dims.push_back(load_big_endian(idx.content.data() + at));
  }

  append(reader, checked_size(path, idx, limit - idx.header_size, max_bytes), &idx.content);
  reader.finish();
  return idx;
}

}  // namespace

IdxFile read_idx(const std::string& path, uint64_t max_bytes) {
  const std::vector<uint8_t> raw = io::read_file(path);
  if (io::GzipReader::recognises(raw)) return parse(path, io::GzipReader(path, raw), max_bytes);
  return parse(path, PlainReader(path, raw), max_bytes);
}

}  // namespace rush::data::datasets
