// SourceLocation: std::source_location, which clang before 16 cannot read from GCC's library.
#pragma once

namespace rush {

class SourceLocation {
 public:
  constexpr SourceLocation() = default;

  /// The place of the call; as a default argument, the place of the call of the function that has it.
  static constexpr SourceLocation current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    SourceLocation here;
    here.file_ = file;
    here.line_ = line;
    return here;
  }

  constexpr const char* file_name() const { return file_; }  // "" when this is no place at all
  /// From 1; 0 is no place at all.
  constexpr int line() const { return line_; }

 private:
  const char* file_ = "";
  int line_ = 0;
};

}  // namespace rush
