// Protocol buffers' wire format (https://protobuf.dev/programming-guides/encoding), as far as event files and ONNX need
// it.
#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error/error.h"
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

/// Goes through the fields of a message, whose bytes must outlive it: `while (reader.next()) switch (reader.field())`.
/// The bytes are taken for hostile.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : left_(bytes) {}

  /// Goes to the next field; false after the last. Throws IOError when the bytes are no message.
  bool next() {
    if (left_.empty()) return false;
    const uint64_t tag = varint();
    field_ = static_cast<uint32_t>(tag >> 3);
    type_ = static_cast<ProtoType>(tag & 7);
    switch (type_) {
      case ProtoType::Varint: number_ = varint(); break;
      case ProtoType::Fixed64: number_ = fixed(8); break;
      case ProtoType::Fixed32: number_ = fixed(4); break;
      case ProtoType::Length: text_ = take(varint()); break;
      default: RUSH_THROW(IOError, "a field has the unknown wire type ", tag & 7);
    }
    return true;
  }
  uint32_t field() const { return field_; }

  // The value of the field, which must be of that type: they throw IOError for another.
  int64_t integer() const { return static_cast<int64_t>(number(ProtoType::Varint)); }
  float float32() const { return std::bit_cast<float>(static_cast<uint32_t>(number(ProtoType::Fixed32))); }
  /// A string, bytes, or the bytes of a message.
  std::string_view text() const {
    require(ProtoType::Length);
    return text_;
  }
  /// Appends the value of a repeated integer, or all of them where they are packed.
  void append_to(std::vector<int64_t>& list) const {
    if (type_ != ProtoType::Length) return list.push_back(integer());
    for (ProtoReader packed(text_); !packed.left_.empty();) list.push_back(static_cast<int64_t>(packed.varint()));
  }

 private:
  void require(ProtoType type) const { RUSH_CHECK_IO(type_ == type, "field ", field_, " has another type"); }
  uint64_t number(ProtoType type) const {
    require(type);
    return number_;
  }
  std::string_view take(uint64_t size) {
    RUSH_CHECK_IO(size <= left_.size(), "the message is cut off");
    const std::string_view taken = left_.substr(0, static_cast<size_t>(size));
    left_.remove_prefix(taken.size());
    return taken;
  }
  uint64_t fixed(size_t count) {
    return get_little_endian(reinterpret_cast<const uint8_t*>(take(count).data()), count);
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    RUSH_THROW(IOError, "a number has more than 64 bits");
  }

  std::string_view left_, text_;
  uint32_t field_ = 0;
  ProtoType type_ = ProtoType::Varint;
  uint64_t number_ = 0;
};

}  // namespace rush::io
