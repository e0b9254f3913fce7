#include "core/threads/thread_pool.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "core/threads/processors.h"
#include "core/threads/scheduling.h"

using namespace rush;
using detail::ThreadPool;

namespace {

struct Calls {
  std::atomic<int> of_helper{0};
  int wanted;  // by the caller, which works until then
  bool helper_ends;
};

bool call(void* context, int member, bool) {
  auto& calls = *static_cast<Calls*>(context);
  if (member != 0) return ++calls.of_helper >= calls.wanted && calls.helper_ends;
  while (calls.of_helper < calls.wanted) std::this_thread::yield();
  return true;
}

TEST_CASE("a helper that leaves its work for later is called again") {
  for (int i = 0; i < 100; ++i) {
    Calls calls{.wanted = 5, .helper_ends = true};
    ThreadPool::instance().run(2, call, &calls);
    CHECK(calls.of_helper == 5);
  }
}

TEST_CASE("the caller does not wait for a helper that left its work for later") {
  for (int i = 0; i < 100; ++i) {
    Calls calls{.wanted = 5, .helper_ends = false};
    ThreadPool::instance().run(2, call, &calls);
    const int at_the_end = calls.of_helper;
    CHECK(at_the_end >= 5);
    if (i == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    CHECK(calls.of_helper == at_the_end);
  }
}

TEST_CASE("a thread leaves a processor if it may run on another") {
  if (detail::current_processor() < 0) return;  // the system does not tell
  std::thread([] {
    int left = 0;  // the system may move the thread back at once, but seldom does
    for (int i = 0; i < 100; ++i) {
      const int before = detail::current_processor();
      detail::leave_processor(before);
      left += detail::current_processor() != before;
    }
    if (available_processors() > 1) CHECK(left > 50);
  }).join();
}

TEST_CASE("the time that a thread has run grows while it runs, and not while it sleeps") {
  const auto run_until = [](auto end) {
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  const auto begin = detail::running_time();
  run_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(50));
  const auto ran = detail::running_time();
  CHECK(ran > begin);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK(detail::running_time() - ran < std::chrono::milliseconds(50));
}

}  // namespace
