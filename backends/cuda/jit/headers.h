// The headers that a source compiled at run time may include: the library carries their text.
#pragma once
#include <span>
#include <string>

namespace rush::cuda::jit {

// Note [Functors compiled at run time]
// NVRTC reads the headers of backends/functors, and those of core that they need, as they stand in this tree;
// cmake/jit.cmake lists them, and the assembler copies them into the library. Two things are different there:
//   - a functor's header leaves out its tables and the declarations of operators, by `#ifndef __CUDACC_RTC__`;
//   - jit/device_code.h takes the place of device_code.h, and jit/standard_library.h that of each standard header.

struct Header {
  const char* name;  // as a source includes it
  const char* text;
};
std::span<const Header> headers();

// A digest of all of them: another one where one of them was changed.
const std::string& headers_digest();

}  // namespace rush::cuda::jit
