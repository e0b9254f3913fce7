// Writes the few kinds of values that a memory snapshot is made of as Python's pickle, protocol 2.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace rush::cuda {

// A value is written by one call, or by what stands between begin_list and end_list, or begin_dict and end_dict; in a
// dict every value is preceded by its key, a string. Opcodes as in Python's Lib/pickletools.py.
class PickleWriter {
 public:
  PickleWriter() { out_ += "\x80\x02"; }

  void begin_list() { out_ += "]("; }
  void end_list() { out_ += 'e'; }
  void begin_dict() { out_ += "}("; }
  void end_dict() { out_ += 'u'; }

  void value(std::string_view text) {
    out_ += 'X';
    append_number(static_cast<uint32_t>(text.size()));
    out_ += text;
  }
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool truth) { out_ += truth ? "\x88" : "\x89"; }
  void value(int64_t number) {
    if (number >= INT32_MIN && number <= INT32_MAX) {
      out_ += 'J';
      append_number(static_cast<int32_t>(number));
    } else {
      out_ += "\x8a\x08";
      append_number(number);
    }
  }
  void value(int number) { value(static_cast<int64_t>(number)); }
  // Addresses and sizes, which fit 63 bits.
  void value(uint64_t number) { value(static_cast<int64_t>(number)); }
  void begin_tuple() { out_ += '('; }
  void end_tuple() { out_ += 't'; }

  template <class T>
  void item(std::string_view key, const T& content) {
    value(key);
    value(content);
  }

  std::string finish() {
    out_ += '.';
    return std::move(out_);
  }

 private:
  template <class T>
  void append_number(T number) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &number, sizeof(T));  // both are little-endian
    out_.append(bytes, sizeof(T));
  }

  std::string out_;
};

}  // namespace rush::cuda
