// Reads TensorBoard's event files: framing, checksums and the protocol buffers' fields.
#pragma once
#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/little_endian.h"
#include "tests/temporary_folder.h"

namespace rush::testing {

inline uint64_t little_endian(std::string_view bytes, size_t at, size_t count) {
  REQUIRE(at + count <= bytes.size());
  return io::get_little_endian(reinterpret_cast<const uint8_t*>(bytes.data()) + at, count);
}

// CRC-32C by polynomial division, bit by bit.
inline uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
  }
  return ~crc;
}

/// A decoded message: its fields in order.
class Message {
 public:
  explicit Message(std::string_view bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const uint64_t key = varint(bytes, at), wire = key & 7;
      Field field{key >> 3, 0, {}};
      if (wire == 0) {
        field.number = varint(bytes, at);
      } else {
        const size_t size = wire == 1 ? 8 : wire == 5 ? 4 : varint(bytes, at);
        REQUIRE((wire == 1 || wire == 2 || wire == 5));
        REQUIRE(size <= bytes.size() - at);
        field.bytes = bytes.substr(at, size);
        at += size;
      }
      fields_.push_back(field);
    }
  }

  std::vector<std::string> all(uint64_t id) const {
    std::vector<std::string> found;
    for (const Field& field : fields_) {
      if (field.id == id) found.push_back(field.bytes);
    }
    return found;
  }
  bool has(uint64_t id) const { return find(id) != nullptr; }
  int64_t integer(uint64_t id) const { return static_cast<int64_t>(the(id).number); }
  const std::string& text(uint64_t id) const { return the(id).bytes; }
  Message message(uint64_t id) const { return Message(the(id).bytes); }
  float float32(uint64_t id) const {
    return std::bit_cast<float>(static_cast<uint32_t>(little_endian(the(id).bytes, 0, 4)));
  }
  double float64(uint64_t id) const { return std::bit_cast<double>(little_endian(the(id).bytes, 0, 8)); }
  std::vector<double> float64s(uint64_t id) const {
    std::vector<double> values;
    for (size_t at = 0; at < the(id).bytes.size(); at += 8) {
      values.push_back(std::bit_cast<double>(little_endian(the(id).bytes, at, 8)));
    }
    return values;
  }

 private:
  struct Field {
    uint64_t id, number;
    std::string bytes;
  };
  static uint64_t varint(std::string_view bytes, size_t& at) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      REQUIRE(at < bytes.size());
      const auto byte = static_cast<uint8_t>(bytes[at++]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  }
  const Field* find(uint64_t id) const {
    for (const Field& field : fields_) {
      if (field.id == id) return &field;
    }
    return nullptr;
  }
  const Field& the(uint64_t id) const {
    INFO("field ", id);
    REQUIRE(find(id) != nullptr);
    return *find(id);
  }

  std::vector<Field> fields_;
};

/// The events of the only file in `folder`, the first of which says the version. What a record that broke off at the
/// end has is left out if `may_break_off`.
inline std::vector<Message> read_events(const std::string& folder, bool may_break_off = false) {
  std::string file;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    CHECK(file.empty());
    file = file_content(entry.path().string());
    CHECK(entry.path().filename().string().starts_with("events.out.tfevents."));
  }
  const auto checked = [](std::string_view bytes, uint64_t sum) {
    const uint32_t crc = crc32c(bytes);
    CHECK(static_cast<uint32_t>((crc >> 15 | crc << 17) + 0xa282ead8u) == sum);
    return bytes;
  };
  std::vector<Message> events;
  for (size_t at = 0; at < file.size();) {
    const std::string_view rest = std::string_view(file).substr(at);
    if (may_break_off && (rest.size() < 12 || rest.size() < 16 + little_endian(rest, 0, 8))) break;
    const uint64_t size = little_endian(checked(rest.substr(0, 8), little_endian(rest, 8, 4)), 0, 8);
    REQUIRE(size + 16 <= rest.size());
    events.emplace_back(checked(rest.substr(12, size), little_endian(rest, 12 + size, 4)));
    at += 16 + size;
  }
  REQUIRE(!events.empty());
  CHECK(events.front().text(3) == "brain.Event:2");
  events.erase(events.begin());
  return events;
}

}  // namespace rush::testing
