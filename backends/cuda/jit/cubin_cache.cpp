#include "backends/cuda/jit/cubin_cache.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/io/atomic_file.h"
#include "core/io/cache_folder.h"
#include "core/io/md5.h"
#include "core/io/read_file.h"

namespace rush::cuda::jit {

namespace {

using Json = nlohmann::json;

constexpr size_t kDigestSize = 32;

// An entry: the digest of the rest, then key, image and symbols as CBOR (RFC 8949).
std::string to_entry(std::string_view key, const Cubin& cubin) {
  const auto image = Json::binary({cubin.image.begin(), cubin.image.end()});
  std::string body;
  Json::to_cbor({{"key", key}, {"image", image}, {"symbols", cubin.symbols}}, body);
  return io::md5_hex(body) + body;
}

std::optional<Cubin> from_entry(std::string_view entry, std::string_view key) {
  const std::string_view body = entry.substr(std::min(kDigestSize, entry.size()));
  if (body.empty() || entry.substr(0, kDigestSize) != io::md5_hex(body)) return {};
  const Json content = Json::from_cbor(body);
  if (content.at("key") != key) return {};
  const std::vector<uint8_t>& image = content.at("image").get_binary();
  return Cubin{{image.begin(), image.end()}, content.at("symbols")};
}

}  // namespace

CubinCache CubinCache::of_environment() { return CubinCache(io::cache_folder()); }

std::string CubinCache::path_of(std::string_view key) const { return str(folder_, "/", io::md5_hex(key), ".cubin"); }

std::optional<Cubin> CubinCache::find(std::string_view key) const {
  const std::string path = path_of(key);
  std::error_code missing;
  if (folder_.empty() || !std::filesystem::exists(path, missing)) return {};
  try {
    const std::vector<uint8_t> bytes = io::read_file(path);
    return from_entry({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, key);
  } catch (const IOError&) {
    return {};
  } catch (const Json::exception&) {  // whole, but of another version
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
