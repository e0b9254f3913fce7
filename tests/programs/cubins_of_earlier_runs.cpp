// What a process takes from the folder of cubins that an earlier one left, whole, damaged, full or read-only. Each run
// is a child of this process, since a process keeps what it has compiled.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "backends/cuda/jit/compiled.h"
#include "backends/cuda/jit/nvrtc.h"

using namespace rush::cuda::jit;

namespace {

constexpr int kFailed = 99;

// Compiles a kernel, and returns how many compilations that took.
int run_and_count() {
  try {
    const Source source{"f", "__global__ void f(float* x) { *x = 1; }", {"f"}};
    const auto cubin = compiled(source, 90);
    return cubin->image.starts_with("\177ELF") && cubin->symbols.size() == 1 ? static_cast<int>(compilations())
                                                                             : kFailed;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return kFailed;
  }
}

// In a child of this process.
int in_a_run(const std::function<int()>& fn) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    const int result = fn();
    std::fflush(stdout);
    ::_exit(result);
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : kFailed;
}

bool has_compiler() {
  return in_a_run([] {
           try {
             return nvrtc_version() > 0 ? 0 : 1;
           } catch (const rush::CudaError& error) {
             std::printf("%s\n", error.what());
             return 1;
           }
         }) == 0;
}

bool expect(const char* when, int compilations) {
  const int counted = in_a_run(run_and_count);
  std::printf("%s: %d compilations, expected %d\n", when, counted, compilations);
  return counted == compilations;
}

}  // namespace

int main() {
  namespace fs = std::filesystem;
  if (!has_compiler()) return EXIT_SUCCESS;
  std::string root = (fs::temp_directory_path() / "rush-runs-XXXXXX").string();
  if (!::mkdtemp(root.data())) return EXIT_FAILURE;
  const fs::path folder = fs::path(root) / "cache";
  ::setenv("RUSH_CACHE_DIR", folder.c_str(), 1);
  bool right = expect("an empty folder", 1) && expect("a whole entry", 0);
  if (right) {
    const fs::path entry = fs::directory_iterator(folder / "cubins")->path() / "cubin";
    const auto size = fs::file_size(entry);
    fs::resize_file(entry, size / 2);
    right = expect("an entry that is cut off", 1) && expect("written again", 0) && fs::file_size(entry) == size;
    std::fstream(entry, std::ios::in | std::ios::out | std::ios::binary)
        .seekp(static_cast<std::streamoff>(size / 2))
        .put('?');
    right = right && expect("an entry that was changed", 1) && expect("written again", 0);
  }
  ::setenv("RUSH_CACHE_DIR", "/proc/no such folder", 1);
  right = right && expect("a folder that cannot be written", 1);
  std::error_code ignored;
  fs::remove_all(root, ignored);
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
