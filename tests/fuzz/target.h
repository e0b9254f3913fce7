// What the fuzzers of file readers share. A target is a file that defines two functions of libFuzzer's,
// LLVMFuzzerTestOneInput (read these bytes) and LLVMFuzzerCustomMutator (change them, keeping what makes them a file of
// its format); libFuzzer or standalone_driver.cpp calls them. See docs/fuzzing.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error/error.h"
#include "core/tensor.h"
#include "tests/fuzz/random.h"

// libFuzzer's own mutation, which knows what inputs reached; returns the new size.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace fuzz {

/// A file in memory, for readers that take a path.
class MemoryFile {
 public:
  MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();
  void write(std::string_view content);
  const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

/// How inputs of one format are made.
struct Format {
  /// Valid files, from which everything starts.
  std::vector<std::string> (*seeds)();
  /// Changes a file as one who knows the format would.
  std::string (*mutate)(const std::string& file, Random& random);
  /// Makes lengths and checksums right again, so that what lies behind them is reached.
  void (*repair)(std::string& file);
};

/// What LLVMFuzzerCustomMutator does: a change by `format` or by LLVMFuzzerMutate, mostly repaired.
size_t mutate(const Format& format, uint8_t* data, size_t size, size_t max_size, unsigned seed);

/// One small change that knows no format: bits, bytes, numbers of several widths, decimal numbers, ranges.
std::string mutate_bytes(std::string bytes, Random& random);
/// Replaces one of the decimal numbers in `text`, if it has any.
std::string mutate_number(std::string text, Random& random);

/// Ends the process with a message: the fuzzer reports the input.
[[noreturn]] void fail(const std::string& message);
/// Fails unless `error` is what bad input may cause: one line, and no assertion of ours.
void check_error(const rush::Error& error);
/// Fails unless the tensor's elements lie in its memory.
void check_tensor(const rush::Tensor& tensor);

/// What LLVMFuzzerTestOneInput does: `read(path)` either succeeds or throws an Error. Every other exception ends the
/// process.
template <class Read>
int test_reader(const uint8_t* data, size_t size, const Read& read) {
  static MemoryFile file;
  file.write({reinterpret_cast<const char*>(data), size});
  try {
    read(file.path());
  } catch (const rush::Error& error) {
    check_error(error);
  }
  return 0;
}

}  // namespace fuzz
