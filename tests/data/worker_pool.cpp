#include "nn/data/worker_pool.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <string>

namespace {

using rush::data::WorkerPool;
using Pool = WorkerPool<int, std::string>;
using std::chrono::milliseconds;

Pool::Work print() {
  return [](int n) { return std::to_string(n); };
}

TEST_CASE("outcomes come in the order of the jobs, with their numbers") {
  Pool pool({print(), print()});
  for (int n = 0; n < 50; ++n) CHECK(pool.push(n) == static_cast<uint64_t>(n));
  CHECK(pool.outstanding() == 50);
  for (int n = 0; n < 50; ++n) {
    const auto outcome = pool.pop(true, std::nullopt);
    CHECK(outcome->number == static_cast<uint64_t>(n));
    CHECK(outcome->result == std::to_string(n));
  }
  CHECK(pool.outstanding() == 0);
}

TEST_CASE("nothing comes within the timeout, and the same job can be waited for again") {
  std::promise<void> gate;
  Pool pool({[&, opened = gate.get_future().share()](int n) {
    opened.wait();
    return std::to_string(n);
  }});
  pool.push(7);
  for (const milliseconds timeout : {milliseconds(-5), milliseconds(0), milliseconds(3)}) {
    CHECK(!pool.pop(true, timeout));
    CHECK(!pool.pop(false, timeout));
    CHECK(pool.outstanding() == 1);
  }
  gate.set_value();
  CHECK(pool.pop(true, milliseconds::max())->result == "7");
}

TEST_CASE("a job that throws has an outcome") {
  Pool pool({[](int) -> std::string { throw 3; }});
  pool.push(0);
  const auto outcome = pool.pop(true, std::nullopt);
  CHECK(!outcome->result);
  CHECK_THROWS_AS(std::rethrow_exception(outcome->failure), int);
}

TEST_CASE("clear drops the results of jobs being carried out; wait_until_idle sees them end") {
  std::promise<void> gate, begun;
  std::atomic<int> done = 0;
  Pool pool({[&, opened = gate.get_future().share()](int n) {
    if (n == 0) {
      begun.set_value();
      opened.wait();
    }
    ++done;
    return std::to_string(n);
  }});
  pool.push(0);
  pool.push(1);
  begun.get_future().wait();
  pool.clear();
  CHECK(pool.outstanding() == 0);
  CHECK(done == 0);
  gate.set_value();
  pool.wait_until_idle();
  CHECK(done == 1);  // job 1 was forgotten
  pool.push(2);
  CHECK(pool.pop(true, std::nullopt)->result == "2");
}

TEST_CASE("a pool ends while its workers wait, with jobs waiting, and with results that nobody takes") {
  for (const int jobs : {0, 1, 100}) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      Pool pool({print(), print(), print()});
      for (int n = 0; n < jobs; ++n) pool.push(n);
    }
  }
}

}  // namespace
