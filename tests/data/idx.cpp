#include "nn/data/datasets/idx.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "core/error/error.h"
#include "tests/gzip_file.h"
#include "tests/temporary_folder.h"

using rush::data::datasets::IdxFile;
using rush::data::datasets::IdxType;
using rush::data::datasets::read_idx;
using rush::testing::gzip;
using rush::testing::TemporaryFolder;
using Bytes = std::vector<uint8_t>;

namespace {

Bytes header(uint8_t type, std::vector<uint32_t> dims) {
  Bytes bytes{0, 0, type, static_cast<uint8_t>(dims.size())};
  for (uint32_t dim : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(dim >> shift));
  }
  return bytes;
}

// 3 x 4 x 5 bytes that count up.
Bytes small_file() {
  Bytes bytes = header(0x08, {3, 4, 5});
  for (uint8_t i = 0; i < 60; ++i) bytes.push_back(i);
  return bytes;
}

// The message with which reading `bytes` fails, after the checks that every failure must pass; "" if it succeeds.
std::string idx_failure(const Bytes& bytes) {
  static TemporaryFolder folder;
  std::string path = folder.write("case.idx", bytes);
  try {
    read_idx(path);
  } catch (const rush::IOError& error) {
    std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    CHECK(message.substr(0, path.size() + 2) == path + ": ");
    return message.substr(path.size() + 2);
  }
  return "";
}

}  // namespace

TEST_CASE("read_idx: plain and gzipped files give the same array") {
  TemporaryFolder folder;
  Bytes plain = small_file();
  for (const Bytes& stored : {plain, gzip(plain)}) {
    IdxFile idx = read_idx(folder.write("a", stored));
    CHECK(idx.type == IdxType::UInt8);
    CHECK(idx.dims == std::vector<int64_t>{3, 4, 5});
    CHECK(idx.content == plain);
    REQUIRE(idx.values().size() == 60);
    CHECK(idx.values()[0] == 0);
    CHECK(idx.values()[59] == 59);
  }
}

TEST_CASE("read_idx: the members of a gzip file are one stream, cut wherever they are") {
  TemporaryFolder folder;
  const Bytes plain = small_file();
  const auto joined = [](std::initializer_list<Bytes> members) {
    Bytes all;
    for (const Bytes& member : members) all.insert(all.end(), member.begin(), member.end());
    return all;
  };
  for (const std::ptrdiff_t cut : {0, 3, 16, 40, 76}) {
    const Bytes first(plain.begin(), plain.begin() + cut), second(plain.begin() + cut, plain.end());
    CHECK(read_idx(folder.write("a", joined({gzip(first), gzip(second)}))).content == plain);
    CHECK(read_idx(folder.write("a", joined({gzip({}), gzip(first), gzip(second), gzip({})}))).content == plain);
  }
  const Bytes whole = gzip(plain);
  CHECK(idx_failure(joined({whole, gzip(Bytes{1})})) == "trailing bytes after the values");
  CHECK(idx_failure(joined({whole, Bytes{0, 0}})) == "2 trailing bytes after the compressed data");
  CHECK(idx_failure(joined({whole, Bytes{0x1f, 0x8b}})) == "truncated: the compressed data end early");
  Bytes broken = joined({gzip(Bytes(plain.begin(), plain.begin() + 40)), gzip(Bytes(plain.begin() + 40, plain.end()))});
  broken[broken.size() - 6] ^= 1;  // the second member's checksum
  CHECK(idx_failure(broken).starts_with("corrupt compressed data"));
}

TEST_CASE("read_idx: element sizes and an empty dimension") {
  TemporaryFolder folder;
  for (auto [type, size] : {std::pair{0x08, 1}, {0x09, 1}, {0x0B, 2}, {0x0C, 4}, {0x0D, 4}, {0x0E, 8}}) {
    Bytes bytes = header(static_cast<uint8_t>(type), {6});
    bytes.resize(bytes.size() + static_cast<size_t>(6 * size));
    CHECK(read_idx(folder.write("a", bytes)).values().size() == static_cast<size_t>(6 * size));
  }
  CHECK(read_idx(folder.write("a", header(0x08, {0, 28, 28}))).values().empty());
}

TEST_CASE("read_idx: a file cut anywhere is refused") {
  for (const Bytes& whole : {small_file(), gzip(small_file())}) {
    for (size_t size = 0; size < whole.size(); ++size) {
      CAPTURE(size);
      CHECK(idx_failure(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))).find("truncated") ==
            0);
    }
  }
}

TEST_CASE("read_idx: trailing bytes are refused") {
  Bytes plain = small_file();
  plain.push_back(7);
  CHECK(idx_failure(plain) == "1 trailing bytes after the values");
  CHECK(idx_failure(gzip(plain)) == "trailing bytes after the values");
  Bytes compressed = gzip(small_file());
  compressed.insert(compressed.end(), {1, 2, 3});
  CHECK(idx_failure(compressed) == "3 trailing bytes after the compressed data");
}

TEST_CASE("read_idx: every wrong byte in a header is refused") {
  Bytes good = small_file();
  for (size_t at = 0; at < 16; ++at) {
    for (int value = 0; value < 256; ++value) {
      Bytes bad = good;
      bad[at] = static_cast<uint8_t>(value);
      // 0x09 is int8: another type of the same size is a valid file.
      bool valid = bad == good || (at == 2 && value == 0x09);
      CAPTURE(at);
      CAPTURE(value);
      CHECK(idx_failure(bad).empty() == valid);
    }
  }
}

TEST_CASE("read_idx: a flipped bit in a compressed file is refused or harmless") {
  Bytes plain = small_file(), compressed = gzip(plain);
  TemporaryFolder folder;
  for (size_t bit = 0; bit < compressed.size() * 8; ++bit) {
    Bytes bad = compressed;
    bad[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    CAPTURE(bit);
    // Bits of the gzip header that do not matter (time stamp, system) may change; the content may not.
    if (idx_failure(bad).empty()) CHECK(read_idx(folder.write("a", bad)).content == plain);
  }
}

TEST_CASE("read_idx: absurd sizes are refused before memory is allocated") {
  const uint32_t huge = 0xFFFFFFFF;
  CHECK(idx_failure(header(0x08, {huge, huge, huge})).find("multiply to more than 2^64") != std::string::npos);
  CHECK(idx_failure(header(0x0E, std::vector<uint32_t>(255, huge))).find("multiply to more than 2^64") !=
        std::string::npos);
  CHECK(idx_failure(header(0x08, {huge, huge})).find("promises 18446744065119617025 bytes") != std::string::npos);
  CHECK(idx_failure(gzip(header(0x08, {huge, 28, 28}))).find("promises 3367254359280 bytes") != std::string::npos);
  CHECK(idx_failure(header(0x08, {})) == "corrupt IDX header: it has no dimensions");

  TemporaryFolder folder;
  std::string path = folder.write("a", small_file());
  CHECK(read_idx(path, 60).values().size() == 60);
  CHECK_THROWS_WITH_AS(read_idx(path, 59), doctest::Contains("too large: 60 bytes of values, at most 59"),
                       rush::IOError);
}

TEST_CASE("read_idx: random bytes never crash it") {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    Bytes bytes(random() % 64);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    // Half of the rounds get past the first check.
    const Bytes start = round % 2 ? Bytes{0, 0, 8, 1} : Bytes{0x1f, 0x8b, 8, 0};
    std::copy_n(start.begin(), std::min(start.size(), bytes.size()), bytes.begin());
    CHECK(!idx_failure(bytes).empty());
  }
}

TEST_CASE("read_idx: a missing file and a folder are refused") {
  TemporaryFolder folder;
  CHECK_THROWS_AS(read_idx(folder / "none"), rush::IOError);
  CHECK_THROWS_AS(read_idx(folder.path()), rush::IOError);
}
