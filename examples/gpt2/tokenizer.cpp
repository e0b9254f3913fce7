#include "examples/gpt2/tokenizer.h"

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <queue>
#include <tuple>

#include "core/error/error.h"
#include "core/io/read_file.h"
#include "examples/utf8.h"

namespace examples {

namespace {

// In the files a byte is written as a character that can be seen: itself where it is printable Latin-1, else one of
// those from U+0100 on, in order. This is the byte of each such character, or -1.
std::array<int16_t, 512> bytes_of_characters() {
  std::array<int16_t, 512> bytes;
  bytes.fill(-1);
  size_t next = 256;
  for (size_t byte = 0; byte < 256; ++byte) {
    const bool visible = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    bytes[visible ? byte : next++] = static_cast<int16_t>(byte);
  }
  return bytes;
}

// What a token's spelling in the files stands for. False if it has other characters.
bool spelled_bytes(std::string_view spelling, std::string* bytes) {
  static const std::array<int16_t, 512> kBytes = bytes_of_characters();
  bytes->clear();
  while (!spelling.empty()) {
    const size_t length = utf8_character(spelling);
    if (length == 0 || length > 2) return false;
    const auto first = static_cast<uint8_t>(spelling[0]);
    const size_t character = length == 1 ? first : (first & 0x1Fu) << 6 | (static_cast<uint8_t>(spelling[1]) & 0x3Fu);
    if (character >= kBytes.size() || kBytes[character] < 0) return false;
    bytes->push_back(static_cast<char>(kBytes[character]));
    spelling.remove_prefix(length);
  }
  return true;
}

std::string text_of(const std::string& path) {
  const std::vector<uint8_t> bytes = rush::io::read_file(path);
  return std::string(bytes.begin(), bytes.end());
}

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

Tokenizer::Tokenizer(const std::string& vocabulary_path, const std::string& merges_path) {
  read_merges(merges_path, read_vocabulary(vocabulary_path));
}

Tokenizer::TokenNumbers Tokenizer::read_vocabulary(const std::string& path) {
  const nlohmann::json tokens = nlohmann::json::parse(text_of(path), nullptr, /*allow_exceptions=*/false);
  RUSH_CHECK_IO(tokens.is_object() && !tokens.empty() && tokens.size() < std::numeric_limits<int32_t>::max(), path,
                ": no vocabulary: expected a JSON object of tokens and their numbers");
  TokenNumbers numbers;
  bytes_.resize(tokens.size());
  std::string bytes;
  for (const auto& [spelling, number] : tokens.items()) {
    RUSH_CHECK_IO(spelled_bytes(spelling, &bytes) && !bytes.empty(), path, ": '", spelling,
                  "' is not spelled as a token of bytes");
    RUSH_CHECK_IO(number.is_number_unsigned() && number.get<uint64_t>() < tokens.size(), path, ": the token '",
                  spelling, "' has no number below ", tokens.size(), ", how many there are");
    const auto token = number.get<int32_t>();
    RUSH_CHECK_IO(bytes_[static_cast<size_t>(token)].empty(), path, ": two tokens have the number ", token);
    bytes_[static_cast<size_t>(token)] = bytes;
    numbers.emplace(bytes, token);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const auto found = numbers.find(std::string(1, static_cast<char>(byte)));
    RUSH_CHECK_IO(found != numbers.end(), path, ": there is no token of the byte ", byte);
    byte_tokens_[byte] = found->second;
  }
  const auto end = numbers.find(std::string(kEndOfText));
  RUSH_CHECK_IO(end != numbers.end(), path, ": there is no token ", kEndOfText);
  end_of_text_ = end->second;
  return numbers;
}

// A line for each pair, "left right"; a first line that starts with # says the version.
void Tokenizer::read_merges(const std::string& path, const TokenNumbers& numbers) {
  const std::string text = text_of(path);
  int32_t rank = 0;
  size_t line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (line_number == 1 && line.starts_with("#version"))) continue;
    const size_t space = line.find(' ');
    std::string left, right;
    RUSH_CHECK_IO(space != line.npos && spelled_bytes(line.substr(0, space), &left) &&
                      spelled_bytes(line.substr(space + 1), &right),
                  path, ": line ", line_number, " is no pair of tokens");
    const auto a = numbers.find(left), b = numbers.find(right), joined = numbers.find(left + right);
    RUSH_CHECK_IO(a != numbers.end() && b != numbers.end() && joined != numbers.end(), path, ": line ", line_number,
                  " joins what the vocabulary has no token for");
    merges_.emplace(pair_key(a->second, b->second), Merge{rank++, joined->second});
  }
  RUSH_CHECK_IO(rank > 0, path, ": no pairs to join");
}

const Tokenizer::Merge* Tokenizer::find_merge(int32_t left, int32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

// Joins neighbours, always the pair of the lowest rank and of these the leftmost. A heap of pairs that may be joined,
// some of which no longer stand there, keeps that below quadratic time for a piece of any length.
void Tokenizer::encode_piece(std::string_view piece, std::vector<int32_t>& tokens) const {
  struct Symbol {
    int32_t token;  // -1: joined to the one before it
    size_t previous, next;
  };
  const size_t none = piece.size();
  std::vector<Symbol> symbols(piece.size());
  for (size_t i = 0; i < piece.size(); ++i) {
    symbols[i] = {byte_tokens_[static_cast<uint8_t>(piece[i])], i == 0 ? none : i - 1, i + 1};
  }
  using Candidate = std::tuple<int32_t, size_t, int32_t, int32_t>;  // rank, place, and the pair that stood there
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto consider = [&](size_t at) {
    if (at == none || symbols[at].next == none) return;
    const int32_t left = symbols[at].token, right = symbols[symbols[at].next].token;
    if (const Merge* merge = find_merge(left, right)) candidates.emplace(merge->rank, at, left, right);
  };
  for (size_t i = 0; i < piece.size(); ++i) consider(i);
  while (!candidates.empty()) {
    const auto [rank, at, left, right] = candidates.top();
    candidates.pop();
    Symbol& symbol = symbols[at];
    if (symbol.token != left || symbol.next == none || symbols[symbol.next].token != right) continue;
    symbol.token = find_merge(left, right)->token;
    symbols[symbol.next].token = -1;
    symbol.next = symbols[symbol.next].next;
    if (symbol.next != none) symbols[symbol.next].previous = at;
    consider(symbol.previous);
    consider(at);
  }
  for (size_t i = 0; i < none; i = symbols[i].next) tokens.push_back(symbols[i].token);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> tokens;
  while (true) {
    const size_t end = text.find(kEndOfText);
    for (const std::string_view piece : splitter_.split(text.substr(0, end))) encode_piece(piece, tokens);
    if (end == text.npos) return tokens;
    tokens.push_back(end_of_text_);
    text.remove_prefix(end + kEndOfText.size());
  }
}

std::string Tokenizer::decode(const std::vector<int32_t>& tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    RUSH_CHECK_VALUE(token >= 0 && token < size(), "there is no token ", token, ", only those below ", size());
    text += bytes_[static_cast<size_t>(token)];
  }
  return text;
}

}  // namespace examples
