// Where the system refuses threads, loops run on those that there are, with the same results and one warning.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "rushlight.h"

using namespace rush;

namespace {

// Bytes of address space in use; sanitizers leave this test out.
[[maybe_unused]] rlim_t address_space() {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// Counts warnings.
struct Counter : WarningHandler {
  int warnings = 0;
  void process(const Warning& warning) override {
    ++warnings;
    std::printf("%s\n", warning.msg().c_str());
  }
};

}  // namespace

int main() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;  // their shadow memory is beyond every limit of address space
#else
  set_num_threads(1);
  const Tensor x = arange(1 << 20, kFloat);
  const float expected = x.sum().item<float>();
  // Room for a few small blocks, not for the stacks of seven threads.
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = address_space() + (rlim_t{20} << 20);
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
  Counter counter;
  WarningUtils::set_warning_handler(&counter);
  set_num_threads(8);
  bool right = true;
  for (int i = 0; i < 100; ++i) right = x.sum().item<float>() == expected && right;
  std::printf("right: %d, warnings: %d\n", right, counter.warnings);
  return right && counter.warnings == 1 ? 0 : 1;
#endif
}
