#include "examples/gpt/text_data.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/error/error.h"
#include "core/io/read_file.h"
#include "core/ops/factory/factories.h"

namespace examples {

namespace fs = std::filesystem;

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string content(const fs::path& path) {
  const std::vector<uint8_t> bytes = rush::io::read_file(path.string());
  return std::string(bytes.begin(), bytes.end());
}

std::vector<fs::path> own_texts() {
  const fs::path root = environment("RUSH_ROOT").empty() ? "." : environment("RUSH_ROOT");
  std::vector<fs::path> paths;
  if (fs::is_regular_file(root / "README.md")) paths.push_back(root / "README.md");
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(root / "docs", none)) {
    if (entry.is_regular_file() && entry.path().extension() == ".md") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::string find_data_file(const std::string& name) {
  std::vector<fs::path> places;
  if (const std::string data = environment("RUSH_DATA"); !data.empty()) places.push_back(fs::path(data) / name);
  if (const std::string root = environment("RUSH_ROOT"); !root.empty())
    places.push_back(fs::path(root) / "data" / name);
  places.push_back(fs::path("data") / name);
  for (const fs::path& place : places) {
    if (fs::is_regular_file(place)) return place.string();
  }
  return "";
}

std::string find_text(const std::string& given) {
  return given.empty() ? find_data_file("tinyshakespeare/input.txt") : given;
}

std::string read_text(const std::string& path) {
  if (!path.empty()) return content(path);
  std::string text;
  for (const fs::path& own : own_texts()) text += content(own);
  RUSH_CHECK_IO(!text.empty(), "there is no text to train on: pass one with --data");
  return text;
}

Vocabulary::Vocabulary(const std::string& text) {
  std::fill(std::begin(token_of_), std::end(token_of_), -1);
  for (char c : text) token_of_[static_cast<unsigned char>(c)] = 0;
  for (int byte = 0; byte < 256; ++byte) {
    if (token_of_[byte] < 0) continue;
    token_of_[byte] = size();
    bytes_.push_back(static_cast<char>(byte));
  }
}

int64_t Vocabulary::token(char byte) const {
  const int64_t token = token_of_[static_cast<unsigned char>(byte)];
  RUSH_CHECK_VALUE(token >= 0, "the text to train on has no character '", byte, "'");
  return token;
}

rush::Tensor Vocabulary::encode(const std::string& text) const {
  const auto options = rush::TensorOptions(rush::kLong).device(rush::kCPU);
  const rush::Tensor tokens = rush::empty({static_cast<int64_t>(text.size())}, options);
  std::transform(text.begin(), text.end(), tokens.data_ptr<int64_t>(), [this](char c) { return token(c); });
  return tokens;
}

std::string Vocabulary::decode(const rush::Tensor& tokens) const {
  const rush::Tensor flat = tokens.reshape(-1).cpu();
  std::string text;
  for (int64_t i = 0; i < flat.numel(); ++i) {
    text.push_back(bytes_[static_cast<size_t>(flat.data_ptr<int64_t>()[i * flat.stride(0)])]);
  }
  return text;
}

TextData::TextData(const std::string& text, const Vocabulary& vocabulary, int64_t block_size)
    : block_size_(block_size) {
  const auto needed = static_cast<size_t>(10 * (block_size + 1));
  RUSH_CHECK_VALUE(text.size() >= needed, "the text has ", text.size(), " characters; blocks of ", block_size,
                   " need at least ", needed);
  const size_t train_size = train_part(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    tokens_[i < train_size ? Train : Validation].push_back(static_cast<int32_t>(vocabulary.token(text[i])));
  }
  rush::io::Crc32 sum;
  sum.update(text.data(), text.size());  // tokens alone would not say which characters they are
  description_ = describe(sum);
}

TextData::TextData(std::vector<int32_t> train, std::vector<int32_t> validation, int64_t block_size)
    : tokens_{std::move(train), std::move(validation)}, block_size_(block_size) {
  rush::io::Crc32 sum;
  for (const auto& tokens : tokens_) {
    sum.update(tokens.data(), tokens.size() * sizeof tokens[0]);
    RUSH_CHECK_VALUE(static_cast<int64_t>(tokens.size()) > block_size, "blocks of ", block_size,
                     " need a text of more tokens than they have; a part of it has ", tokens.size());
  }
  description_ = describe(sum);
}

std::string TextData::describe(const rush::io::Crc32& sum) const {
  return rush::str(size(Train), " + ", size(Validation), " tokens with checksum ", sum.value());
}

TextData::Batch TextData::batch_at(Split split, const std::vector<int64_t>& starts) const {
  const auto batch_size = static_cast<int64_t>(starts.size());
  const auto options = rush::TensorOptions(rush::kLong).device(rush::kCPU).pinned_memory(pin_);
  Batch batch = {rush::empty({batch_size, block_size_}, options), rush::empty({batch_size, block_size_}, options)};
  for (int64_t b = 0; b < batch_size; ++b) {
    const int32_t* from = tokens_[split].data() + starts[static_cast<size_t>(b)];
    std::copy_n(from, block_size_, batch.first.data_ptr<int64_t>() + b * block_size_);
    std::copy_n(from + 1, block_size_, batch.second.data_ptr<int64_t>() + b * block_size_);
  }
  return batch;
}

TextData::Batch TextData::random_batch(Split split, int64_t batch_size, rush::Generator& generator) const {
  rush::Philox4x32 words = rush::philox_sequence(generator.reserve(2 * static_cast<uint64_t>(batch_size)), 0);
  const auto places = static_cast<uint64_t>(size(split) - block_size_);
  std::vector<int64_t> starts(static_cast<size_t>(batch_size));
  for (int64_t& start : starts) {
    const uint32_t upper = words();
    start = static_cast<int64_t>(rush::join_words(upper, words()) % places);
  }
  return batch_at(split, starts);
}

std::vector<TextData::Batch> TextData::in_order(Split split, int64_t batch_size, int64_t max_blocks) const {
  const int64_t blocks = std::min(max_blocks, (size(split) - 1) / block_size_);
  std::vector<Batch> batches;
  std::vector<int64_t> starts;
  for (int64_t i = 0; i < blocks; ++i) {
    starts.push_back(i * block_size_);
    if (static_cast<int64_t>(starts.size()) < batch_size && i + 1 < blocks) continue;
    batches.push_back(batch_at(split, starts));
    starts.clear();
  }
  return batches;
}

double estimated_loss(const TextData& data, TextData::Split split, int64_t batch_size, int64_t count, int64_t seed,
                      const std::function<double(const TextData::Batch&)>& loss) {
  auto generator = rush::make_generator<rush::CPUGeneratorImpl>(static_cast<uint64_t>(seed));
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += loss(data.random_batch(split, batch_size, generator));
  return total / static_cast<double>(count);
}

}  // namespace examples
