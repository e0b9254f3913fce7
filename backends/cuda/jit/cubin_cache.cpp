#include "backends/cuda/jit/cubin_cache.h"

#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "core/io/atomic_file.h"
#include "core/io/cache_folder.h"
#include "core/io/crc32.h"
#include "core/io/md5.h"
#include "core/io/read_file.h"

namespace rush::cuda::jit {

namespace {

constexpr std::string_view kMagic = "rushlight cubin\n";
constexpr size_t kNumberSize = sizeof(uint64_t);

// Each text with its length before it.
void append_text(std::string& out, std::string_view text) {
  const uint64_t size = text.size();
  out.append(reinterpret_cast<const char*>(&size), kNumberSize);
  out.append(text);
}

uint64_t checksum(std::string_view bytes) {
  io::Crc32 crc;
  crc.update(bytes.data(), bytes.size());
  return crc.value();
}

// Reads what the functions above wrote; after an end too early, `whole` is false and every number is 0.
struct Reader {
  std::string_view rest;
  bool whole = true;

  std::string_view take(uint64_t size) {
    if (size > rest.size()) whole = false;
    if (!whole) return {};
    const std::string_view taken = rest.substr(0, size);
    rest.remove_prefix(size);
    return taken;
  }
  uint64_t number() {
    uint64_t value = 0;
    if (const std::string_view bytes = take(kNumberSize); whole) std::memcpy(&value, bytes.data(), kNumberSize);
    return value;
  }
  std::string_view text() { return take(number()); }
};

// An entry: magic, checksum of the rest, then key, image, number of symbols, symbols.
std::string to_entry(std::string_view key, const Cubin& cubin) {
  std::string body;
  append_text(body, key);
  append_text(body, cubin.image);
  const uint64_t count = cubin.symbols.size();
  body.append(reinterpret_cast<const char*>(&count), kNumberSize);
  for (const std::string& symbol : cubin.symbols) append_text(body, symbol);
  const uint64_t sum = checksum(body);
  return std::string(kMagic).append(reinterpret_cast<const char*>(&sum), kNumberSize).append(body);
}

std::optional<Cubin> from_entry(std::string_view entry, std::string_view key) {
  Reader reader{entry};
  if (reader.take(kMagic.size()) != kMagic) return {};
  const uint64_t sum = reader.number();
  if (!reader.whole || sum != checksum(reader.rest)) return {};
  if (reader.text() != key) return {};
  Cubin cubin;
  cubin.image = reader.text();
  const uint64_t count = reader.number();
  for (uint64_t i = 0; i < count && reader.whole; ++i) cubin.symbols.emplace_back(reader.text());
  if (!reader.whole || !reader.rest.empty()) return {};
  return cubin;
}

}  // namespace

CubinCache CubinCache::of_environment() { return CubinCache(io::cache_folder()); }

std::string CubinCache::path_of(std::string_view key) const {
  const std::span bytes(reinterpret_cast<const uint8_t*>(key.data()), key.size());
  return str(folder_, "/", io::md5_hex(bytes), ".cubin");
}

std::optional<Cubin> CubinCache::find(std::string_view key) const {
  if (folder_.empty()) return {};
  const std::string path = path_of(key);
  std::error_code missing;
  if (!std::filesystem::exists(path, missing)) return {};
  try {
    const std::vector<uint8_t> bytes = io::read_file(path);
    return from_entry({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, key);
  } catch (const IOError&) {
    return {};
  }
}

bool CubinCache::store(std::string_view key, const Cubin& cubin) const {
  if (folder_.empty()) return false;
  std::error_code failed;  // shows when the file is opened
  std::filesystem::create_directories(folder_, failed);
  try {
    io::write_file_atomically(path_of(key), to_entry(key, cubin));
    return true;
  } catch (const IOError&) {
    return false;
  }
}

}  // namespace rush::cuda::jit
