#include "core/threads/parallel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "core/error/error.h"
#include "core/threads/processors.h"
#include "tests/num_threads_guard.h"
#include "tests/temporary_folder.h"

using namespace rush;

namespace {

TEST_CASE("every index is visited once, by any number of threads") {
  for (const int threads : {1, 2, 3, 7}) {
    const NumThreadsGuard guard(threads);
    for (const int64_t n : {0, 1, 2, 5, 6, 7, 8, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
      parallel_for(0, n, 1, [&](int64_t begin, int64_t end) {
        CHECK(begin < end);
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
      });
      for (const auto& each : visits) CHECK(each == 1);
    }
  }
}

TEST_CASE("each thread of a loop has a number of its own, and the caller is 0") {
  const NumThreadsGuard guard(3);
  std::vector<int64_t> visits(3, 0);  // a thread writes where its number says: nothing else guards it
  for (int round = 0; round < 20; ++round) {
    parallel_for(0, 3000, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++visits.at(static_cast<size_t>(get_thread_num()));
    });
    CHECK(get_thread_num() == 0);
  }
  CHECK(visits[0] + visits[1] + visits[2] == 60000);
}

TEST_CASE("a range within the grain stays in one chunk") {
  const NumThreadsGuard guard(4);
  std::atomic<int> chunks{0};
  parallel_for(10, 20, 10, [&](int64_t begin, int64_t end) {
    ++chunks;
    CHECK(begin == 10);
    CHECK(end == 20);
  });
  CHECK(chunks == 1);
}

TEST_CASE("loops within loops run in their own thread") {
  const NumThreadsGuard guard(4);
  std::atomic<int64_t> sum{0};
  parallel_for(0, 8, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto thread = std::this_thread::get_id();
      parallel_for(0, 10, 1, [&](int64_t from, int64_t to) {
        if (in_parallel_region()) CHECK(std::this_thread::get_id() == thread);
        sum += to - from;
      });
    }
  });
  CHECK(sum == 80);
}

TEST_CASE("what a part throws arrives at the caller") {
  const NumThreadsGuard guard(4);
  for (const int64_t bad : {0, 50, 99}) {
    CHECK_THROWS_AS(parallel_for(0, 100, 1,
                                 [&](int64_t begin, int64_t end) {
                                   RUSH_CHECK_INDEX(!(begin <= bad && bad < end), "parallel: ", bad);
                                 }),
                    IndexError);
  }
  CHECK_THROWS_AS(set_num_threads(0), ValueError);
}

TEST_CASE("several callers share the helpers, and each gets its own loop done") {
  const NumThreadsGuard guard(3);
  constexpr int kLoops = 300;
  std::vector<int> whole(4, 0);
  std::vector<std::thread> callers;
  for (int& loops : whole) {
    callers.emplace_back([&loops] {
      for (int i = 0; i < kLoops; ++i) {
        const int64_t steps = 1 + i % 50;
        std::atomic<int64_t> sum{0};
        parallel_for(0, steps, 1, [&](int64_t begin, int64_t end) {
          for (int64_t step = begin; step < end; ++step) sum += step + 1;
        });
        loops += sum == steps * (steps + 1) / 2;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const int loops : whole) CHECK(loops == kLoops);
}

TEST_CASE("processors are those that the process may run on, as far as its control groups give it time") {
  const rush::testing::TemporaryFolder folder;
  const std::filesystem::path root = folder.path();
  const auto write = [&](const char* path, const char* text) {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  const auto processors = [&] { return available_processors(root.string()); };
  const int all = processors();
  CHECK(all >= 1);
  CHECK(all <= static_cast<int>(std::thread::hardware_concurrency()));
  SUBCASE("version 2: the process's group or one above it") {
    write("proc/self/cgroup", "0::/outer/inner\n");
    write("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
    CHECK(processors() == all);
    write("sys/fs/cgroup/outer/cpu.max", "50000 100000\n");
    CHECK(processors() == 1);
    write("sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
    CHECK(processors() == std::min(all, 2));
  }
  SUBCASE("version 1") {
    write("proc/self/cgroup", "3:memory:/other\n2:cpu,cpuacct:/group\n");
    write("sys/fs/cgroup/cpu/group/cpu.cfs_period_us", "100000\n");
    write("sys/fs/cgroup/cpu/group/cpu.cfs_quota_us", "-1\n");
    CHECK(processors() == all);
    write("sys/fs/cgroup/cpu/group/cpu.cfs_quota_us", "90000\n");
    CHECK(processors() == 1);
  }
}

}  // namespace
