// Cuts text into the pieces that GPT-2's byte-pair encoding joins bytes within.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;  // PCRE2's compiled pattern

namespace examples {

// Note [Pieces of text]
// GPT-2's encoder (https://github.com/openai/gpt-2, encoder.py) cuts text by a regular expression: contractions; a run
// of letters, of numbers, or of anything else that is no white space, each with one space before it; and white space,
// of which a last one is left for the word that follows. Letters and numbers are Unicode's categories L and N, and
// white space is Unicode's property White_Space, spelled out because PCRE2's \s holds U+180E too, which no longer has
// it.
//
// Text need not be UTF-8: a run of bytes that are no part of a valid character is a piece of its own, so that every
// sequence of bytes has tokens, and decoding gives it back.
class WordSplitter {
 public:
  /// Compiles the pattern.
  WordSplitter();

  /// Pieces that follow each other and together are `text`, which must outlive them.
  std::vector<std::string_view> split(std::string_view text) const;

 private:
  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const;
  };

  void split_valid(std::string_view text, std::vector<std::string_view>& pieces) const;

  std::unique_ptr<pcre2_real_code_8, FreeCode> code_;
};

}  // namespace examples
