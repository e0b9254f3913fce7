// Processes that share a folder of kept files, writing and reading the same ones at once, find whole ones.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/library/file_cache.h"

using rush::library::FileCache;

namespace {

constexpr int kProcesses = 4, kRounds = 300, kFiles = 3;

// What every process stores in a file: large enough to be written in several steps.
std::string content_of(int file) { return std::string(200'000 + 1000 * file, static_cast<char>('a' + file)); }

// The number of rounds in which something else than what was stored came back, or nothing.
int wrong_rounds() {
  int wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    const int number = round % kFiles;
    const std::string name = "file" + std::to_string(number);
    FileCache cache("entry");
    const bool stored = cache.keep(name, content_of(number));
    if (!stored || cache.read(name) != content_of(number)) ++wrong;
  }
  return wrong;
}

}  // namespace

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "rush-cache-XXXXXX").string();
  if (!::mkdtemp(folder.data())) return EXIT_FAILURE;
  ::setenv("RUSH_CACHE_DIR", folder.c_str(), 1);
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(wrong_rounds() == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
    children.push_back(child);
  }
  bool right = true;
  for (const pid_t child : children) {
    int status = 0;
    right =
        child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0 && right;
  }
  // Beside the lock.
  const auto left = std::distance(std::filesystem::directory_iterator(folder + "/entry"), {}) - 1;
  std::printf("every round right: %d, files left: %d of %d\n", right, static_cast<int>(left), kFiles);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return right && left == kFiles ? EXIT_SUCCESS : EXIT_FAILURE;
}
