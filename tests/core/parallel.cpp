#include "core/parallel.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/error.h"

using namespace rush;

namespace {

// Sets the number of threads, and resets it.
class Threads {
 public:
  explicit Threads(int count) : before_(get_num_threads()) { set_num_threads(count); }
  ~Threads() { set_num_threads(before_); }

 private:
  int before_;
};

TEST_CASE("every index is visited once, by any number of threads") {
  for (const int threads : {1, 2, 3, 7}) {
    const Threads guard(threads);
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

TEST_CASE("a range within the grain stays in one piece") {
  const Threads guard(4);
  std::atomic<int> pieces{0};
  parallel_for(10, 20, 10, [&](int64_t begin, int64_t end) {
    ++pieces;
    CHECK(begin == 10);
    CHECK(end == 20);
  });
  CHECK(pieces == 1);
}

TEST_CASE("loops within loops run in their own thread") {
  const Threads guard(4);
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
  const Threads guard(4);
  for (const int64_t bad : {0, 50, 99}) {
    CHECK_THROWS_AS(parallel_for(0, 100, 1,
                                 [&](int64_t begin, int64_t end) {
                                   RUSH_CHECK_INDEX(!(begin <= bad && bad < end), "parallel: ", bad);
                                 }),
                    IndexError);
  }
  CHECK_THROWS_AS(set_num_threads(0), ValueError);
}

}  // namespace
