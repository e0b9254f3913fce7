#include "examples/gpt2/word_splitter.h"

#include "core/error/error.h"
#include "examples/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace examples {

namespace {

// \t-\r, U+0085 and \p{Z} are White_Space.
constexpr std::string_view kPattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\t-\r\x{85}\p{Z}\p{L}\p{N}]+)"
                                      R"(|[\t-\r\x{85}\p{Z}]+(?![^\t-\r\x{85}\p{Z}])|[\t-\r\x{85}\p{Z}]+)";

std::string message_of(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof(text));
  return reinterpret_cast<const char*>(text);
}

struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

// How much of `text`, from its beginning on, is valid UTF-8, or how much is not.
size_t run_length(std::string_view text, bool valid) {
  size_t length = 0;
  while (length < text.size()) {
    const size_t character = utf8_character(text.substr(length));
    if ((character > 0) != valid) break;
    length += valid ? character : 1;
  }
  return length;
}

}  // namespace

void WordSplitter::FreeCode::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

WordSplitter::WordSplitter() {
  int error = 0;
  PCRE2_SIZE offset = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(kPattern.data()), kPattern.size(), PCRE2_UTF | PCRE2_ANCHORED,
                            &error, &offset, nullptr));
  RUSH_CHECK(code_, "WordSplitter: PCRE2 refuses the pattern at ", offset, ": ", message_of(error));
  pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // where it cannot, matching is slower
}

void WordSplitter::split_valid(std::string_view text, std::vector<std::string_view>& pieces) const {
  const std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create(1, nullptr));
  RUSH_CHECK(match, "WordSplitter: PCRE2 has no memory for a match");
  for (size_t at = 0; at < text.size();) {
    // The text was checked once; PCRE2 would check the rest of it at every call.
    const int found = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                  PCRE2_NO_UTF_CHECK, match.get(), nullptr);
    RUSH_CHECK(found > 0, "WordSplitter: PCRE2 finds no piece at byte ", at, ": ", message_of(found));
    const size_t end = pcre2_get_ovector_pointer(match.get())[1];
    pieces.push_back(text.substr(at, end - at));
    at = end;
  }
}

std::vector<std::string_view> WordSplitter::split(std::string_view text) const {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    const size_t valid = run_length(text, true);
    split_valid(text.substr(0, valid), pieces);
    text.remove_prefix(valid);
    if (const size_t invalid = run_length(text, false); invalid > 0) {
      pieces.push_back(text.substr(0, invalid));
      text.remove_prefix(invalid);
    }
  }
  return pieces;
}

}  // namespace examples
