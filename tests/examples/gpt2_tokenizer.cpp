// GPT-2's tokenizer against Hugging Face's. Most of these tests need GPT-2's vocabulary, in $RUSH_DATA/gpt2 or
// data/gpt2.
#include "examples/gpt2/tokenizer.h"

#include <doctest/doctest.h>

#include <optional>

#include "core/error/error.h"
#include "examples/gpt/text_data.h"
#include "rushlight.h"
#include "tests/fixtures.h"
#include "tests/temporary_folder.h"

namespace {

using namespace rush;
using examples::Tokenizer;
using rush::testing::TemporaryFolder;

std::optional<Tokenizer> gpt2_tokenizer() {
  const std::string tokens = examples::find_data_file("gpt2/encoder.json");
  const std::string merges = examples::find_data_file("gpt2/vocab.bpe");
  if (tokens.empty() || merges.empty()) {
    MESSAGE("skipped: no vocabulary of GPT-2");
    return std::nullopt;
  }
  return std::optional<Tokenizer>(std::in_place, tokens, merges);
}

TEST_CASE("texts have Hugging Face's tokens, and the tokens have the texts") {
  const auto tokenizer = gpt2_tokenizer();
  if (!tokenizer) return;
  CHECK(tokenizer->size() == 50257);
  CHECK(tokenizer->end_of_text() == 50256);
  const nlohmann::json cases = read_fixtures("examples/gpt2_tokenizer.json");
  CHECK(cases.size() > 20);
  for (const nlohmann::json& one : cases) {
    const std::string text = one["text"];
    CAPTURE(text);
    const auto tokens = tokenizer->encode(text);
    CHECK(tokens == one["tokens"].get<std::vector<int32_t>>());
    CHECK(tokenizer->decode(tokens) == text);
  }
}

TEST_CASE("tiny Shakespeare has as many tokens as nanoGPT counts, and comes back") {
  const auto tokenizer = gpt2_tokenizer();
  const std::string path = examples::find_text("");
  if (!tokenizer || path.empty()) return;
  const std::string text = examples::read_text(path);
  const size_t part = examples::train_part(text.size());
  const auto train = tokenizer->encode(std::string_view(text).substr(0, part));
  const auto validation = tokenizer->encode(std::string_view(text).substr(part));
  CHECK(train.size() == 301966);
  CHECK(validation.size() == 36059);
  CHECK(tokenizer->decode(train) + tokenizer->decode(validation) == text);
}

TEST_CASE("any bytes have tokens and come back") {
  const auto tokenizer = gpt2_tokenizer();
  if (!tokenizer) return;
  auto generator = make_generator<CPUGeneratorImpl>(1);
  for (int64_t size : {1, 2, 3, 5, 100, 1000, 100000}) {
    const Tensor bytes = randint(0, 256, {size}, generator, kInt64);
    std::string text;
    for (int64_t i = 0; i < size; ++i) text.push_back(static_cast<char>(bytes.data_ptr<int64_t>()[i]));
    CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
  }
  for (const char* broken :
       {"a\xff\xfe z", "\xc0\x80", "\xed\xa0\x80 x", "\xf4\x90\x80\x80", "caf\xc3", "\xe4\xb8", "\x80\x80z"}) {
    CAPTURE(broken);
    CHECK(tokenizer->decode(tokenizer->encode(broken)) == broken);
  }
}

TEST_CASE("a piece of any length takes little more than linear time") {
  const auto tokenizer = gpt2_tokenizer();
  if (!tokenizer) return;
  const std::string long_word(1 << 20, 'a');  // quadratic, it would take hours
  CHECK(tokenizer->decode(tokenizer->encode(long_word)) == long_word);
  const std::string spaces(1 << 20, ' ');
  CHECK(tokenizer->decode(tokenizer->encode(spaces + "x")) == spaces + "x");
}

TEST_CASE("the pieces of a text") {
  const examples::WordSplitter splitter;
  using Pieces = std::vector<std::string_view>;
  CHECK(splitter.split("").empty());
  CHECK(splitter.split("I've  two\n\n words") == Pieces{"I", "'ve", " ", " two", "\n\n", " words"});
  CHECK(splitter.split("x2  ") == Pieces{"x", "2", "  "});
  // U+180E is no white space, for all that PCRE2's \s says.
  CHECK(splitter.split("a \xe1\xa0\x8e") == Pieces{"a", " \xe1\xa0\x8e"});
  CHECK(splitter.split("a\xc2\xa0z") == Pieces{"a", "\xc2\xa0", "z"});
  CHECK(splitter.split("a \xff\xff b") == Pieces{"a", " ", "\xff\xff", " b"});
}

// ---- vocabularies of one's own -------------------------------------------------------------------------------------

// How GPT-2's files spell a byte.
std::string spelling(int byte) {
  const bool visible = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
  static int codes[256] = {};
  if (codes[255] == 0) {
    int next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool seen = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      codes[b] = seen ? b : next++;
    }
  }
  const int code = visible ? byte : codes[byte];
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

// All bytes, the end of text, and "ab", "abc", "bc".
nlohmann::json small_vocabulary() {
  nlohmann::json tokens;
  for (int byte = 0; byte < 256; ++byte) tokens[spelling(byte)] = byte;
  tokens["<|endoftext|>"] = 256;
  tokens["ab"] = 257;
  tokens["abc"] = 258;
  tokens["bc"] = 259;
  return tokens;
}

TEST_CASE("pairs are joined in the order of the file, the leftmost first") {
  const TemporaryFolder folder;
  const std::string tokens = folder.write("tokens.json", small_vocabulary().dump());
  const Tokenizer left(tokens, folder.write("left", "#version: 0.2\na b\nab c\nb c\n"));
  CHECK(left.encode("abcbc") == std::vector<int32_t>{258, 259});
  const Tokenizer right(tokens, folder.write("right", "b c\r\na b\r\n"));
  CHECK(right.encode("abcab") == std::vector<int32_t>{'a', 259, 257});
  CHECK(left.encode("ab<|endoftext|>c") == std::vector<int32_t>{257, 256, 'c'});
  CHECK_THROWS_AS(left.decode({260}), ValueError);
  CHECK_THROWS_AS(left.decode({-1}), ValueError);
}

TEST_CASE("files that are no vocabulary are refused in one line that names them") {
  const TemporaryFolder folder;
  const std::string good_tokens = folder.write("tokens.json", small_vocabulary().dump());
  const std::string good_merges = folder.write("merges", "a b\n");
  const auto refuses = [&](const std::string& tokens, const std::string& merges, const std::string& message) {
    CAPTURE(message);
    try {
      const Tokenizer tokenizer(tokens, merges);
      FAIL_CHECK("accepted");
    } catch (const IOError& error) {
      const std::string what = error.what();
      CHECK(what.find(message) != what.npos);
      CHECK(what.find('\n') == what.npos);
      CHECK(what.starts_with(folder.path()));
    }
  };
  refuses(folder / "missing.json", good_merges, "cannot open");
  refuses(good_tokens, folder / "missing.bpe", "cannot open");
  const auto refuses_tokens = [&](const std::string& content, const std::string& message) {
    refuses(folder.write("bad.json", content), good_merges, message);
  };
  refuses_tokens("", "no vocabulary");
  refuses_tokens("{\"a\": 0", "no vocabulary");
  refuses_tokens("[1, 2]", "no vocabulary");
  refuses_tokens("{}", "no vocabulary");
  refuses_tokens(std::string(100000, '['), "no vocabulary");
  refuses_tokens("{\"a\": 0}", "no token of the byte 0");
  const auto changed = [](const char* key, const nlohmann::json& value) {
    nlohmann::json tokens = small_vocabulary();
    tokens[key] = value;
    return tokens.dump();
  };
  refuses_tokens(changed("a", -1), "no number below 260");
  refuses_tokens(changed("a", 260), "no number below 260");
  refuses_tokens(changed("a", 18446744073709551615u), "no number below 260");
  refuses_tokens(changed("a", 1.5), "no number below 260");
  refuses_tokens(changed("a", "b"), "no number below 260");
  refuses_tokens(changed("a", 98), "two tokens have the number 98");
  refuses_tokens(changed("a b", 260), "not spelled as a token");
  refuses_tokens(changed("\xe6\xbc\xa2", 260), "not spelled as a token");
  nlohmann::json without = small_vocabulary();
  without.erase("<|endoftext|>");
  without["zz"] = 256;
  refuses_tokens(without.dump(), "no token <|endoftext|>");
  const auto refuses_merges = [&](const std::string& content, const std::string& message) {
    refuses(good_tokens, folder.write("bad.bpe", content), message);
  };
  refuses_merges("", "no pairs");
  refuses_merges("#version: 0.2\n", "no pairs");
  refuses_merges("a b\nab\n", "line 2 is no pair");
  refuses_merges("a b c\n", "line 1 is no pair");
  refuses_merges("a \xff\n", "line 1 is no pair");
  refuses_merges("a z\n", "line 1 joins what");
}

}  // namespace
