#include "tests/labs/wire/emulated_wire.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "core/error/error.h"
#include "core/str.h"

namespace rush::labs {
namespace {

using Kind = RankState::Kind;

struct Abandoned {};  // thrown in ranks that wait, where the run has failed

// What a rank waits for, and the memory of its message.
struct Waiting : RankState {
  const float* source = nullptr;
  float* target = nullptr;
  int64_t clock = 0;  // stays when it goes on
};

std::string show(int rank, const RankState& state) {
  if (state.kind == Kind::Returned) return str("rank ", rank, " has returned");
  const bool sends = state.kind == Kind::Sends;
  return str("rank ", rank, " waits in ", sends ? "send" : "recv", " of ", state.count, " numbers ",
             sends ? "to" : "from", " rank ", state.peer);
}

class Exchange {
 public:
  explicit Exchange(int size) : ranks_(static_cast<size_t>(size)) {
    run_.sent.resize(ranks_.size());
    run_.messages.resize(ranks_.size());
  }

  // One end of a message. Returns when the numbers have been copied.
  void meet(int rank, Kind kind, const float* source, float* target, int64_t count, int peer) {
    std::unique_lock lock(mutex_);
    check(rank, kind, count, peer);
    Waiting& mine = at(rank);
    mine.kind = kind;
    mine.peer = peer;
    mine.count = count;
    mine.source = source;
    mine.target = target;
    const Waiting& other = at(peer);
    if (other.peer == rank && other.kind == (kind == Kind::Sends ? Kind::Receives : Kind::Sends)) {
      kind == Kind::Sends ? deliver(rank, peer) : deliver(peer, rank);
    } else {
      find_deadlock();
    }
    changed_.wait(lock, [&] { return mine.kind == Kind::Computes || !run_.fault.empty(); });
    if (mine.kind != Kind::Computes) throw Abandoned();
  }

  void end(int rank, const std::string& thrown) {
    const std::lock_guard lock(mutex_);
    at(rank).kind = Kind::Returned;
    if (!thrown.empty()) fail(str("rank ", rank, " of ", ranks_.size(), " threw: ", thrown));
    find_deadlock();
  }

  WireRun result() {  // after all threads
    for (const Waiting& rank : ranks_) run_.time = std::max(run_.time, rank.clock);
    return run_;
  }

 private:
  Waiting& at(int rank) { return ranks_[static_cast<size_t>(rank)]; }

  void check(int rank, Kind kind, int64_t count, int peer) const {
    const char* name = kind == Kind::Sends ? "send" : "recv";
    RUSH_CHECK_VALUE(peer >= 0 && peer < static_cast<int>(ranks_.size()) && peer != rank, name, ": rank ", rank, " of ",
                     ranks_.size(), " has no connection to rank ", peer);
    RUSH_CHECK_VALUE(count >= 0, name, ": the count is ", count, " and must not be negative");
  }

  void deliver(int from, int to) {
    Waiting &sender = at(from), &receiver = at(to);
    if (sender.count != receiver.count) {
      return fail(
          str("rank ", from, " sends ", sender.count, " numbers to rank ", to, ", which receives ", receiver.count));
    }
    std::copy_n(sender.source, sender.count, receiver.target);
    const int64_t end = std::max(sender.clock, receiver.clock) + sender.count;
    sender.clock = receiver.clock = end;
    sender.kind = receiver.kind = Kind::Computes;
    run_.sent[static_cast<size_t>(from)] += sender.count;
    ++run_.messages[static_cast<size_t>(from)];
    run_.neighbours_only = run_.neighbours_only && to == (from + 1) % static_cast<int>(ranks_.size());
    changed_.notify_all();
  }

  void find_deadlock() {
    std::string who;
    bool waits = false;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].kind == Kind::Computes) return;
      waits = waits || ranks_[rank].kind != Kind::Returned;
      who += str(rank == 0 ? "" : "; ", show(static_cast<int>(rank), ranks_[rank]));
    }
    if (!waits || !run_.fault.empty()) return;
    run_.stuck.assign(ranks_.begin(), ranks_.end());
    fail(str("deadlock: ", who));
  }

  void fail(const std::string& fault) {
    if (run_.fault.empty()) run_.fault = fault;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Waiting> ranks_;
  WireRun run_;
};

class EmulatedWire final : public Wire {
 public:
  EmulatedWire(Exchange& exchange, int rank, int size) : Wire(rank, size), exchange_(exchange) {}
  void send(const float* data, int64_t count, int to) override {
    exchange_.meet(rank(), Kind::Sends, data, nullptr, count, to);
  }
  void recv(float* data, int64_t count, int from) override {
    exchange_.meet(rank(), Kind::Receives, nullptr, data, count, from);
  }

 private:
  Exchange& exchange_;
};

void run_rank(Exchange& exchange, int rank, int size, const std::function<void(Wire&)>& body) {
  std::string thrown;
  try {
    EmulatedWire wire(exchange, rank, size);
    body(wire);
  } catch (const Abandoned&) {  // the run says why
  } catch (const std::exception& error) {
    thrown = error.what();
  }
  exchange.end(rank, thrown);
}

}  // namespace

WireRun run_ranks(int size, const std::function<void(Wire&)>& body) {
  Exchange exchange(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&, rank] { run_rank(exchange, rank, size, body); });
  for (std::thread& thread : threads) thread.join();
  return exchange.result();
}

}  // namespace rush::labs
