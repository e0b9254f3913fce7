// The tests of processes that work together: each of `mpirun -n N rush_distributed_tests` runs all of them.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <thread>

#include "backends/cuda/devices.h"
#include "core/distributed/collectives.h"
#include "core/distributed/environment.h"
#include "core/distributed/init.h"
#include "core/ops/basic.h"

namespace {

// What a process holds that outlives a call.
struct Held {
  std::ptrdiff_t threads, sockets;
  static Held now() {
    using Entries = std::filesystem::directory_iterator;
    const auto is_socket = [](const auto& descriptor) {
      std::error_code gone;  // the descriptor of this very loop
      return std::filesystem::read_symlink(descriptor, gone).string().starts_with("socket:");
    };
    return {std::distance(Entries("/proc/self/task"), Entries()),
            std::count_if(Entries("/proc/self/fd"), Entries(), is_socket)};
  }
};

void wait_for_a_late_process() {
  const rush::distributed::Group all = rush::distributed::world();
  if (all->rank() == all->size() - 1) std::this_thread::sleep_for(std::chrono::seconds(60));
  rush::distributed::barrier();
}

void throw_as_the_last_process() {
  const rush::distributed::Group all = rush::distributed::world();
  if (all->rank() == all->size() - 1) rush::zeros({2, 3}).mm(rush::zeros({2, 3}));
  all->barrier()->wait();
}

// Only rank 0, which is sent more than it expects, is told. Its next collective would meet the second half of the
// others'.
void go_on_after_lengths_that_differ() {
  const rush::distributed::Group all = rush::distributed::world();
  const auto sum = [&](int64_t n) { all->all_reduce(rush::ones({n}), rush::distributed::ReduceOp::SUM)->wait(); };
  try {
    sum(all->rank() == 0 ? 3000 : 5000);
  } catch (const rush::DistributedError&) {
    sum(3000);
  }
}

// NCCL wants a GPU for each process. Those that share one copy to the CPU, and go through MPI.
const char* backend(bool on_gpus) {
  const int processes = rush::distributed::read_environment().local_world_size.value_or(1);
  const bool has_own = rush::distributed::is_backend_available("nccl") && rush::cuda::device_count() >= processes;
  return on_gpus && has_own ? "nccl" : "mpi";
}

int run_tests(int argc, char** argv, bool on_gpus) {
  rush::distributed::InitOptions options;
  if (const char* bytes = std::getenv("RUSH_TEST_MESSAGE_BYTES")) options.message_bytes = std::atoi(bytes);
  const bool misses_one = std::getenv("RUSH_TEST_LATE");
  rush::distributed::init_process_group(backend(on_gpus), options);
  if (on_gpus) rush::set_default_device(rush::kCUDA);
  if (misses_one) wait_for_a_late_process();
  if (std::getenv("RUSH_TEST_UNCAUGHT")) throw_as_the_last_process();
  if (std::getenv("RUSH_TEST_LENGTHS")) go_on_after_lengths_that_differ();
  const int status = doctest::Context(argc, argv).run();
  if (status == 0) rush::distributed::destroy_process_group();
  return status;  // another one: mpirun ends the others
}

}  // namespace

int main(int argc, char** argv) {
  const char* const device = std::getenv("RUSH_TEST_DEVICE");
  const bool on_gpus = device && device == std::string_view("cuda");
  if (on_gpus && rush::cuda::device_count() == 0) {
    std::puts("skipped: no CUDA device");
    return 0;
  }
  const Held before = Held::now();
  try {
    if (const int status = run_tests(argc, argv, on_gpus)) return status;
  } catch (const rush::DistributedError& error) {
    std::fprintf(stderr, "%s\n", error.what_without_backtrace());
    return 1;
  }
  if (on_gpus) return 0;  // CUDA keeps threads of its own
  const Held after = Held::now();
  if (after.threads <= before.threads && after.sockets <= before.sockets) return 0;
  std::fprintf(stderr, "destroy_process_group has left %td threads and %td sockets, before there were %td and %td\n",
               after.threads, after.sockets, before.threads, before.sockets);
  return 1;
}
