// Fuzzes read_idx: IDX files, plain and gzipped.
#include <zlib.h>

#include <array>

#include "nn/data/datasets/idx.h"
#include "tests/fuzz/target.h"

namespace {

using fuzz::Random;

constexpr int kGzipFormat = 15 + 16;  // zlib: a window of 2^15 bytes, a gzip header
constexpr std::array<uint8_t, 8> kTypes{0x08, 0x09, 0x0B, 0x0C, 0x0D, 0x0E, 0x0A, 0x00};
constexpr size_t kMostUnpacked = 1 << 16;

std::string gzip(std::string_view content) {
  z_stream z{};
  deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, kGzipFormat, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&z, content.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  z.avail_in = static_cast<uInt>(content.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

// As much as can be unpacked.
std::string gunzip(std::string_view packed) {
  z_stream z{};
  inflateInit2(&z, kGzipFormat);
  std::string out(kMostUnpacked, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  z.avail_in = static_cast<uInt>(packed.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  inflate(&z, Z_FINISH);
  out.resize(z.total_out);
  inflateEnd(&z);
  return out;
}

bool is_gzip(const std::string& file) { return file.size() > 2 && file[0] == '\x1f' && file[1] == '\x8b'; }

std::string make_idx(uint8_t type, const std::vector<uint32_t>& dims, size_t bytes) {
  std::string file{'\0', '\0', static_cast<char>(type), static_cast<char>(dims.size())};
  for (const uint32_t dim : dims) {
    for (const int shift : {24, 16, 8, 0}) file += static_cast<char>(dim >> shift);
  }
  return file.append(bytes, '\x7f');
}

std::vector<std::string> seeds() {
  const std::string images = make_idx(0x08, {2, 3, 3}, 18);
  return {images,       make_idx(0x08, {5}, 5),       make_idx(0x0E, {2, 2}, 32), make_idx(0x0B, {0, 7}, 0),
          gzip(images), gzip(make_idx(0x0D, {4}, 16))};
}

std::string mutate_plain(const std::string& file, Random& random) {
  if (random.percent(40)) return fuzz::mutate_bytes(file, random);
  // Another header, before as many bytes as it asks for or a few more or less.
  std::vector<uint32_t> dims(random.below(random.percent(95) ? 5 : 256));
  size_t bytes = 1 + random.below(8);
  for (uint32_t& dim : dims) {
    dim = static_cast<uint32_t>(random.percent(90) ? random.between(0, 5) : random.extreme());
    bytes = std::min(bytes * dim, size_t{4096});
  }
  return make_idx(random.pick(kTypes), dims, bytes);
}

std::string mutate(const std::string& file, Random& random) {
  if (!is_gzip(file)) {
    const std::string plain = mutate_plain(file, random);
    return random.percent(15) ? gzip(plain) : plain;
  }
  if (random.percent(30)) return fuzz::mutate_bytes(file, random);
  return gzip(mutate_plain(gunzip(file), random));
}

void repair(std::string& file) {
  if (!is_gzip(file)) return;
  if (const std::string content = gunzip(file); !content.empty()) file = gzip(content);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::mutate({seeds, mutate, repair}, data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::test_reader(data, size, [](const std::string& path) {
    const auto idx = rush::data::datasets::read_idx(path, uint64_t{1} << 24);
    uint64_t values = 1;
    for (const int64_t dim : idx.dims) values *= static_cast<uint64_t>(dim);
    if (idx.dims.empty() || idx.values().size() < values) fuzz::fail("fewer values than the dimensions say");
  });
}
