// Collectives that differ between processes, and the record of those that were called.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/distributed/collectives.h"
#include "core/distributed/flight_recorder.h"
#include "core/ops/basic.h"
#include "tests/distributed/rank_inputs.h"
#include "tests/environment_guard.h"

namespace {

using namespace rush;
using namespace rush::distributed;

struct Debugging {
  Debugging() { rush::distributed::detail::set_debug(true); }
  ~Debugging() { rush::distributed::detail::set_debug(false); }
};

// What every process is told where the last one calls something else than the others; within a second.
std::string told(const std::function<void()>& others, const std::function<void()>& last) {
  const auto begun = std::chrono::steady_clock::now();
  std::string message;
  try {
    get_rank() == get_world_size() - 1 ? last() : others();
  } catch (const DistributedError& error) {
    message = error.msg();
  }
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(1));
  return message;
}

bool names(const std::string& message, const std::string& of_first, const std::string& of_last) {
  const std::string last = str(", rank ", get_world_size() - 1, " calls number ");
  return testing::has(message, "rank 0 calls number ") && testing::has(message, of_first) &&
         testing::has(message, last) && message.find(of_last) > message.find(last);
}

}  // namespace

TEST_CASE("in debug mode every process names collectives that differ") {
  flight_recorder().clear();
  const Debugging debugging;
  const Tensor a = ones({3}), b = ones({4}), c = ones({3}, kFloat64);
  const auto check = [&](const auto& others, const auto& last, const char* of_first, const char* of_last) {
    const std::string message = told(others, last);
    CHECK_MESSAGE(names(message, of_first, of_last), message);
    all_reduce(a);  // the group goes on
  };
  const auto sum = [](const Tensor& t) { return [t] { all_reduce(t); }; };
  check(
      sum(a), [&] { broadcast(a, 0); }, "all_reduce of 3 elements of float32, sum", "broadcast of 3 elements");
  check(sum(a), sum(b), "of 3 elements", "of 4 elements");
  check(sum(a), sum(c), "of float32", "of float64");
  check(
      sum(a), [&] { all_reduce(a, ReduceOp::MAX); }, ", sum", ", max");
  check([&] { broadcast(a, 0); }, [&] { broadcast(a, 1); }, "root 0", "root 1");
  check([] { barrier(); }, sum(a), "barrier", "all_reduce");
  // Those that may differ: what goes to whom.
  const int64_t rank = get_rank(), size = get_world_size();
  std::vector<int64_t> leaving(static_cast<size_t>(size), rank + 1), arriving;
  for (int64_t i = 0; i < size; ++i) arriving.push_back(i + 1);
  const Tensor rows = zeros({size * (size + 1) / 2});
  all_to_all_single(rows, full({size * (rank + 1)}, static_cast<double>(rank)), arriving, leaving);
  CHECK(rows[rows.size(0) - 1].item<double>() == static_cast<double>(size - 1));
  if (rank == 0) send(a, 1);
  if (rank == 1) recv(b.narrow(0, 0, 3), 0);
  for (const CollectiveRecord& record : flight_recorder().records()) {
    const bool is_message = record.name == std::string("send") || record.name == std::string("recv");
    CHECK(record.caller.empty() == is_message);
  }
}

TEST_CASE("the flight recorder has the last thousand collectives") {
  flight_recorder().clear();
  const Tensor a = ones({2, 3});
  all_gather_into_tensor(zeros({get_world_size(), 2, 3}), a);
  for (size_t i = 0; i < FlightRecorder::kMostRecords; ++i) all_reduce(a, ReduceOp::MAX);
  barrier();
  const std::vector<CollectiveRecord> records = flight_recorder().records();
  REQUIRE(records.size() == FlightRecorder::kMostRecords);
  CHECK(records.front().number == 3);  // the first two are gone
  CHECK(records.back().number == FlightRecorder::kMostRecords + 2);
  CHECK(records.front().what() == "all_reduce of 6 elements of float32, max");
  CHECK(records.back().what() == "barrier");
  const testing::TemporaryFolder folder;
  const testing::EnvironmentGuard guard("RUSH_FLIGHT_RECORDER", folder.path() + "/new");
  const std::string path = folder.path() + "/new/rank_" + std::to_string(get_rank()) + ".json";
  CHECK(dump_flight_recorder() == "its last collectives are in " + path);
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file);
  CHECK(json.size() == records.size());
  CHECK(json[5]["collective"] == "all_reduce of 6 elements of float32, max");
  CHECK(json[5]["state"] == "completed");
  CHECK(json[5]["group"] == "default");
  const testing::EnvironmentGuard full("RUSH_FLIGHT_RECORDER", "/dev/full/x");
  CHECK(testing::has(dump_flight_recorder(), "could not be written"));
  flight_recorder().clear();
}
