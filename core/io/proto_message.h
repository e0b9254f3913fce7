// Protocol buffers' wire format (https://protobuf.dev/programming-guides/encoding), as far as event files and ONNX need
// it.
#pragma once
#include <algorithm>
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

/// The fields of a message, whose bytes must outlive it and are taken for hostile. Of a field that is given several
/// times the last counts, unless it is asked for as a list; a field must be of the type that it is asked for as, else
/// IOError is thrown.
class ProtoFields {
 public:
  /// Throws IOError when the bytes are no message.
  explicit ProtoFields(std::string_view bytes) {
    while (!bytes.empty()) fields_.push_back(next(bytes));
  }

  bool has(uint32_t number) const { return last(number) != nullptr; }
  int64_t integer(uint32_t number, int64_t otherwise = 0) const {
    const Field* field = last(number);
    return field ? static_cast<int64_t>(field->as(ProtoType::Varint).bits) : otherwise;
  }
  float float32(uint32_t number) const {
    const Field* field = last(number);
    return field ? std::bit_cast<float>(static_cast<uint32_t>(field->as(ProtoType::Fixed32).bits)) : 0;
  }
  /// A string, bytes, or the bytes of a message.
  std::string_view text(uint32_t number) const {
    const Field* field = last(number);
    return field ? field->as(ProtoType::Length).text : std::string_view();
  }
  std::vector<std::string_view> texts(uint32_t number) const {
    std::vector<std::string_view> all;
    for (const Field& each : fields_) {
      if (each.number == number) all.push_back(each.as(ProtoType::Length).text);
    }
    return all;
  }
  /// A repeated integer, packed or not.
  std::vector<int64_t> integers(uint32_t number) const {
    std::vector<int64_t> all;
    for (const Field& each : fields_) {
      if (each.number != number) continue;
      if (each.type != ProtoType::Length) all.push_back(static_cast<int64_t>(each.as(ProtoType::Varint).bits));
      for (std::string_view left = each.text; !left.empty();) all.push_back(static_cast<int64_t>(varint(left)));
    }
    return all;
  }

  /// A repeated float, packed or not.
  std::vector<float> float32s(uint32_t number) const {
    std::vector<float> all;
    const auto add = [&](uint64_t bits) { all.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits))); };
    for (const Field& each : fields_) {
      if (each.number != number) continue;
      if (each.type != ProtoType::Length) add(each.as(ProtoType::Fixed32).bits);
      for (std::string_view left = each.text; !left.empty();) add(fixed(left, 4));
    }
    return all;
  }

 private:
  struct Field {
    uint32_t number;
    ProtoType type;
    uint64_t bits = 0;           // of a number
    std::string_view text = {};  // of Length
    const Field& as(ProtoType expected) const {
      RUSH_CHECK_IO(type == expected, "field ", number, " has another type");
      return *this;
    }
  };

  const Field* last(uint32_t number) const {
    const auto found =
        std::find_if(fields_.rbegin(), fields_.rend(), [&](const Field& f) { return f.number == number; });
    return found == fields_.rend() ? nullptr : &*found;
  }

  // These take what they read off the front.
  static Field next(std::string_view& left) {
    const uint64_t tag = varint(left);
    Field field{static_cast<uint32_t>(tag >> 3), static_cast<ProtoType>(tag & 7)};
    switch (field.type) {
      case ProtoType::Varint: field.bits = varint(left); break;
      case ProtoType::Fixed64: field.bits = fixed(left, 8); break;
      case ProtoType::Fixed32: field.bits = fixed(left, 4); break;
      case ProtoType::Length: field.text = take(left, varint(left)); break;
      default: RUSH_THROW(IOError, "a field has the unknown wire type ", tag & 7);
    }
    return field;
  }
  static std::string_view take(std::string_view& left, uint64_t size) {
    RUSH_CHECK_IO(size <= left.size(), "the message is cut off");
    const std::string_view taken = left.substr(0, static_cast<size_t>(size));
    left.remove_prefix(taken.size());
    return taken;
  }
  static uint64_t fixed(std::string_view& left, size_t count) {
    return get_little_endian(reinterpret_cast<const uint8_t*>(take(left, count).data()), count);
  }
  static uint64_t varint(std::string_view& left) {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(left, 1)[0]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    RUSH_THROW(IOError, "a number has more than 64 bits");
  }

  std::vector<Field> fields_;
};

}  // namespace rush::io
