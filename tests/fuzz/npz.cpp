// Fuzzes load_npz: ZIP archives of .npy files.
#include <zlib.h>

#include "core/io/crc32.h"
#include "core/io/npy.h"
#include "tests/fuzz/npy_file.h"
#include "tests/fuzz/target.h"

namespace {

using fuzz::Random;

constexpr size_t kMostUnpacked = 1 << 16, kCentralSize = 46, kLocalSize = 30, kEndSize = 22;

void put(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i, value >>= 8) out += static_cast<char>(value);
}

uint64_t get(const std::string& file, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = bytes; i > 0; --i) value = value << 8 | static_cast<uint8_t>(file[at + i - 1]);
  return value;
}

uint32_t checksum(std::string_view bytes) {
  rush::io::Crc32 sum;
  sum.update(bytes.data(), bytes.size());
  return sum.value();
}

// Raw deflate, as ZIP has it.
std::string pack(const std::string& content, bool inflating) {
  z_stream z{};
  std::string out(inflating ? kMostUnpacked : content.size() + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  z.avail_in = static_cast<uInt>(content.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  if (inflating) {
    inflateInit2(&z, -MAX_WBITS);
    inflate(&z, Z_FINISH);
    inflateEnd(&z);
  } else {
    deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    deflate(&z, Z_FINISH);
    deflateEnd(&z);
  }
  out.resize(z.total_out);
  return out;
}

// Fields of the records are those of the APPNOTE, 4.3.
std::string random_zip(Random& random) {
  std::string file, directory;
  const size_t entries = random.below(4);
  for (size_t i = 0; i < entries; ++i) {
    const std::string name = std::string(1, static_cast<char>('a' + i)) + (random.percent(97) ? ".npy" : "");
    const std::string content = fuzz::random_npy(random);
    const bool deflated = random.percent(50), wide = random.percent(30);
    const std::string packed = deflated ? pack(content, false) : content;
    std::string extra;
    if (wide) {
      put(extra, 1, 2);
      put(extra, 24, 2);
      put(extra, content.size(), 8);
      put(extra, packed.size(), 8);
      put(extra, file.size(), 8);
    }
    std::string common;  // of the local and the central record
    put(common, 20, 2);
    put(common, 0, 2);
    put(common, deflated ? 8 : 0, 2);
    put(common, 0, 4);
    put(common, checksum(content), 4);
    put(common, wide ? 0xffffffff : packed.size(), 4);
    put(common, wide ? 0xffffffff : content.size(), 4);
    put(common, name.size(), 2);
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    directory += common;
    put(directory, extra.size(), 2);
    put(directory, 0, 10);
    put(directory, wide ? 0xffffffff : file.size(), 4);
    directory += name + extra;
    put(file, 0x04034b50, 4);
    file += common;
    put(file, 0, 2);
    file += name + packed;
  }
  const size_t offset = file.size();
  file += directory;
  if (random.percent(30)) {
    const size_t end = file.size();
    put(file, 0x06064b50, 4);
    put(file, 44, 8);
    put(file, 0x2d002d, 4);
    put(file, 0, 8);
    put(file, entries, 8);
    put(file, entries, 8);
    put(file, directory.size(), 8);
    put(file, offset, 8);
    put(file, 0x07064b50, 4);
    put(file, 0, 4);
    put(file, end, 8);
    put(file, 1, 4);
  }
  put(file, 0x06054b50, 4);
  put(file, 0, 4);
  put(file, entries, 2);
  put(file, entries, 2);
  put(file, directory.size(), 4);
  put(file, offset, 4);
  put(file, 0, 2);
  return file;
}

std::vector<std::string> seeds() {
  Random random(1);
  std::vector<std::string> files(12);
  for (std::string& file : files) file = random_zip(random);
  return files;
}

std::string mutate(const std::string& file, Random& random) {
  return random.percent(30) ? random_zip(random) : fuzz::mutate_bytes(file, random);
}

// Gives every entry that the directory leads to the checksum of what is there.
void repair(std::string& file) {
  if (file.size() < kEndSize) return;
  const uint64_t begin = get(file, file.size() - 6, 4);
  for (uint64_t at = begin; at + kCentralSize + kEndSize <= file.size() && get(file, at, 4) == 0x02014b50;) {
    const uint64_t size = get(file, at + 20, 4), header = get(file, at + 42, 4);
    if (header + kLocalSize <= file.size()) {
      const uint64_t data = header + kLocalSize + get(file, header + 26, 2) + get(file, header + 28, 2);
      if (data <= file.size() && size <= file.size() - data) {
        std::string content = file.substr(data, size);
        if (get(file, at + 10, 2) == 8) content = pack(content, true);
        std::string sum;
        put(sum, checksum(content), 4);
        file.replace(at + 16, 4, sum);
      }
    }
    at += kCentralSize + get(file, at + 28, 2) + get(file, at + 30, 2) + get(file, at + 32, 2);
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::mutate({seeds, mutate, repair}, data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::test_reader(data, size, [](const std::string& path) {
    for (const auto& [name, tensor] : rush::io::load_npz(path)) fuzz::check_tensor(tensor);
  });
}
