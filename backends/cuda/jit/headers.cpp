#include "backends/cuda/jit/headers.h"

#include <cstring>
#include <vector>

#include "core/io/md5.h"

// RUSH_JIT_HEADERS is a file of lines `RUSH_HEADER(symbol, name, path)`, which cmake/jit.cmake writes.
#define RUSH_HEADER(symbol, name, path)                                                        \
  __asm__(".pushsection .rodata\n.globl rush_header_" #symbol "\n.hidden rush_header_" #symbol \
          "\nrush_header_" #symbol ":\n.incbin \"" path "\"\n.byte 0\n.popsection\n");         \
  extern "C" const char rush_header_##symbol[];
#include RUSH_JIT_HEADERS
#undef RUSH_HEADER

namespace rush::cuda::jit {

namespace {

constexpr const char* kStandardHeaders[] = {"algorithm",   "array",       "bit",    "cmath",    "concepts",
                                            "cstddef",     "cstdint",     "limits", "optional", "string",
                                            "string_view", "type_traits", "utility"};

std::vector<Header> all_headers() {
  std::vector<Header> all;
#define RUSH_HEADER(symbol, name, path) all.push_back({name, rush_header_##symbol});
#include RUSH_JIT_HEADERS
#undef RUSH_HEADER
  for (const char* name : kStandardHeaders) {
    all.push_back({name, rush_header_backends_cuda_jit_standard_library_h});
  }
  return all;
}

}  // namespace

std::span<const Header> headers() {
  static const std::vector<Header> all = all_headers();
  return all;
}

const std::string& headers_digest() {
  static const std::string digest = [] {
    std::string text;
    for (const Header& header : headers()) text.append(header.name).append("\n").append(header.text);
    return io::md5_hex(text);
  }();
  return digest;
}

}  // namespace rush::cuda::jit
