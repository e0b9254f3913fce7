#include "core/io/npy.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/io/crc32.h"
#include "core/io/little_endian.h"
#include "core/io/zip_archive.h"
#include "rushlight.h"
#include "tests/fixtures.h"
#include "tests/io/from_hex.h"
#include "tests/io/load_failure.h"
#include "tests/temporary_folder.h"

using namespace rush::io;
using rush::Tensor;
using rush::testing::file_content;
using rush::testing::from_hex;
using rush::testing::load_failure;
using rush::testing::TemporaryFolder;

namespace {

const nlohmann::json& fixtures() {
  static const nlohmann::json all = read_fixtures("io/npy.json");
  return all;
}

rush::ScalarType dtype_of(const std::string& name) {
  using namespace rush;
  const std::pair<const char*, ScalarType> all[] = {
      {"|b1", kBool},        {"|u1", kUInt8},   {"|i1", kInt8},    {"<i2", kInt16},   {"<i4", kInt32},
      {"<i8", kInt64},       {"<f2", kFloat16}, {"<f4", kFloat32}, {"<f8", kFloat64}, {"<c8", kComplex64},
      {"<c16", kComplex128}, {"<u2", kUInt16},  {"<u4", kUInt32},  {"<u8", kUInt64}};
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
  return (traits_of(dtype).is_signed ? all : all.abs()).to(dtype);
}

bool same_values(const Tensor& a, const Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && a.equal(b);
}

std::string npy_failure(const std::string& content) { return load_failure(load_npy, content); }
std::string npz_failure(const std::string& content) {
  return load_failure([](const std::string& path) { return load_npz(path); }, content);
}

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

const std::string kTwoFloats = std::string("\0\0\x80?\0\0\0@", 8);

// ---- archives that libzip would not write

struct Member {
  std::string name, packed;
  uint64_t size = packed.size(), crc = crc_of(packed), method = 0, flags = 0;
  std::optional<uint64_t> at = {};  // where the directory says that it lies; else where it does

  Member named(std::string other) const {
    Member member = *this;
    member.name = std::move(other);
    return member;
  }
  Member placed(uint64_t where) const {
    Member member = *this;
    member.at = where;
    return member;
  }
  Member sized(uint64_t other) const {
    Member member = *this;
    member.size = other;
    return member;
  }
  static uint64_t crc_of(const std::string& bytes) {
    Crc32 sum;
    sum.update(bytes.data(), bytes.size());
    return sum.value();
  }
};

struct Field {
  uint64_t value;
  size_t size;
};
void put(std::string& out, std::initializer_list<Field> fields) {
  for (const Field& field : fields) put_little_endian(out, field.value, field.size);
}

constexpr uint64_t kIn64 = 0xffffffff;

// PKWARE's APPNOTE 6.3, 4.3.7 to 4.3.16; `wide` puts every size and offset into 64 bits.
std::string local_record(const Member& member, bool wide) {
  std::string out;
  put(out, {{0x04034b50, 4}, {45, 2}, {member.flags, 2}, {member.method, 2}, {0x210000, 4}, {member.crc, 4}});
  put(out, {{wide ? kIn64 : member.packed.size(), 4}, {wide ? kIn64 : member.size, 4}});
  put(out, {{member.name.size(), 2}, {wide ? 20u : 0u, 2}});
  out += member.name;
  if (wide) put(out, {{1, 2}, {16, 2}, {member.size, 8}, {member.packed.size(), 8}});
  return out + member.packed;
}

std::string zip_of(const std::vector<Member>& members, bool wide = false) {
  std::string out, directory;
  for (const Member& member : members) {
    const uint64_t at = member.at.value_or(out.size());
    put(directory, {{0x02014b50, 4}, {45, 2}, {45, 2}, {member.flags, 2}, {member.method, 2}, {0x210000, 4}});
    put(directory, {{member.crc, 4}, {wide ? kIn64 : member.packed.size(), 4}, {wide ? kIn64 : member.size, 4}});
    put(directory, {{member.name.size(), 2}, {wide ? 28u : 0u, 2}, {0, 2}, {0, 2}, {0, 2}, {0, 4}});
    put(directory, {{wide ? kIn64 : at, 4}});
    directory += member.name;
    if (wide) put(directory, {{1, 2}, {24, 2}, {member.size, 8}, {member.packed.size(), 8}, {at, 8}});
    if (!member.at) out += local_record(member, wide);
  }
  const uint64_t begin = out.size(), size = directory.size(), count = members.size(), end = begin + size;
  out += directory;
  if (wide) {
    put(out, {{0x06064b50, 4}, {44, 8}, {45, 2}, {45, 2}, {0, 8}, {count, 8}, {count, 8}, {size, 8}, {begin, 8}});
    put(out, {{0x07064b50, 4}, {0, 4}, {end, 8}, {1, 4}});
  }
  put(out, {{0x06054b50, 4}, {0, 4}, {wide ? 0xffff : count, 2}, {wide ? 0xffff : count, 2}});
  put(out, {{wide ? kIn64 : size, 4}, {wide ? kIn64 : begin, 4}, {0, 2}});
  return out;
}

std::string npy_of(size_t size, std::string values = "") {
  values.resize(size, '\1');
  return npy_file(rush::str("{'descr': '|u1', 'fortran_order': False, 'shape': (", size, ",), }\n"), values);
}

std::string raw_deflate(const std::string& bytes) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&z, bytes.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

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
  CHECK_THROWS_AS(save_npy(path, rush::ones({2}).to_sparse()), rush::ValueError);
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
      const std::string message = npy_failure(npy_file(each.header, kTwoFloats, version));
      if (*each.message) {
        CHECK(message.find(each.message) != std::string::npos);
      } else {
        CHECK(message == "");
      }
    }
  }
  std::string ones;
  for (int i = 0; i < 65; ++i) ones += "1,";
  CHECK(npy_failure(npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (" + ones + ")}", kTwoFloats))
            .find("more than 64 dimensions") != std::string::npos);
  const std::string good = npy_file(cases[0].header, kTwoFloats);
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

TEST_CASE("npz: what unpacks to far more than the file is refused unless the caller allows it") {
  TemporaryFolder folder;
  const std::string path = folder / "a.npz";
  constexpr uint64_t size = uint64_t{257} << 20, header = 128;
  save_npz(path, {{"a", rush::zeros(size, rush::kUInt8)}}, NpzCompression::Deflated);
  const std::string expected =
      path + ": too large: its arrays unpack to " + std::to_string(size + header) + " bytes, from a file of " +
      std::to_string(std::filesystem::file_size(path)) +
      "; at most 268435456 are accepted: if you trust the file, pass load_npz a larger max_bytes";
  CHECK_THROWS_WITH_AS(load_npz(path), expected.c_str(), rush::IOError);

  save_npz(path, {{"a", rush::zeros(5000)}, {"b", rush::zeros(5000)}}, NpzCompression::Deflated);
  CHECK(load_npz(path).size() == 2);
  CHECK(load_npz(path, 2 * (20000 + header)).size() == 2);
  CHECK_THROWS_WITH_AS(load_npz(path, 2 * (20000 + header) - 1), doctest::Contains("at most 40255 are accepted"),
                       rush::IOError);
}

TEST_CASE("npz: equal contents make equal files, in every time zone") {
  const TemporaryFolder folder;
  const NamedTensors tensors = {{"x", rush::ones({4})}, {"y", counting({2, 3}, rush::kFloat64).t()}};
  std::set<std::string> contents;
  for (const char* zone : {"UTC", "Asia/Kolkata", "America/Los_Angeles"}) {
    ::setenv("TZ", zone, 1);
    ::tzset();
    save_npz(folder / "a", tensors, NpzCompression::Deflated);
    contents.insert(file_content(folder / "a"));
  }
  ::unsetenv("TZ");
  CHECK(contents.size() == 1);
  CHECK(folder.file_count() == 1);
}

TEST_CASE("npz: what an entry's content throws reaches the caller, and the old file stays") {
  struct Throwing final : ByteSource {
    void read(void*, size_t) override { throw rush::IndexError("no bytes"); }
    uint64_t left() const override { return 9; }
  };
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "old");
  for (const bool deflated : {false, true}) {
    ZipWriter archive(path);
    archive.add("x", std::make_unique<Throwing>(), deflated);
    CHECK_THROWS_AS(archive.add("x", std::make_unique<Throwing>(), deflated), rush::ValueError);
    CHECK_THROWS_AS(archive.commit(), rush::IndexError);
  }
  for (const std::string& name : {std::string("\xff"), std::string("a\0b", 3)}) {
    CHECK_THROWS_AS(save_npz(path, {{name, rush::ones(2)}}), rush::ValueError);
  }
  CHECK(file_content(path) == "old");
  CHECK(folder.file_count() == 1);
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
    CHECK(npz_failure(changed) == "corrupt: entry 'x.npy': CRC error");
  }
}

TEST_CASE("npz: entries that lie are refused") {
  const std::string small = npy_of(4), large = npy_of(1000), packed = raw_deflate(small);
  const Member x{"x.npy", small}, y{"y.npy", small};
  // An entry whose values are another one: their compressed sizes fit into the file, yet share bytes.
  Member inner = y;
  const std::string record = local_record(inner, false), outer = npy_of(record.size(), record);
  inner.at = 30 + 5 + outer.size() - record.size();
  Member deflated = x, shorter = x, longer = x, bomb = x, wrong_size = x, encrypted = x, bzip2 = x;
  for (Member* each : {&deflated, &shorter, &longer, &bomb}) {
    each->packed = packed;
    each->method = 8;
  }
  shorter.packed = raw_deflate(small + "more");
  longer.size += 8;
  bomb.size = 2'000'000'000;
  wrong_size.size += 8;
  encrypted.flags = 1;
  bzip2.method = 12;
  const std::string several = zip_of({x, y}), wide = zip_of({x, deflated.named("y.npy")}, true);
  const size_t central = several.find("PK\x01\x02"), end64 = wide.find("PK\x06\x06");
  const struct {
    const char* what;
    std::string content;
    const char* message;
  } cases[] = {
      {"good", several, ""},
      {"good, all sizes in 64 bits", wide, ""},
      {"good, deflated", zip_of({deflated, y}), ""},
      {"no archive", "12345678", "Not a zip archive"},
      {"nothing", "", "not an npz file"},
      {"encrypted", zip_of({encrypted}), "is encrypted"},
      {"bzip2", zip_of({bzip2}), "compressed by method 12"},
      {"stored in a wrong size", zip_of({wrong_size}), "cannot be in a file of"},
      {"a bomb", zip_of({bomb}), "cannot be in a file of"},
      {"a bomb in 64 bits", zip_of({bomb.sized(uint64_t{1} << 40)}, true), "cannot be in a file of"},
      {"a size that overflows", zip_of({bomb.sized(~uint64_t{0})}, true), "cannot be in a file of"},
      {"more than its size", zip_of({shorter}), "unpacks to more than its size"},
      {"less than its size", zip_of({longer}), "8 bytes follow the values"},
      {"not the array's size", zip_of({Member{"x.npy", small + "abc"}}), "3 bytes follow the values"},
      {"too short for the array", zip_of({Member{"x.npy", large.substr(0, 200)}}), "truncated: an array of shape"},
      {"entry within another", zip_of({{"x.npy", outer}, inner}), "entry 'y.npy' overlaps another"},
      {"entry twice", zip_of({x, x.placed(0)}), "not an npz file, truncated or corrupt"},
      {"same name", zip_of({x, y.named("x.npy")}), "not an npz file, truncated or corrupt"},
      {"not where it should be", zip_of({x, y.placed(3)}), "not an npz file, truncated or corrupt"},
      {"outside", zip_of({x.placed(1 << 30)}), "not an npz file, truncated or corrupt"},
      {"far outside", zip_of({x.placed(uint64_t{1} << 63)}, true), "not an npz file, truncated or corrupt"},
      {"too much data", replaced(several, central + 20, 1 << 30, 4), "not an npz file, truncated or corrupt"},
      {"other name", replaced(several, central + 46, 'z', 1), "not an npz file, truncated or corrupt"},
      {"other file", zip_of({x.named("x.npq")}), "is no .npy file"},
      {"more entries", replaced(several, several.size() - 14, 0x30003, 4), "not an npz file, truncated or corrupt"},
      {"directory elsewhere", replaced(several, several.size() - 6, 7, 4), "not an npz file, truncated or corrupt"},
      {"several files", replaced(several, several.size() - 18, 1, 2), "archive of several files"},
      // libzip must not make room for entries that cannot be there.
      {"2^32 entries", replaced(replaced(wide, end64 + 24, uint64_t{1} << 32, 8), end64 + 32, uint64_t{1} << 32, 8),
       "not an npz file, truncated or corrupt"},
      {"a huge directory", replaced(wide, end64 + 40, ~uint64_t{0}, 8), "not an npz file, truncated or corrupt"},
  };
  for (const auto& each : cases) {
    CAPTURE(std::string(each.what));
    const std::string message = npz_failure(each.content);
    CAPTURE(message);
    CHECK((*each.message ? message.find(each.message) != std::string::npos : message.empty()));
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
