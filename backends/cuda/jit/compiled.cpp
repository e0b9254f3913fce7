#include "backends/cuda/jit/compiled.h"

#include <atomic>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "backends/cuda/jit/headers.h"
#include "backends/cuda/jit/nvrtc.h"
#include "core/error/warning.h"
#include "core/io/atomic_file.h"
#include "core/io/md5.h"
#include "core/library/file_cache.h"

namespace rush::cuda::jit {

namespace {

using Json = nlohmann::json;
using SharedCubin = std::shared_ptr<const Cubin>;

std::atomic<int64_t> compilation_count = 0;

// What the machine code follows from.
std::string key_of(const Source& source, int architecture) {
  std::string key = str("NVRTC ", nvrtc_version(), ", headers ", headers_digest(), "\n");
  for (const std::string& kernel : source.kernels) key += str("kernel ", kernel, "\n");
  for (const std::string& option : options_of(source, architecture)) key += str("option ", option, "\n");
  return key + str("name ", source.name, "\n", source.text);
}

// "my::scale" as a file's name, different for different texts.
std::string file_name(const Source& source) {
  std::string name = source.name;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return str(name, "-", io::md5_hex(source.text).substr(0, 8), ".cu");
}

std::string with_own_lines(const std::string& text, const std::string& path) {
  std::string numbered;
  std::istringstream lines(text);
  int64_t next = 2;
  for (std::string line; std::getline(lines, line); ++next)
    numbered += line + '\n' == kOwnLines ? line_directive(next, path) : line + '\n';
  return numbered;
}

// The source as it is compiled under RUSH_COMPILE_DEBUG: from a file, with line numbers.
Source left_for_debuggers(Source source, const std::string& folder) {
  std::error_code failed;  // shows when the file is opened
  std::filesystem::create_directories(folder, failed);
  const std::string path = folder + "/" + file_name(source);
  if (source.text.find(kOwnLines) != source.text.npos) source.text = with_own_lines(source.text, path);
  try {
    io::write_file_atomically(path, source.text);
    source.name = path;
    source.options.emplace_back("--generate-line-info");
  } catch (const IOError& error) {
    RUSH_WARN("RUSH_COMPILE_DEBUG: ", error.msg());
  }
  return source;
}

// Note [The cache of cubins]
// What was compiled in earlier runs is kept in a library::FileCache, an entry for each key, which is all that the
// machine code follows from: source, options, architecture, NVRTC's version and the library's headers. The entry is
// named by the key's MD5 digest; in its file stand key, image and symbols as CBOR (RFC 8949), so that another key with
// the same digest finds nothing. Of several processes that ask at once, one compiles and the others wait. A folder that
// is missing, full or read-only costs the time of compiling.
std::string to_entry(const std::string& key, const Cubin& cubin) {
  const auto image = Json::binary({cubin.image.begin(), cubin.image.end()});
  std::string entry;
  Json::to_cbor({{"key", key}, {"image", image}, {"symbols", cubin.symbols}}, entry);
  return entry;
}

SharedCubin from_entry(const std::string& entry, const std::string& key) {
  const Json content = Json::from_cbor(entry);
  if (content.at("key") != key) return nullptr;
  const std::vector<uint8_t>& image = content.at("image").get_binary();
  return std::make_shared<const Cubin>(Cubin{{image.begin(), image.end()}, content.at("symbols")});
}

SharedCubin find_or_compile(const Source& source, const std::string& key, int architecture) {
  constexpr const char* kFile = "cubin";
  library::FileCache cache("cubins/" + io::md5_hex(key));
  const std::optional<std::string> entry = cache.read(kFile);
  if (SharedCubin found = entry ? from_entry(*entry, key) : nullptr) return found;
  auto cubin = std::make_shared<const Cubin>(compile(source, architecture));
  ++compilation_count;
  cache.keep(kFile, to_entry(key, *cubin));
  return cubin;
}

// The cubin of a key in this process. Who holds the mutex makes it; where that fails, the next one tries.
struct CubinOnce {
  std::mutex mutex;
  SharedCubin cubin;
};

SharedCubin compiled_once(const Source& source, int architecture) {
  static std::map<std::string, CubinOnce> by_key;
  static std::mutex mutex;
  const std::string key = key_of(source, architecture);
  std::unique_lock lock(mutex);
  CubinOnce& once = by_key[key];
  lock.unlock();
  const std::lock_guard alone(once.mutex);
  if (!once.cubin) once.cubin = find_or_compile(source, key, architecture);
  return once.cubin;
}

}  // namespace

std::string line_directive(int64_t line, const std::string& file) {
  std::ostringstream text;
  text << "#line " << line << ' ' << std::quoted(file) << '\n';
  return text.str();
}

int64_t compilations() { return compilation_count; }

SharedCubin compiled(const Source& source, int architecture) {
  const char* folder = std::getenv("RUSH_COMPILE_DEBUG");
  if (!folder || !*folder) return compiled_once(source, architecture);
  return compiled_once(left_for_debuggers(source, folder), architecture);
}

}  // namespace rush::cuda::jit
