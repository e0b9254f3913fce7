// Processes that share a folder of cubins, writing and reading the same entries at once, find whole ones or none.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "backends/cuda/jit/cubin_cache.h"

using rush::cuda::jit::Cubin;
using rush::cuda::jit::CubinCache;

namespace {

constexpr int kProcesses = 4, kRounds = 300, kKeys = 3;

// What every process stores under a key: large enough to be written in several steps.
Cubin cubin_of(int key) { return {std::string(200'000 + 1000 * key, static_cast<char>('a' + key)), {"f", "g"}}; }

// The number of rounds in which something else than the stored cubin came back, or nothing after it was stored.
int wrong_rounds(const CubinCache& cache) {
  int wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    const int number = round % kKeys;
    const std::string key = "key " + std::to_string(number);
    const Cubin expected = cubin_of(number);
    const bool stored = cache.store(key, expected);
    const std::optional<Cubin> found = cache.find(key);
    if (!stored || !found || found->image != expected.image || found->symbols != expected.symbols) ++wrong;
  }
  return wrong;
}

}  // namespace

int main() {
  std::string folder = (std::filesystem::temp_directory_path() / "rush-cubins-XXXXXX").string();
  if (!::mkdtemp(folder.data())) return EXIT_FAILURE;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(wrong_rounds(CubinCache(folder)) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
    children.push_back(child);
  }
  bool right = true;
  for (const pid_t child : children) {
    int status = 0;
    right =
        child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0 && right;
  }
  const auto left = std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  std::printf("every round right: %d, files left: %d of %d\n", right, static_cast<int>(left), kKeys);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return right && left == kKeys ? EXIT_SUCCESS : EXIT_FAILURE;
}
