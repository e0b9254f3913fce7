#include "backends/cpu/comm/mpi_thread.h"

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/distributed/environment.h"
#include "core/distributed/flight_recorder.h"
#include "core/str.h"
#include "core/threads/processors.h"

namespace rush::cpu {

using distributed::Work;
using distributed::WorkPtr;

void check_mpi(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  const bool differs = status == MPI_ERR_TRUNCATE;
  RUSH_THROW(DistributedError, call, ": ", std::string(text, static_cast<size_t>(length)),
             differs ? ": what the processes call differs; RUSH_DISTRIBUTED_DEBUG=1 names it" : "");
}

namespace {

// Between two looks at something that takes its time.
class Patience {
 public:
  void pause() {
    if (++looks_ <= kYields) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(looks_ - kYields, 200)));
  }
  // The same beside other programs: when the processor has gone to one of them it is gone for milliseconds, and comes
  // back sooner to a thread that sleeps than to one that yields.
  void pause_beside_others() {
    const MpiThread::Clock::time_point before = MpiThread::Clock::now();
    pause();
    if (MpiThread::Clock::now() - before > std::chrono::microseconds(100)) looks_ = std::max(looks_, kYields);
  }

 private:
  static constexpr int kYields = 100;
  int looks_ = 0;
};

// Whether the message is there. Throws where it has another length than what is to receive it.
bool has_arrived(Message& message) {
  int done = 0;
  MPI_Status status;
  RUSH_MPI_CALL(MPI_Test, &message.request, &done, &status);
  if (!done || message.expected_bytes < 0) return done;
  int bytes = 0;
  RUSH_MPI_CALL(MPI_Get_count, &status, MPI_BYTE, &bytes);
  RUSH_CHECK_DISTRIBUTED(bytes == message.expected_bytes, "a message of ", bytes, " bytes came for ",
                         message.expected_bytes, " bytes of a tensor");
  return true;
}

// What was thrown, with the collective's name before it.
std::exception_ptr failure_of(const std::string& who) {
  try {
    throw;
  } catch (const DistributedError& error) {
    return std::make_exception_ptr(DistributedError(str(who, ": ", error.msg())));
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

MpiThread::MpiThread(Clock::duration timeout)
    : timeout_(timeout),
      shares_processors_(distributed::read_environment().local_world_size.value_or(1) > available_processors()),
      thread_([this] { loop(); }) {}

MpiThread::~MpiThread() {
  const std::lock_guard lock(mutex_);
  ends_ = true;
  changed_.notify_all();
}

WorkPtr MpiThread::begin(std::string who, std::function<std::vector<Message>()> collective) {
  const auto work = std::make_shared<Work>();
  const std::lock_guard lock(mutex_);
  queue_.push_back({std::move(who), std::move(collective), work, {}, {}});
  changed_.notify_all();
  return work;
}

bool MpiThread::take(Request& request) {
  std::unique_lock lock(mutex_);
  if (transfers_.empty()) changed_.wait(lock, [&] { return ends_ || !queue_.empty(); });
  if (queue_.empty()) return false;
  request = std::move(queue_.front());
  queue_.pop_front();
  return true;
}

void MpiThread::loop() {
#ifdef __linux__
  prctl(PR_SET_TIMERSLACK, 1000);  // in ns: a pause may be so much longer; 50,000 otherwise
#endif
  Patience patience;
  while (true) {
    if (Request request; take(request)) {
      start(std::move(request));
      patience = {};
    } else if (transfers_.empty()) {
      return;  // take has waited, and there is nothing: the end
    } else if (!look_after_transfers()) {
      patience.pause();
    }
  }
}

void MpiThread::start(Request request) {
  request.begun = Clock::now();
  try {
    check_time(request.begun);
    request.messages = request.begin();
    if (!request.messages.empty()) return transfers_.push_back(std::move(request));
    end(request);
  } catch (...) {
    if (!has_failed_.exchange(true)) failure_ = request.who + " has failed";
    end(request, failure_of(request.who));
  }
}

void MpiThread::end(Request& request, std::exception_ptr failure) {
  request.begin = nullptr;  // the waiting thread has the tensors to itself again
  request.work->finish(std::move(failure));
}

bool MpiThread::look_after_transfers() {
  return std::erase_if(transfers_, [this](Request& transfer) {
    try {
      check_time(transfer.begun);
      std::erase_if(transfer.messages, has_arrived);
      if (!transfer.messages.empty()) return false;
      end(transfer);
    } catch (...) {
      end(transfer, failure_of(transfer.who));
    }
    return true;
  });
}

void MpiThread::wait(MPI_Request request) {
  Message message{request, -1};
  const Clock::time_point begun = Clock::now();
  Patience patience;
  while (!has_arrived(message)) {
    look_after_transfers();
    check_time(begun);
    shares_processors_ ? patience.pause() : patience.pause_beside_others();
  }
}

void MpiThread::check_time(Clock::time_point begun) {
  RUSH_CHECK_DISTRIBUTED(!has_failed_, "the group cannot be used any more, since ", failure_);
  if (Clock::now() - begun <= timeout_) return;
  has_failed_ = true;
  failure_ = str("the other processes have not come within the time-out of ",
                 std::chrono::duration<double>(timeout_).count(), " s");
  RUSH_THROW(DistributedError, failure_, "; the group cannot be used any more; ", distributed::dump_flight_recorder());
}

}  // namespace rush::cpu
