// The emulated wire: what it carries and counts, and the deadlocks that it finds.
#include <doctest/doctest.h>

#include <numeric>

#include "core/error/error.h"
#include "tests/labs/wire/emulated_wire.h"

using namespace rush::labs;

TEST_CASE("a message is copied from the sender's memory to the receiver's, and counted") {
  std::vector<float> got(5, -1);
  const WireRun run = run_ranks(3, [&](Wire& wire) {
    std::vector<float> numbers(5);
    std::iota(numbers.begin(), numbers.end(), 0.0F);
    if (wire.rank() == 2) wire.send(numbers.data(), 5, 0);
    if (wire.rank() == 0) wire.recv(got.data(), 5, 2);
  });
  CHECK(run.fault.empty());
  CHECK(got == std::vector<float>{0, 1, 2, 3, 4});
  CHECK(run.sent == std::vector<int64_t>{0, 0, 5});
  CHECK(run.messages == std::vector<int64_t>{0, 0, 1});
  CHECK(run.neighbours_only);
}

TEST_CASE("the clocks count what waits for what, in any order of the threads") {
  for (int repeated = 0; repeated < 50; ++repeated) {
    const WireRun run = run_ranks(4, [](Wire& wire) {
      float number = 0;
      if (wire.rank() > 0) wire.recv(&number, 1, wire.rank() - 1);
      if (wire.rank() < 3) wire.send(&number, 1, wire.rank() + 1);
    });
    CHECK(run.fault.empty());
    CHECK(run.time == 3);
  }
  const WireRun pairs = run_ranks(4, [](Wire& wire) {
    std::vector<float> numbers(7);
    if (wire.rank() % 2 == 0) wire.send(numbers.data(), 7, wire.rank() + 1);
    if (wire.rank() % 2 == 1) wire.recv(numbers.data(), 7, wire.rank() - 1);
  });
  CHECK(pairs.time == 7);
}

TEST_CASE("a rank that sends backwards or past its neighbour is noticed") {
  const WireRun run = run_ranks(3, [](Wire& wire) {
    float number = 0;
    if (wire.rank() == 1) wire.send(&number, 1, 0);
    if (wire.rank() == 0) wire.recv(&number, 1, 1);
  });
  CHECK(run.fault.empty());
  CHECK_FALSE(run.neighbours_only);
}

TEST_CASE("where all ranks wait for each other, the deadlock names them, and all are ended") {
  for (int repeated = 0; repeated < 50; ++repeated) {
    const WireRun run = run_ranks(2, [](Wire& wire) {
      float number = 0;
      wire.send(&number, 1, 1 - wire.rank());
      wire.recv(&number, 1, 1 - wire.rank());
    });
    CHECK(run.fault ==
          "deadlock: rank 0 waits in send of 1 numbers to rank 1; rank 1 waits in send of 1 numbers to rank 0");
    REQUIRE(run.stuck.size() == 2);
    CHECK(run.stuck[1].kind == RankState::Kind::Sends);
    CHECK(run.stuck[1].peer == 0);
  }
}

TEST_CASE("who waits for a rank that has returned is ended, too") {
  const WireRun run = run_ranks(2, [](Wire& wire) {
    float number = 0;
    if (wire.rank() == 1) wire.recv(&number, 1, 0);
  });
  CHECK(run.fault == "deadlock: rank 0 has returned; rank 1 waits in recv of 1 numbers from rank 0");
}

TEST_CASE("a rank that throws ends the others, and the run says what it threw") {
  const WireRun run = run_ranks(3, [](Wire& wire) {
    float number = 0;
    RUSH_CHECK_VALUE(wire.rank() != 1, "no rank ", wire.rank());
    wire.recv(&number, 1, 1);
  });
  CHECK(run.fault.find("rank 1 of 3 threw: no rank 1") == 0);
  CHECK(run.stuck.empty());
}

TEST_CASE("ends of a message that differ in length, and connections that are not there, are refused") {
  const WireRun lengths = run_ranks(2, [](Wire& wire) {
    float numbers[2] = {};
    if (wire.rank() == 0) wire.send(numbers, 1, 1);
    if (wire.rank() == 1) wire.recv(numbers, 2, 0);
  });
  CHECK(lengths.fault == "rank 0 sends 1 numbers to rank 1, which receives 2");
  const WireRun itself = run_ranks(1, [](Wire& wire) {
    float number = 0;
    wire.send(&number, 1, 0);
  });
  CHECK(itself.fault.find("send: rank 0 of 1 has no connection to rank 0") != std::string::npos);
}
