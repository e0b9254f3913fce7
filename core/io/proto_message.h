// Protocol buffers' wire format (https://protobuf.dev/programming-guides/encoding), as far as event files and ONNX need
// it.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/little_endian.h"

namespace rush::io {

/// How a field's value lies in the bytes.
enum class ProtoType : uint32_t { Varint = 0, Fixed64 = 1, Length = 2, Fixed32 = 5 };

/// A message under construction. Fields are numbered as in the message's .proto file; each function adds one, or for a
/// repeated field one more of its values.
class ProtoMessage {
 public:
  ProtoMessage& integer(uint32_t field, int64_t value) {
    tag(field, ProtoType::Varint);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  ProtoMessage& float32(uint32_t field, float value) {
    tag(field, ProtoType::Fixed32);
    io::put_little_endian(bytes_, std::bit_cast<uint32_t>(value), 4);
    return *this;
  }
  ProtoMessage& float64(uint32_t field, double value) {
    tag(field, ProtoType::Fixed64);
    io::put_little_endian(bytes_, std::bit_cast<uint64_t>(value), 8);
    return *this;
  }
  /// A string, or bytes.
  ProtoMessage& text(uint32_t field, std::string_view value) {
    tag(field, ProtoType::Length);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  ProtoMessage& message(uint32_t field, const ProtoMessage& value) { return text(field, value.bytes_); }
  /// A packed repeated field.
  ProtoMessage& float64s(uint32_t field, const std::vector<double>& values) {
    std::string packed;
    for (const double value : values) io::put_little_endian(packed, std::bit_cast<uint64_t>(value), 8);
    return text(field, packed);
  }

  /// The encoded message.
  const std::string& bytes() const { return bytes_; }

 private:
  void tag(uint32_t field, ProtoType type) { varint(field << 3 | static_cast<uint32_t>(type)); }
  // Seven bits a byte, the lowest first; the highest bit of a byte says that more follow.
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace rush::io
