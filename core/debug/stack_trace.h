// StackTrace: the calls that a thread is in, cheap to record, and symbolised only when they are printed.
#pragma once
#include <string>
#include <vector>

namespace rush {

class StackTrace {
 public:
  /// The calls that lead here, innermost first, at most 64. Tens of microseconds; needs no debug information.
  static StackTrace capture();

  /// One text for each call: "train(rush::Tensor) (program+0x1f2a)". The function's name is left out where the file has
  /// no symbols; `addr2line -Cife program 0x1f2a` gives the line where it has debug information.
  std::vector<std::string> frames() const;

  /// Those of the program that uses the library, from main() inwards, at most four and each cut short: "train
  /// (program+0x1f2a)". Told by their names, so none where the program has no symbols.
  std::vector<std::string> frames_outside_library() const;
  /// Where the innermost of these goes on after the call: a name for the place. Null when there is none.
  const void* caller_outside_library() const;
  /// The same for source_line(), or in a function of std into which the program's, such as a lambda, was inlined.
  const void* caller_with_line() const;

 private:
  std::vector<void*> return_addresses_;
};

/// "train (program+0x1f2a) < main (program+0x2b31)".
std::string join_frames(const std::vector<std::string>& frames);

/// "SqrtBackward" as the compiler spells it, as people do; `symbol` itself where it is no mangled name.
std::string demangle(const char* symbol);

}  // namespace rush
