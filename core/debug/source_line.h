// SourceLine: the line of a program that an address of its machine code belongs to.
#pragma once
#include <string>

namespace rush {

struct SourceLine {
  std::string file;  ///< as the compiler was given it
  int line = 0;      ///< from 1; 0: not known
};

/// The line of the program's own source, rather than of the library's headers, from which a call returns to
/// `return_address`. Asks binutils' `addr2line`, once for each address, which takes tens of milliseconds. Line 0 where
/// that is missing, or the program was compiled without -g.
SourceLine source_line(const void* return_address);

/// "train.cpp:41", without its folder; "" for line 0.
std::string short_text(const SourceLine& where);

}  // namespace rush
