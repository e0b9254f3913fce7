#include "core/io/safetensors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/error/error.h"
#include "core/io/read_file.h"
#include "rushlight.h"
#include "tests/io/load_failure.h"
#include "tests/temporary_folder.h"

using namespace rush::io;
using rush::Tensor;
using rush::testing::file_content;
using rush::testing::TemporaryFolder;

namespace {

std::string file_with(const std::string& header, const std::string& data = "") {
  std::string content;
  for (int shift = 0; shift < 64; shift += 8) content += static_cast<char>(uint64_t{header.size()} >> shift);
  return content + header + data;
}

// What the Python package writes for {"b": 2 x 2 floats, "a": three bools, "e": 0 x 3 int64}.
const std::string kHeader =
    R"({"__metadata__":{"k":"v \"q\""},"e":{"dtype":"I64","shape":[0,3],"data_offsets":[0,0]},)"
    R"("b":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"a":{"dtype":"BOOL","shape":[3],"data_offsets":[16,19]}} )";
const std::string kData("\x00\x00\xc0?\x00\x00\x00\xc0\x00\x00@@\x00\x00\x80@\x01\x00\x01", 19);

std::string safetensors_failure(const std::string& content) {
  return rush::testing::load_failure([](const std::string& path) { load_safetensors(path); }, content);
}

std::string one_tensor(const std::string& fields) { return file_with("{\"t\":{" + fields + "}}", "12345678"); }

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() &&
         (a.nbytes() == 0 || std::memcmp(a.data_ptr(), b.data_ptr(), static_cast<size_t>(a.nbytes())) == 0);
}

Tensor counting_bytes(rush::IntArrayRef sizes, rush::ScalarType dtype) {
  Tensor t = rush::empty(sizes, dtype);
  auto* bytes = static_cast<uint8_t*>(t.data_ptr());
  for (int64_t i = 0; i < t.nbytes(); ++i) bytes[i] = static_cast<uint8_t>(dtype == rush::kBool ? i % 2 : 7 * i + 1);
  return t;
}

}  // namespace

TEST_CASE("safetensors: reads what the Python package writes") {
  TemporaryFolder folder;
  SafetensorsFile file(folder.write("a", file_with(kHeader, kData)));
  REQUIRE(file.entries().size() == 3);
  CHECK(file.entries()[0].name == "e");
  CHECK(file.metadata() == Metadata{{"k", "v \"q\""}});
  CHECK(file.find("c") == nullptr);
  REQUIRE(file.find("a") != nullptr);
  CHECK(file.find("a")->dtype == rush::kBool);
  CHECK(file.find("a")->shape == std::vector<int64_t>{3});

  const Tensor b = file.read("b");
  CHECK(b.sizes() == rush::IntArrayRef{2, 2});
  CHECK(b.is_contiguous());
  const float expected[] = {1.5f, -2, 3, 4};
  CHECK(std::equal(expected, expected + 4, b.data_ptr<float>()));
  CHECK(file.read("a").data_ptr<bool>()[2]);
  CHECK(file.read("e").sizes() == rush::IntArrayRef{0, 3});
  CHECK_THROWS_WITH_AS(file.read("c"), doctest::Contains("has no tensor named 'c'"), rush::IOError);

  SafetensorsFile moved = std::move(file);
  CHECK(same_bytes(moved.read("b"), b));
}

TEST_CASE("safetensors: writes the bytes that the format prescribes") {
  TemporaryFolder folder;
  const std::string path = folder / "a";
  save_safetensors(path, {{"flag", rush::tensor({true})}, {"x", rush::tensor({1.0f, 2.0f})}}, {{"format", "pt"}});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"flag":{"dtype":"BOOL","shape":[1],"data_offsets":[8,9]},)"
      R"("x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  CHECK(file_content(path) == file_with(padded, std::string("\x00\x00\x80?\x00\x00\x00@\x01", 9)));
}

TEST_CASE("safetensors: the format's names of the dtypes without arithmetic") {
  using namespace rush;
  TemporaryFolder folder;
  const std::pair<ScalarType, const char*> names[] = {
      {kFloat8_e4m3fn, "F8_E4M3"}, {kFloat8_e5m2, "F8_E5M2"}, {kUInt16, "U16"}, {kUInt32, "U32"}, {kUInt64, "U64"}};
  for (const auto& [dtype, text] : names) {
    save_safetensors(folder / "a", {{"x", tensor({1, 2}, dtype)}});
    CHECK(file_content(folder / "a").find(str("\"dtype\":\"", text, "\"")) != std::string::npos);
  }
}

TEST_CASE("safetensors: every dtype and shape comes back, in the order in which it was saved") {
  using namespace rush;
  TemporaryFolder folder;
  NamedTensors saved;
  for (int i = 0; i < kNumScalarTypes; ++i) {
    const auto dtype = static_cast<ScalarType>(i);
    if (dtype == kComplex128) continue;  // which the format lacks
    for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{}, {3}, {2, 0, 4}, {2, 3, 5}}) {
      saved.emplace_back(str(name(dtype), " ", sizes), counting_bytes(sizes, dtype));
    }
  }
  saved.emplace_back("quote \" newline \n umlaut \u00fc", counting_bytes({2}, kFloat32));
  save_safetensors(folder / "a", saved);
  const NamedTensors loaded = load_safetensors(folder / "a");
  REQUIRE(loaded.size() == saved.size());
  for (size_t i = 0; i < saved.size(); ++i) {
    CAPTURE(saved[i].first);
    CHECK(loaded[i].first == saved[i].first);
    CHECK(same_bytes(loaded[i].second, saved[i].second));
  }

  save_safetensors(folder / "empty", {});
  CHECK(load_safetensors(folder / "empty").empty());
}

TEST_CASE("safetensors: a strided tensor is saved row-major, one with a gradient without its graph") {
  TemporaryFolder folder;
  const Tensor matrix = rush::tensor({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}).view({2, 3}).requires_grad_();
  save_safetensors(folder / "a", {{"t", matrix.t()}, {"row", matrix.select(0, 1)}});
  const SafetensorsFile file(folder / "a");
  const Tensor t = file.read("t");
  const float expected[] = {1, 4, 2, 5, 3, 6};
  CHECK(t.sizes() == rush::IntArrayRef{3, 2});
  CHECK(std::equal(expected, expected + 6, t.data_ptr<float>()));
  CHECK(!t.requires_grad());
  CHECK(file.read("row").data_ptr<float>()[0] == 4);
}

TEST_CASE("safetensors: what cannot be saved is refused and leaves the old file") {
  TemporaryFolder folder;
  const std::string path = folder.write("a", "old");
  const Tensor t = rush::tensor({1.0f});
  CHECK_THROWS_WITH_AS(save_safetensors(path, {{"x", t}, {"x", t}}), doctest::Contains("two tensors are named 'x'"),
                       rush::ValueError);
  CHECK_THROWS_AS(save_safetensors(path, {{"__metadata__", t}}), rush::ValueError);
  CHECK_THROWS_AS(save_safetensors(path, {{"x", Tensor()}}), rush::ValueError);
  CHECK_THROWS_AS(save_safetensors(path, {{"x", rush::empty({2}, rush::kMeta)}}), rush::ValueError);
  CHECK_THROWS_WITH_AS(save_safetensors(path, {{"x", t.to_sparse()}}), doctest::Contains("'x' is undefined, sparse"),
                       rush::ValueError);
  CHECK_THROWS_AS(save_safetensors(path, {{"not UTF-8: \xff", t}}), rush::ValueError);
  CHECK_THROWS_AS(save_safetensors(path, {{"x", t}}, {{"k", "\xff"}}), rush::ValueError);
  CHECK_THROWS_AS(save_safetensors(path, {{"x", rush::empty({2}, rush::kComplex128)}}), rush::TypeError);
  CHECK_THROWS_AS(save_safetensors(folder / "none/a", {{"x", t}}), rush::IOError);
  CHECK(file_content(path) == "old");
  CHECK(folder.file_count() == 1);
}

TEST_CASE("safetensors: a file cut anywhere, or with bytes behind it, is refused") {
  const std::string whole = file_with(kHeader, kData);
  REQUIRE(safetensors_failure(whole).empty());
  for (size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK(safetensors_failure(whole.substr(0, size)).find("truncated") == 0);
  }
  CHECK(safetensors_failure(whole + "x") == "corrupt: 1 bytes after the last tensor");
  CHECK_THROWS_AS(SafetensorsFile("/"), rush::IOError);
}

TEST_CASE("safetensors: a header that contradicts itself or the data is refused") {
  const struct {
    const char* fields;
    const char* message;
  } cases[] = {
      {R"("dtype":"F32","shape":[2],"data_offsets":[0,8])", ""},
      {R"("data_offsets":[0,8],"shape":[2,1],"dtype":"F32")", ""},
      {R"("dtype":"F32","shape":[2],"data_offsets":[0,7])", "needs 8 bytes, it has 7"},
      {R"("dtype":"F32","shape":[1],"data_offsets":[0,8])", "needs 4 bytes, it has 8"},
      {R"("dtype":"F32","shape":[2],"data_offsets":[8,16])", "lies at bytes 8 to 16 of 8"},
      {R"("dtype":"F32","shape":[2],"data_offsets":[8,0])", "lies at bytes 8 to 0 of 8"},
      {R"("dtype":"F32","shape":[1],"data_offsets":[4,8])", "begins at byte 4, the one before it ends at 0"},
      {R"("dtype":"F32","shape":[1],"data_offsets":[0,4])", "4 bytes after the last tensor"},
      {R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])", "unexpected a number in tensor 't'"},
      {R"("dtype":"F32","shape":[2],"data_offsets":[0])", "needs two data_offsets"},
      {R"("dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551608])", "lies at bytes"},
      {R"("dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551624])", "unexpected a fraction"},
      {R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])", "more than 2^63 bytes"},
      {R"("dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0])", "more than 2^63 bytes"},
      {R"("dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8])", "absurd shape"},
      {R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])", "unexpected a negative number"},
      {R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])", "unexpected a fraction"},
      {R"("dtype":"F32","shape":[[2]],"data_offsets":[0,8])", "unexpected an array"},
      {R"("dtype":"F32","shape":[true],"data_offsets":[0,8])", "unexpected a boolean"},
      {R"("dtype":"F32","shape":2,"data_offsets":[0,8])", "unexpected a number"},
      {R"("dtype":"F32","shape":null,"data_offsets":[0,8])", "unexpected null"},
      {R"("dtype":1,"shape":[2],"data_offsets":[0,8])", "unexpected a number"},
      {R"("dtype":{},"shape":[2],"data_offsets":[0,8])", "unexpected an object"},
      {R"("dtype":"F128","shape":[2],"data_offsets":[0,8])", "unsupported dtype 'F128'"},
      {R"("dtype":"F8_E8M0","shape":[8],"data_offsets":[0,8])", "unsupported dtype 'F8_E8M0'"},
      {R"("dtype":"F32","shape":[2])", "lacks its dtype, shape or data_offsets"},
      {R"("shape":[2],"data_offsets":[0,8])", "lacks its dtype, shape or data_offsets"},
      {R"("dtype":"F32","data_offsets":[0,8])", "lacks its dtype, shape or data_offsets"},
      {R"("dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8])", "'dtype' of tensor 't' comes twice"},
      {R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1)", "unknown key 'x'"},
      {R"("dtype":"BOOL","shape":[8],"data_offsets":[0,8])", "holds a bool that is neither 0 nor 1"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.fields);
    const std::string message = safetensors_failure(one_tensor(each.fields));
    if (*each.message) {
      CHECK(message.find(each.message) != std::string::npos);
    } else {
      CHECK(message == "");
    }
  }

  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  CHECK(safetensors_failure(one_tensor("\"dtype\":\"F64\",\"shape\":[" + ones + "],\"data_offsets\":[0,8]"))
            .find("absurd shape") != std::string::npos);
}

TEST_CASE("safetensors: overlaps, gaps and names that come twice are refused") {
  const auto entry = [](const std::string& name, int begin, int end) {
    return rush::str("\"", name, "\":{\"dtype\":\"U8\",\"shape\":[", end - begin, "],\"data_offsets\":[", begin, ",",
                     end, "]}");
  };
  const auto two = [&](const std::string& first, const std::string& second) {
    return safetensors_failure(file_with("{" + first + "," + second + "}", "12345678"));
  };
  CHECK(two(entry("a", 0, 4), entry("b", 4, 8)) == "");
  CHECK(two(entry("a", 4, 8), entry("b", 0, 4)) == "");
  CHECK(two(entry("a", 0, 5), entry("b", 4, 8)).find("begins at byte 4, the one before it ends at 5") !=
        std::string::npos);
  CHECK(two(entry("a", 0, 8), entry("b", 0, 8)).find("begins at byte 0, the one before it ends at 8") !=
        std::string::npos);
  CHECK(two(entry("a", 0, 3), entry("b", 4, 8)).find("begins at byte 4, the one before it ends at 3") !=
        std::string::npos);
  CHECK(two(entry("a", 0, 4), entry("a", 4, 8)).find("'a' comes twice") != std::string::npos);
}

TEST_CASE("safetensors: headers of another form are refused") {
  for (const char* header :
       {"", "[]", "1", "{", "{]", "{}}", "{} x", "{\"t\":1}", "{\"t\":[]}", "{\"__metadata__\":[]}",
        "{\"__metadata__\":{\"k\":1}}", "{\"__metadata__\":{\"k\":null}}", "{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}}",
        "{\"__metadata__\":{},\"__metadata__\":{}}", "{\"\xff\":{}}", " {}"}) {
    CAPTURE(header);
    CHECK(!safetensors_failure(file_with(header)).empty());
  }
  CHECK(safetensors_failure(file_with("{}   ")).empty());
  CHECK(safetensors_failure(file_with("{}", "x")) == "corrupt: 1 bytes after the last tensor");
  CHECK(safetensors_failure(file_with("{\"t\":" + std::string(100000, '['))).find("unexpected an array") !=
        std::string::npos);

  std::string huge = file_with("{}");
  huge[4] = 1;  // 2^32 bytes of header
  CHECK(safetensors_failure(huge).find("announces a header of 4294967298 bytes, at most 100000000") !=
        std::string::npos);
}

TEST_CASE("safetensors: changed bytes never crash the reader") {
  const std::string whole = file_with(kHeader, kData);
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string changed = whole;
    for (unsigned n = 1 + random() % 3; n > 0; --n) changed[random() % changed.size()] = static_cast<char>(random());
    safetensors_failure(changed);
  }
}
