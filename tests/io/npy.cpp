#include "core/io/npy.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/io/crc32.h"
#include "core/io/little_endian.h"
#include "rushlight.h"
#include "tests/fixtures.h"
#include "tests/temporary_folder.h"

using namespace rush::io;
using rush::Tensor;
using rush::testing::file_content;
using rush::testing::TemporaryFolder;

namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

const nlohmann::json& fixtures() {
  static const nlohmann::json all = read_fixtures("io/npy.json");
  return all;
}

rush::ScalarType dtype_of(const std::string& name) {
  using namespace rush;
  const std::pair<const char*, ScalarType> all[] = {{"|b1", kBool},      {"|u1", kUInt8},      {"|i1", kInt8},
                                                    {"<i2", kInt16},     {"<i4", kInt32},      {"<i8", kInt64},
                                                    {"<f2", kFloat16},   {"<f4", kFloat32},    {"<f8", kFloat64},
                                                    {"<c8", kComplex64}, {"<c16", kComplex128}};
  for (const auto& [text, dtype] : all) {
    if (name == text) return dtype;
  }
  throw std::invalid_argument(name);
}

// What make_npy_fixtures.py calls counting.
Tensor counting(const std::vector<int64_t>& sizes, rush::ScalarType dtype) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i % 2 ? -i - 1 : i + 1));
  const Tensor all = rush::tensor(rush::ArrayRef<double>(values), rush::kFloat64).view(sizes);
  if (dtype == rush::kBool) return all.gt(0);
  return (dtype == rush::kUInt8 ? all.abs() : all).to(dtype);
}

bool same_values(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && a.equal(b);
}

// The message with which `load` refuses the content, after the checks that every refusal must pass; "" if it does not.
template <class Load>
std::string failure(const Load& load, const std::string& content) {
  static TemporaryFolder folder;
  const std::string path = folder.write("case", content);
  std::string message;
  try {
    load(path);
    return "";
  } catch (const rush::IOError& error) {
    message = error.what();
  } catch (const rush::NotImplementedError& error) {
    message = error.what();
  }
  CHECK(message.find('\n') == std::string::npos);
  CHECK(message.substr(0, path.size() + 2) == path + ": ");
  return message.substr(path.size() + 2);
}
std::string npy_failure(const std::string& content) { return failure(load_npy, content); }
std::string npz_failure(const std::string& content) { return failure(load_npz, content); }

std::string npy_file(const std::string& header, const std::string& data, int version = 1) {
  std::string file = rush::str("\x93NUMPY", static_cast<char>(version), std::string(1, '\0'));
  put_little_endian(file, header.size(), version == 1 ? 2 : 4);
  return file + header + data;
}

std::string replaced(std::string text, size_t at, uint64_t value, size_t size) {
  std::string bytes;
  put_little_endian(bytes, value, size);
  return text.replace(at, size, bytes);
}

const std::string kData = std::string("\0\0\x80?\0\0\0@", 8);  // two floats

}  // namespace

TEST_CASE("npy: NumPy's files are read, and written byte for byte") {
  const TemporaryFolder folder;
  for (const nlohmann::json& each : fixtures()["arrays"]) {
    const std::string content = from_hex(each["hex"]);
    const auto shape = each["shape"].get<std::vector<int64_t>>();
    CAPTURE(each["dtype"]);
    CAPTURE(each["order"]);
    const Tensor expected = counting(shape, dtype_of(each["dtype"])), loaded = load_npy(folder.write("a", content));
    CHECK(same_values(loaded, expected));
    if (each["order"] == "F" && expected.numel() > 0 && shape[1] != 1) {
      CHECK(!loaded.is_contiguous());
      CHECK(loaded.t().is_contiguous());
    }
    if (each.contains("version")) continue;
    save_npy(folder / "b", loaded);
    CHECK(file_content(folder / "b") == content);
  }
}

TEST_CASE("npy: strided tensors and those with a gradient are saved as their values") {
  const TemporaryFolder folder;
  const Tensor cube = counting({2, 3, 4}, rush::kFloat32).requires_grad_();
  for (const Tensor& view :
       {cube.permute({1, 0, 2}), cube.select(1, 2), cube.narrow(2, 1, 2), cube.permute({2, 1, 0})}) {
    save_npy(folder / "a", view);
    const Tensor loaded = load_npy(folder / "a");
    CHECK(same_values(loaded, view.detach()));
    CHECK(!loaded.requires_grad());
  }
}

TEST_CASE("npy: what NumPy cannot hold is refused, and the old file stays") {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "old");
  CHECK_THROWS_AS(save_npy(path, rush::ones(2, rush::kBFloat16)), rush::TypeError);
  CHECK_THROWS_AS(save_npy(path, Tensor()), rush::ValueError);
  CHECK_THROWS_AS(save_npy(path, rush::empty({2}, rush::kMeta)), rush::ValueError);
  CHECK_THROWS_AS(save_npz(path, {{"a", rush::ones(2)}, {"a", rush::ones(2)}}), rush::ValueError);
  CHECK_THROWS_AS(save_npz(path, {{"a", rush::ones(2)}, {"b", rush::ones(2, rush::kBFloat16)}}), rush::TypeError);
  CHECK_THROWS_AS(save_npz(path, {{std::string(70000, 'x'), rush::ones(2)}}), rush::ValueError);
  CHECK_THROWS_AS(save_npy(folder / "none/a", rush::ones(2)), rush::IOError);
  CHECK_THROWS_AS(load_npy(folder / "none"), rush::IOError);
  CHECK_THROWS_AS(load_npz(folder.path()), rush::IOError);
  CHECK(file_content(path) == "old");
  CHECK(folder.file_count() == 1);
}

TEST_CASE("npy: headers that are not of the one form are refused") {
  const struct {
    const char* header;
    const char* message;
  } cases[] = {
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", ""},
      {"{\"shape\":(2,),\"descr\":\"<f4\",\"fortran_order\":True}", ""},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2), }", "shape is no tuple"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': 2, }", "shape is no tuple"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2 1), }", "shape is no tuple"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "not a whole number"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,), }", "shape is no tuple"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,", "not a whole number"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,), }", "not below 2^63"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,), }", "not below 2^63"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "more than 2^63 bytes"},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (0, 4294967296, 4294967296), }", "more than 2^63 bytes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693951,), }", "truncated: an array of shape"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "needs 12 bytes, there are 8"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "4 bytes follow the values"},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }", "neither True nor False"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}", "unknown key"},
      {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "comes twice"},
      {"{'descr': '<f4', 'fortran_order': False}", "lacks descr, fortran_order or shape"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", "text follows"},
      {"{'descr': '<f4, 'fortran_order': False, 'shape': (2,)}", "unsupported dtype"},
      {"{'descr': '<f4", "a string does not end"},
      {"{'descr': '', 'fortran_order': False, 'shape': (2,)}", "unsupported dtype ''"},
      {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "unsupported dtype '|O'"},
      {"{'descr': '|b1', 'fortran_order': False, 'shape': (8,)}", "a bool that is neither 0 nor 1"},
      {"", "not a dictionary"},
      {"[]", "not a dictionary"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.header);
    for (const int version : {1, 2, 3}) {
      const std::string message = npy_failure(npy_file(each.header, kData, version));
      if (*each.message) {
        CHECK(message.find(each.message) != std::string::npos);
      } else {
        CHECK(message == "");
      }
    }
  }
  std::string ones;
  for (int i = 0; i < 65; ++i) ones += "1,";
  CHECK(npy_failure(npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (" + ones + ")}", kData))
            .find("more than 64 dimensions") != std::string::npos);
  const std::string good = npy_file(cases[0].header, kData);
  CHECK(npy_failure("PK" + good).find("not an npy file") == 0);
  CHECK(npy_failure(replaced(good, 6, 4, 1)).find("unsupported npy format version 4.0") == 0);
  CHECK(npy_failure(npy_file(std::string(20000, ' '), "", 2)).find("at most 10000 are accepted") != std::string::npos);
  CHECK(npy_failure(good + "x") == "corrupt: 1 bytes follow the values");
  for (size_t size = 0; size < good.size(); ++size) {
    CHECK(npy_failure(good.substr(0, size)).find("truncated") == 0);
  }
  for (const auto& [name, hex] : fixtures()["unsupported"].items()) {
    CAPTURE(name);
    CHECK(npy_failure(from_hex(hex)).find(name == "structured" ? "structured dtypes" : "unsupported dtype") == 0);
  }
}

TEST_CASE("npz: NumPy's archives are read, and ours are read back") {
  const TemporaryFolder folder;
  const NamedTensors expected = {{"weight", counting({2, 3}, rush::kFloat32)},
                                 {"bias", counting({3}, rush::kFloat64)},
                                 {"steps", counting({}, rush::kInt64)},
                                 {"zeros", rush::zeros({40, 50})},
                                 {"column", counting({2, 3}, rush::kFloat32)}};
  const auto check = [&](const std::string& path) {
    const NamedTensors loaded = load_npz(path);
    REQUIRE(loaded.size() == expected.size());
    for (size_t i = 0; i < loaded.size(); ++i) {
      CHECK(loaded[i].first == expected[i].first);
      CHECK(same_values(loaded[i].second, expected[i].second));
    }
  };
  for (const char* kind : {"stored", "deflated"}) check(folder.write("a", from_hex(fixtures()["npz"][kind])));
  save_npz(folder / "stored", expected);
  check(folder / "stored");
  save_npz(folder / "deflated", expected, NpzCompression::Deflated);
  check(folder / "deflated");
  CHECK(file_content(folder / "deflated").size() + 7000 < file_content(folder / "stored").size());
  save_npz(folder / "none", {{"x", rush::ones({2})}, {"nothing", rush::empty({3, 0})}});
  CHECK(load_npz(folder / "none")[1].second.sizes() == rush::IntArrayRef{3, 0});
  save_npz(folder / "empty", {});
  CHECK(load_npz(folder / "empty").empty());
}

TEST_CASE("npz: a flipped bit in the values is found by the checksum, a cut anywhere by the directory") {
  for (const char* kind : {"stored", "deflated"}) {
    const std::string whole = from_hex(fixtures()["npz"][kind]);
    for (size_t size = 0; size < whole.size(); size += 7) CHECK(!npz_failure(whole.substr(0, size)).empty());
  }
  const TemporaryFolder folder;
  save_npz(folder / "a", {{"x", rush::ones({100})}});
  const std::string whole = file_content(folder / "a");
  const size_t values = whole.find("\x93NUMPY") + 128;
  for (size_t bit = 0; bit < 3200; bit += 37) {
    std::string changed = whole;
    changed[values + bit / 8] = static_cast<char>(changed[values + bit / 8] ^ (1 << bit % 8));
    CHECK(npz_failure(changed) == "corrupt: entry 'x.npy' does not have its checksum (CRC-32)");
  }
}

TEST_CASE("npz: directories that lie are refused") {
  const TemporaryFolder folder;
  save_npz(folder / "a", {{"x", rush::ones({4})}, {"y", rush::ones({4})}}, NpzCompression::Deflated);
  const std::string whole = file_content(folder / "a");
  const size_t central = whole.find("PK\x01\x02"), second = whole.find("PK\x01\x02", central + 1);
  const size_t end64 = whole.find("PK\x06\x06"), sizes = central + 46 + 5 + 4;
  const struct {
    const char* what;
    std::string content;
    const char* message;
  } cases[] = {
      {"no archive", "12345678", "no end of a ZIP archive"},
      {"encrypted", replaced(whole, central + 8, 0x801, 2), "is encrypted"},
      {"bzip2", replaced(whole, central + 10, 12, 2), "compressed by method 12"},
      {"stored in a wrong size", replaced(whole, central + 10, 0, 2), "another size than it has"},
      {"a bomb", replaced(whole, sizes, uint64_t{1} << 40, 8), "larger than it can unpack to"},
      {"overflowing", replaced(whole, sizes, ~uint64_t{0}, 8), "larger than it can unpack to"},
      {"too much data", replaced(whole, sizes + 8, ~uint64_t{0}, 8), "lies outside"},
      {"outside", replaced(whole, sizes + 16, uint64_t{1} << 63, 8), "lies outside"},
      {"elsewhere", replaced(whole, sizes + 16, 1, 8), "is not where the directory says"},
      {"overlapping", replaced(whole, sizes + 16 + (second - central), 0, 8), "overlap"},
      {"same name", replaced(whole, second + 46, 'x', 1), "two entries are named 'x.npy'"},
      {"shorter", replaced(whole, sizes, 130, 8), "needs 16 bytes, there are 2"},
      {"longer", replaced(whole, sizes, 150, 8), "6 bytes follow the values"},
      {"no 64-bit field", replaced(whole, sizes - 4, 7, 2), "has no 64-bit sizes"},
      {"short 64-bit field", replaced(whole, sizes - 2, 8, 2), "lacks a 64-bit size"},
      {"other file", replaced(whole, central + 46 + 2, 'q', 1), "is no .npy file"},
      {"more entries", replaced(whole, end64 + 32, 3, 8), "it announces 3"},
      {"directory elsewhere", replaced(whole, end64 + 48, 7, 8), "does not reach its end"},
      {"directory past the end", replaced(whole, end64 + 48, ~uint64_t{0}, 8), "does not reach its end"},
      {"several files", replaced(whole, end64 + 16, 1, 4), "several files"},
      {"end record elsewhere", replaced(whole, end64 + 56 + 8, 0, 8), "no 64-bit end record"},
  };
  REQUIRE(npz_failure(whole).empty());
  for (const auto& each : cases) {
    CAPTURE(each.what);
    const std::string message = npz_failure(each.content);
    CAPTURE(message);
    CHECK(message.find(each.message) != std::string::npos);
  }
}

TEST_CASE("npy and npz: changed bytes never crash the readers") {
  std::vector<std::string> files = {from_hex(fixtures()["npz"]["stored"]), from_hex(fixtures()["npz"]["deflated"])};
  for (const nlohmann::json& each : fixtures()["arrays"]) files.push_back(from_hex(each["hex"]));
  std::mt19937 random(1);
  for (int round = 0; round < 4000; ++round) {
    const size_t which = round % 2 ? random() % 2 : random() % files.size();
    std::string changed = files[which];
    for (unsigned n = 1 + random() % 3; n > 0; --n) changed[random() % changed.size()] = static_cast<char>(random());
    which < 2 ? npz_failure(changed) : npy_failure(changed);
  }
}
