#include "backends/cuda/library_plans.h"

#include <doctest/doctest.h>

#include <functional>
#include <thread>

namespace {

using rush::cuda::LibraryPlans;
using Plans = LibraryPlans<int, int, std::hash<int>>;

TEST_CASE("plans are made once, and the one that was used least recently makes way") {
  Plans plans(2);
  int made = 0;
  const auto plan_of = [&](int problem) { return *plans.of(problem, false, [&] { return ++made * 100 + problem; }); };
  CHECK(plan_of(1) == 101);
  CHECK(plan_of(2) == 202);
  CHECK(plan_of(1) == 101);
  CHECK(plan_of(3) == 303);  // in place of 2
  CHECK(plans.size() == 2);
  CHECK(plans.knows(1));
  CHECK(!plans.knows(2));
  CHECK(plan_of(2) == 402);
  Plans none(0);
  CHECK(*none.of(1, false, [] { return 7; }) == 7);
  CHECK(none.size() == 0);
}

TEST_CASE("a plan that a graph captured outlives its place") {
  Plans plans(1);
  const std::weak_ptr<const int> captured = plans.of(1, true, [] { return 1; });
  const std::weak_ptr<const int> other = plans.of(2, false, [] { return 2; });
  plans.of(3, false, [] { return 3; });
  CHECK(!captured.expired());
  CHECK(other.expired());
}

TEST_CASE("a plan in the making holds up no other, and two threads get one plan") {
  Plans plans(10);
  const auto outer = plans.of(1, false, [&] {
    std::thread other([&] {
      plans.of(2, false, [] { return 2; });
      plans.of(1, false, [] { return 10; });
    });
    other.join();
    return 20;
  });
  CHECK(*outer == 10);
  CHECK(plans.size() == 2);
}

}  // namespace
