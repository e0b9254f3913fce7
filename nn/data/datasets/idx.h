// The IDX format of the MNIST files: a big-endian header (two zero bytes, the element type, the number of dimensions,
// each dimension as 32 bits), then the values in row-major order. Described at http://yann.lecun.com/exdb/mnist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace rush::data::datasets {

/// Element types, numbered as in the third byte of the file. Values of several bytes are big-endian.
enum class IdxType : uint8_t { UInt8 = 0x08, Int8 = 0x09, Int16 = 0x0B, Int32 = 0x0C, Float32 = 0x0D, Float64 = 0x0E };

struct IdxFile {
  IdxType type;
  std::vector<int64_t> dims;     // at least one
  std::vector<uint8_t> content;  // the whole file, decompressed: what a published checksum covers
  size_t header_size;            // bytes of `content` before the values

  /// The values: product of `dims` elements, in row-major order.
  std::span<const uint8_t> values() const { return std::span(content).subspan(header_size); }
};

/// Reads an IDX file, plain or compressed with gzip (told apart by content, not by name).
/// The file is taken for hostile: memory grows with the bytes that are really there, up to `max_bytes` of values.
/// Throws IOError, in one line that starts with `path`, if the file cannot be read, is no IDX file, is larger than
/// `max_bytes`, or has fewer or more bytes than its header says.
IdxFile read_idx(const std::string& path, uint64_t max_bytes = uint64_t{4} << 30);

}  // namespace rush::data::datasets
