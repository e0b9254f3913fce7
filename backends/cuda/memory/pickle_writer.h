// Writes the few kinds of values that a memory snapshot is made of as Python's pickle, protocol 2.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace rush::cuda {

// A value is written by one call, or by what stands between begin_list and end_list, or begin_dict and end_dict; in a
// dict every value is preceded by its key, a string. Opcodes as in Python's Lib/pickletools.py. A list is appended to
// by the thousand, as Python does it: memory_viz's reader passes what is appended at once as arguments of one call,
// which JavaScript allows some ten thousand.
class PickleWriter {
 public:
  PickleWriter() { out_ += "\x80\x02"; }

  void begin_list() {
    begin_value();
    out_ += "](";
    appended_.push_back(0);
  }
  void end_list() {
    out_ += 'e';
    appended_.pop_back();
  }
  void begin_dict() {
    begin_value();
    out_ += "}(";
    appended_.push_back(kNoList);
  }
  void end_dict() {
    out_ += 'u';
    appended_.pop_back();
  }

  void value(std::string_view text) {
    begin_value();
    out_ += 'X';
    append_number(static_cast<uint32_t>(text.size()));
    out_ += text;
  }
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool truth) {
    begin_value();
    out_ += truth ? "\x88" : "\x89";
  }
  void value(int64_t number) {
    begin_value();
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
  void begin_tuple() {
    begin_value();
    out_ += '(';
    appended_.push_back(kNoList);
  }
  void end_tuple() {
    out_ += 't';
    appended_.pop_back();
  }

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
  static constexpr int kBatch = 1000, kNoList = -1;

  void begin_value() {
    if (appended_.empty() || appended_.back() == kNoList) return;
    if (appended_.back() == kBatch) {
      out_ += "e(";
      appended_.back() = 0;
    }
    ++appended_.back();
  }
  template <class T>
  void append_number(T number) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &number, sizeof(T));  // both are little-endian
    out_.append(bytes, sizeof(T));
  }

  std::string out_;
  std::vector<int> appended_;  // to each open list since it was last told to append; kNoList for dicts and tuples
};

}  // namespace rush::cuda
