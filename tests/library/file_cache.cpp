// Files of earlier runs: what is found, what a damaged or useless folder costs.
#include "core/library/file_cache.h"

#include <filesystem>
#include <string>

#include "tests/environment_guard.h"

using namespace rush::testing;
using rush::library::FileCache;

namespace {

const std::string kContent("content\0of bytes", 16);

}  // namespace

TEST_CASE("a file is found again in its entry") {
  const EmptyCache in_folder;
  {
    FileCache cache("not/there/yet");
    CHECK(!cache.read("file"));
    CHECK(cache.keep("file", kContent));
    CHECK(std::filesystem::exists(in_folder.folder / "not/there/yet/file"));
    CHECK(cache.read("file") == kContent);
    CHECK(!cache.read("other"));
  }
  CHECK(!FileCache("not/there").read("file"));
  CHECK(FileCache("not/there/yet").read("file") == kContent);
}

TEST_CASE("a file that is cut off or changed is not there, and is written again") {
  const EmptyCache in_folder;
  FileCache cache("entry");
  REQUIRE(cache.keep("file", kContent));
  const std::string whole = file_content(cache.path_of("file"));
  const auto is_there = [&](const std::string& content) {
    in_folder.folder.write("entry/file", content);
    return cache.read("file").has_value();
  };
  for (size_t size = 0; size < whole.size(); ++size) CHECK(!is_there(whole.substr(0, size)));
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    CHECK(!is_there(damaged));
  }
  CHECK(!is_there(whole + "x"));
  CHECK(cache.keep("file", kContent));
  CHECK(cache.read("file") == kContent);
}

TEST_CASE("a folder that cannot be written costs no more than the file") {
  const EmptyCache in_folder;
  const std::string file = in_folder.folder.write("file", "");
  for (const std::string& useless : {file, file + "/below", std::string("/proc/none")}) {
    INFO(useless);
    const EnvironmentGuard guard("RUSH_CACHE_DIR", useless);
    FileCache cache("entry");
    CHECK(!cache.reason().empty());
    CHECK(!cache.keep("file", kContent));
    CHECK(!cache.read("file"));
  }
  // A folder in place of the file.
  FileCache cache("entry");
  std::filesystem::create_directories(cache.folder() + "/file");
  CHECK(!cache.keep("file", kContent));
  CHECK(!cache.read("file"));
  CHECK(std::distance(std::filesystem::directory_iterator(cache.folder()), {}) == 2);  // no temporary file is left
}

TEST_CASE("the environment names the folder") {
  const EmptyCache in_folder;
  CHECK(FileCache("entry").folder() == in_folder.folder / "entry");
  const EnvironmentGuard none("RUSH_CACHE_DIR", ""), home("HOME", in_folder.folder / "home");
  {
    const EnvironmentGuard no_cache("XDG_CACHE_HOME", "");
    CHECK(FileCache("entry").folder() == in_folder.folder / "home/.cache/rushlight/entry");
  }
  const EnvironmentGuard cache("XDG_CACHE_HOME", in_folder.folder / "caches");
  CHECK(FileCache("entry").folder() == in_folder.folder / "caches/rushlight/entry");
}
