// load_inline: operators from source text, compiled while the program runs.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/library/library.h"

namespace rush {

namespace library::detail {
// The folder of Rushlight's headers, that of this file's path without "core/library/load_inline.h".
inline std::string headers_of(std::string_view this_file) {
  return std::string(this_file.substr(0, this_file.rfind("core/library/")));
}
}  // namespace library::detail

/// How load_inline compiles.
struct InlineOptions {
  /// Sources for the device's compiler, which for CUDA is nvcc. Sources of both kinds see RUSH_HAS_CUDA where there is
  /// it.
  std::vector<std::string> device_sources;
  std::vector<std::string> flags;         // for C++, behind -O2
  std::vector<std::string> device_flags;  // for the device's sources
  std::vector<std::string> link_flags;
  std::vector<std::string> include_folders;
  /// The folder with rushlight.h; at first that of the headers that the program was compiled with.
  std::string headers = library::detail::headers_of(__FILE__);
  /// The C++ compiler; at first the one that built Rushlight.
  std::string compiler;
};

/// Sources that do not compile. The message has the compiler's first error with its line, "scale.cpp:3:10: error: ...".
class CompileError : public Error {
 public:
  CompileError(std::string message, std::string output) : Error(std::move(message)), output_(std::move(output)) {}
  const std::string& output() const { return output_; }  // all that the compiler said

 private:
  std::string output_;
};

/// Compiles C++ sources, one of which has RUSH_OPERATORS, into a shared library and loads it. The compiler's messages
/// call the only source NAME.cpp, several NAME_0.cpp, NAME_1.cpp and so on. What was compiled is kept in the user's
/// cache (RUSH_CACHE_DIR, else XDG_CACHE_HOME/rushlight, else ~/.cache/rushlight), and compiled again when sources,
/// options, compiler or version change, or when it is damaged. A second call with the same does nothing. Throws
/// CompileError; ValueError where `name` is no word, or there are device sources and no compiler for them; IOError
/// where the headers or the compiler are missing; and what load_library throws. torch.utils.cpp_extension.load_inline.
void load_inline(const std::string& name, const std::vector<std::string>& sources, const InlineOptions& options = {});

}  // namespace rush
