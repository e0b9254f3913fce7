// Cubins of earlier runs: what is found, what a damaged or useless folder costs. No GPU and no compiler is needed.
#include "backends/cuda/jit/cubin_cache.h"

#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/cuda/jit/environment.h"

using namespace rush::testing;
using rush::cuda::jit::Cubin;
using rush::cuda::jit::CubinCache;

namespace {

const Cubin kCubin{std::string("image\0of bytes", 14), {"_Z1fPf", "g"}};
const std::string kKey = "NVRTC 13000, sm_90\nthe source";

bool is_whole(const std::optional<Cubin>& cubin) {
  return cubin && cubin->image == kCubin.image && cubin->symbols == kCubin.symbols;
}

}  // namespace

TEST_CASE("a cubin is found again by its whole key") {
  const TemporaryFolder folder;
  const CubinCache cache(folder / "not" + "/there/yet");
  CHECK(!cache.find(kKey));
  REQUIRE(cache.store(kKey, kCubin));
  CHECK(is_whole(cache.find(kKey)));
  CHECK(!cache.find(kKey + " "));
  // What another key with the same digest would find.
  std::filesystem::copy(cache.path_of(kKey), cache.path_of("other"));
  CHECK(!cache.find("other"));
  REQUIRE(cache.store("other", kCubin));
  CHECK(is_whole(cache.find("other")));
}

TEST_CASE("an entry that is cut off or changed is not there, and is written again") {
  const TemporaryFolder folder;
  const CubinCache cache(folder.path());
  REQUIRE(cache.store(kKey, kCubin));
  const std::string path = cache.path_of(kKey), whole = file_content(path);
  const auto write = [&](const std::string& content) {
    folder.write(std::filesystem::path(path).filename().string(), content);
  };
  for (size_t size = 0; size < whole.size(); ++size) {
    write(whole.substr(0, size));
    CHECK(!cache.find(kKey));
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    write(damaged);
    CHECK(!cache.find(kKey));
  }
  write(whole + "x");
  CHECK(!cache.find(kKey));
  REQUIRE(cache.store(kKey, kCubin));
  CHECK(is_whole(cache.find(kKey)));
}

TEST_CASE("a folder that cannot be written costs no more than the entry") {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", "");
  for (const std::string& useless : {file, file + "/below", std::string("/proc/none"), std::string()}) {
    INFO(useless);
    const CubinCache cache(useless);
    CHECK(!cache.store(kKey, kCubin));
    CHECK(!cache.find(kKey));
  }
  // A folder in place of the entry.
  const CubinCache cache(folder.path());
  std::filesystem::create_directories(cache.path_of(kKey));
  CHECK(!cache.store(kKey, kCubin));
  CHECK(!cache.find(kKey));
  CHECK(folder.file_count() == 2);  // no temporary file is left
}

TEST_CASE("the environment names the folder") {
  const EnvironmentGuard home("HOME", "/home/someone");
  {
    const EnvironmentGuard none("RUSH_CACHE_DIR", ""), no_cache("XDG_CACHE_HOME", "");
    CHECK(CubinCache::of_environment().path_of("").starts_with("/home/someone/.cache/rushlight/"));
    const EnvironmentGuard cache("XDG_CACHE_HOME", "/caches");
    CHECK(CubinCache::of_environment().path_of("").starts_with("/caches/rushlight/"));
    const EnvironmentGuard own("RUSH_CACHE_DIR", "/own");
    CHECK(CubinCache::of_environment().path_of("").starts_with("/own/"));
  }
}
