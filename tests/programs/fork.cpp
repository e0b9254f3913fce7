// A child of a process that runs threads, and a child of that one, run their loops on threads of their own.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "rushlight.h"

using namespace rush;

namespace {

constexpr int kThreads = 4;

int64_t threads_of_this_process() {
  int64_t count = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    static_cast<void>(each);
    ++count;
  }
  return count;
}

// Whether loops, products and a backward pass come out right, and on several threads.
bool works() {
  const Tensor x = ones({1 << 20}).requires_grad_();
  (x * 3).sum().backward();
  const bool right =
      x.grad().eq(3).all().item<bool>() && mm(ones({256, 256}), ones({256, 256})).eq(256).all().item<bool>();
  const int64_t threads = threads_of_this_process();
  if (!right || threads < kThreads)
    std::printf("process %d: right: %d, threads: %d\n", getpid(), right, static_cast<int>(threads));
  return right && threads >= kThreads;
}

// Works in a child, in whose child again, and returns whether all did.
bool fork_and_work(int generations) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const bool right = works() && (generations == 1 || fork_and_work(generations - 1));
    std::fflush(stdout);
    _exit(right ? 0 : 1);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main() {
  alarm(60);  // a child that hangs is the mistake that this looks for
  set_num_threads(kThreads);
  bool right = fork_and_work(1);  // before there are threads
  right = works() && right;
  for (int i = 0; i < 20; ++i) right = fork_and_work(2) && works() && right;
  return right ? 0 : 1;
}
