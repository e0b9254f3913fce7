// The emulated wire: ranks that are threads of one process, with their messages counted and their deadlocks found.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/labs/wire/wire.h"

namespace rush::labs {

// Note [The emulated wire]
// Each rank is a thread. A send and the recv that it meets are one event: whichever of both ranks comes second copies
// the numbers, and both go on. So a rank that sends before the other receives waits, however short the message is,
// where MPI buffers short ones and hides a deadlock until messages are long.
//
// A rank computes, waits in a send or a recv, or has returned. When one begins to wait or returns, and no rank computes
// any more, nobody can end any wait: that is a deadlock, and every rank that waits is ended by an exception.
//
// Time is counted, not measured. Each rank has a clock. A message begins when the later of both ranks has come, takes
// one unit for each number, and sets both clocks to its end. What a rank computes takes no time. The order in which the
// machine runs the threads does not change these clocks, so that a test can judge them.

/// What a rank was doing when all of them stood still.
struct RankState {
  enum class Kind { Computes, Sends, Receives, Returned } kind = Kind::Computes;
  int peer = -1;  // of a message
  int64_t count = 0;
};

/// What came of run_ranks.
struct WireRun {
  std::string fault;              // empty where all ranks have returned; else a deadlock, or what a rank threw first
  std::vector<RankState> stuck;   // by rank; empty unless there was a deadlock
  std::vector<int64_t> sent;      // numbers, by rank
  std::vector<int64_t> messages;  // that a rank has sent
  int64_t time = 0;               // the latest clock
  bool neighbours_only = true;    // whether all messages went from a rank to the next, and from the last to rank 0
};

/// Calls `body` on `size` threads, each with the wire of its rank, and returns when all have ended.
WireRun run_ranks(int size, const std::function<void(Wire&)>& body);

}  // namespace rush::labs
