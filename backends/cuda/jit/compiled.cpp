#include "backends/cuda/jit/compiled.h"

#include <atomic>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "backends/cuda/jit/cubin_cache.h"
#include "backends/cuda/jit/headers.h"
#include "backends/cuda/jit/nvrtc.h"
#include "core/error/warning.h"
#include "core/io/atomic_file.h"
#include "core/io/md5.h"
#include "core/threads/parallel.h"

namespace rush::cuda::jit {

namespace {

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

// The source as it is compiled under RUSH_COMPILE_DEBUG: from a file, with line numbers.
Source left_for_debuggers(Source source, const std::string& folder) {
  std::error_code failed;  // shows when the file is opened
  std::filesystem::create_directories(folder, failed);
  const std::string path = folder + "/" + file_name(source);
  try {
    io::write_file_atomically(path, source.text);
    source.name = path;
    source.options.emplace_back("--generate-line-info");
  } catch (const IOError& error) {
    RUSH_WARN("RUSH_COMPILE_DEBUG: ", error.msg());
  }
  return source;
}

SharedCubin find_or_compile(const Source& source, const std::string& key, int architecture) {
  const CubinCache cache = CubinCache::of_environment();
  if (std::optional<Cubin> found = cache.find(key)) return std::make_shared<const Cubin>(std::move(*found));
  auto cubin = std::make_shared<const Cubin>(compile(source, architecture));
  ++compilation_count;
  cache.store(key, *cubin);
  return cubin;
}

SharedCubin compiled_once(const Source& source, int architecture) {
  // The cubins of this process, by their keys: those that are there, and those that a thread works on.
  static std::map<std::string, std::shared_future<SharedCubin>> by_key;
  static std::mutex mutex;
  const std::string key = key_of(source, architecture);
  std::promise<SharedCubin> promise;
  std::unique_lock lock(mutex);
  if (const auto found = by_key.find(key); found != by_key.end()) {
    const std::shared_future<SharedCubin> cubin = found->second;
    lock.unlock();
    return cubin.get();
  }
  by_key.emplace(key, promise.get_future().share());
  lock.unlock();
  try {
    SharedCubin cubin = find_or_compile(source, key, architecture);
    promise.set_value(cubin);
    return cubin;
  } catch (...) {
    promise.set_exception(std::current_exception());
    lock.lock();
    by_key.erase(key);
    throw;
  }
}

}  // namespace

int64_t compilations() { return compilation_count; }

SharedCubin compiled(const Source& source, int architecture) {
  const char* folder = std::getenv("RUSH_COMPILE_DEBUG");
  if (!folder || !*folder) return compiled_once(source, architecture);
  return compiled_once(left_for_debuggers(source, folder), architecture);
}

void compile_all(std::span<const Source> sources, int architecture) {
  parallel_for(0, static_cast<int64_t>(sources.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) compiled(sources[static_cast<size_t>(i)], architecture);
  });
}

}  // namespace rush::cuda::jit
