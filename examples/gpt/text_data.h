// A text as training data: tokens, the first nine tenths to train on, the rest to validate.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/device/generator.h"
#include "core/io/crc32.h"
#include "core/tensor.h"

namespace examples {

/// The path of a data file, "gpt2/vocab.bpe" for example, in the folder RUSH_DATA or the project's own, data/; empty if
/// neither has it.
std::string find_data_file(const std::string& name);

/// The path that `--data` names; else tiny Shakespeare where RUSH_DATA or the project's data folder has it; else empty.
std::string find_text(const std::string& given);

/// What `path` holds; for an empty path the project's own texts, README.md and docs/*.md, under RUSH_ROOT.
/// Throws rush::IOError if there is nothing to read.
std::string read_text(const std::string& path);

/// How much of `size` to train on: nine tenths, rounded down.
inline size_t train_part(size_t size) { return size / 10 * 9 + size % 10 * 9 / 10; }

/// A token for each byte value that occurs, in the order of the values.
class Vocabulary {
 public:
  explicit Vocabulary(const std::string& text);
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  /// Throws rush::ValueError for a byte that did not occur in the text.
  int64_t token(char byte) const;
  /// The tokens of a text: (characters) of int64. Throws as token() does.
  rush::Tensor encode(const std::string& text) const;
  std::string decode(const rush::Tensor& tokens) const;
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  int64_t token_of_[256];
};

class TextData {
 public:
  /// The characters of a text. Throws rush::ValueError if it has fewer than 10 blocks of block_size + 1 characters.
  TextData(const std::string& text, const Vocabulary& vocabulary, int64_t block_size);
  /// Throws rush::ValueError if either has fewer than block_size + 1 tokens.
  TextData(std::vector<int32_t> train, std::vector<int32_t> validation, int64_t block_size);

  /// Whether batches come in pinned memory, which a GPU copies from while the host goes on; at first they do not.
  /// Throws what rush::pin_memory does where there is no GPU.
  void pin_batches(bool pin) { pin_ = pin; }

  enum Split { Train, Validation };
  using Batch = std::pair<rush::Tensor, rush::Tensor>;  // tokens (B, T), and those that follow them (B, T)

  /// `batch_size` blocks from random places.
  Batch random_batch(Split split, int64_t batch_size, rush::Generator& generator) const;
  /// The split in blocks that follow each other, at most `max_blocks`, in batches of `batch_size`.
  std::vector<Batch> in_order(Split split, int64_t batch_size, int64_t max_blocks) const;
  int64_t size(Split split) const { return static_cast<int64_t>(tokens_[split].size()); }
  /// "1003854 + 111540 tokens with checksum 1234": tells texts apart.
  const std::string& description() const { return description_; }

 private:
  Batch batch_at(Split split, const std::vector<int64_t>& starts) const;
  std::string describe(const rush::io::Crc32& sum) const;

  std::vector<int32_t> tokens_[2];
  int64_t block_size_;
  std::string description_;
  bool pin_ = false;
};

/// The mean of `loss` over `count` random batches, the same ones each time, so that one estimate compares with another.
double estimated_loss(const TextData& data, TextData::Split split, int64_t batch_size, int64_t count, int64_t seed,
                      const std::function<double(const TextData::Batch&)>& loss);

}  // namespace examples
