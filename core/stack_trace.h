// StackTrace: the calls that a thread is in, cheap to take, put into words only when somebody reads them.
#pragma once
#include <string>
#include <vector>

namespace rush {

class StackTrace {
 public:
  // The calls that lead here, innermost first, at most 64. Tens of microseconds; needs no debug information.
  static StackTrace capture();

  // One text for each call: "train(rush::Tensor) (program+0x1f2a)". The function's name is left out where the file has
  // no symbols; `addr2line -Cife program 0x1f2a` gives the line where it has debug information.
  std::vector<std::string> frames() const;

 private:
  std::vector<void*> return_addresses_;
};

// "SqrtBackward" as the compiler spells it, as people do; `symbol` itself where it is no mangled name.
std::string demangle(const char* symbol);

}  // namespace rush
