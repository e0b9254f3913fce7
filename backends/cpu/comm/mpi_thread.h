// MpiThread, the one thread that calls MPI, and RUSH_MPI_CALL, the one way in which functions of MPI are called.
#pragma once
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/distributed/distributed_error.h"
#include "core/distributed/work.h"
#include "core/threads/thread.h"

namespace rush::cpu {

/// Throws DistributedError, with MPI's words for the status, unless it is MPI_SUCCESS.
void check_mpi(int status, const char* call);
#define RUSH_MPI_CALL(function, ...) ::rush::cpu::check_mpi(function(__VA_ARGS__), #function)

// Note [Communication thread]
// While the caller computes, one thread calls MPI for the collectives of all groups. It takes requests from a queue
// in the order in which they came: so collectives begin in the same order on every process, and MPI need not be safe
// for several threads at once (MPI_THREAD_SERIALIZED). Messages (of send, recv and all_to_all) only begin in that
// order: the thread goes on to the next request, and looks after them until they are done. Where it waits, it looks
// again after a while that grows to a fifth of a millisecond, rather than keep a processor from the threads that
// compute. Where another program has taken the processor it sleeps at once; but not while messages alone are on their
// way, since long ones move only while a thread looks. What is thrown on the thread is thrown again by Work::wait().
//
// Where the other processes do not come within the time-out, MPI cannot be asked to give up. Where a collective has
// thrown, as MPI does for lengths that differ, this process has not done its share of it, and a later one would meet
// the wrong ones of the others. So the thread never calls MPI again: all later requests fail, and the program is
// expected to end, whereupon mpirun ends the others.

/// A message that is on its way.
struct Message {
  MPI_Request request;
  int64_t expected_bytes;  // -1 for one that is sent
};

class MpiThread {
 public:
  using Clock = std::chrono::steady_clock;

  /// Throws std::system_error when the machine refuses a thread.
  explicit MpiThread(Clock::duration timeout);
  /// Ends what was begun, and then the thread.
  ~MpiThread();

  /// Has the thread call `collective`, which may call `wait`, and returns messages; the Work is done when all of these
  /// have arrived. `who` begins the messages of its errors.
  distributed::WorkPtr begin(std::string who, std::function<std::vector<Message>()> collective);

  /// On the thread: until MPI has carried the request out.
  void wait(MPI_Request request);

  bool has_failed() const { return has_failed_; }  // MPI must not be called any more

 private:
  struct Request {
    std::string who;
    std::function<std::vector<Message>()> begin;  // also keeps the tensors alive until all is done
    distributed::WorkPtr work;
    std::vector<Message> messages;  // on their way
    Clock::time_point begun;
  };

  void loop();
  bool take(Request& request);
  void start(Request request);
  // Throws DistributedError, now and from now on, where that was too long ago; and where a request has failed.
  void check_time(Clock::time_point begun);
  static void end(Request& request, std::exception_ptr failure = nullptr);
  // Ends those whose messages have all arrived. Whether it ended one.
  bool look_after_transfers();

  const Clock::duration timeout_;
  const bool shares_processors_;  // there are more processes than processors: it yields to those that it waits for
  std::atomic<bool> has_failed_ = false;
  std::string failure_;  // what has; of the thread alone
  std::mutex mutex_;
  rush::detail::Condition changed_;
  std::deque<Request> queue_;
  bool ends_ = false;
  std::vector<Request> transfers_;  // that have begun; of the thread alone
  rush::detail::Thread thread_;     // last: it uses the others
};

}  // namespace rush::cpu
