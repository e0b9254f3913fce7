// GPT-2's tokens: byte-pair encoding over bytes. Sennrich et al., "Neural machine translation of rare words with
// subword units" (2016); Radford et al. (2019), section 2.2.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "examples/gpt2/word_splitter.h"

namespace examples {

/// Text to tokens and back, as GPT2TokenizerFast of Hugging Face's transformers. Text is taken as bytes, see Note
/// [Pieces of text].
class Tokenizer {
 public:
  /// The token that stands between documents: where the text spells it, encode gives this one token.
  static constexpr std::string_view kEndOfText = "<|endoftext|>";

  /// Reads GPT-2's two files: the tokens with their numbers (encoder.json, also called vocab.json) and the pairs to
  /// join, the first of them first (vocab.bpe, also called merges.txt). Throws rush::IOError, one line that starts with
  /// a path, if either cannot be read, is malformed, or they do not belong together.
  Tokenizer(const std::string& vocabulary_path, const std::string& merges_path);

  std::vector<int32_t> encode(std::string_view text) const;
  /// Throws rush::ValueError for a number that is none of a token.
  std::string decode(const std::vector<int32_t>& tokens) const;

  /// How many tokens there are. They are numbered from 0 on.
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  int32_t end_of_text() const { return end_of_text_; }

 private:
  struct Merge {
    int32_t rank, token;  // when to join, and what comes of it
  };
  using TokenNumbers = std::unordered_map<std::string, int32_t>;  // by their bytes

  TokenNumbers read_vocabulary(const std::string& path);
  void read_merges(const std::string& path, const TokenNumbers& numbers);
  const Merge* find_merge(int32_t left, int32_t right) const;
  void encode_piece(std::string_view piece, std::vector<int32_t>& tokens) const;

  WordSplitter splitter_;
  std::vector<std::string> bytes_;              // of each token
  int32_t byte_tokens_[256];                    // the tokens of single bytes
  std::unordered_map<uint64_t, Merge> merges_;  // by pairs of tokens
  int32_t end_of_text_ = 0;
};

}  // namespace examples
