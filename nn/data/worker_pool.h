// WorkerPool: threads that carry out numbered jobs and hand back their results in order.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <vector>

#include "core/error/error.h"
#include "core/threads/parallel.h"
#include "core/threads/thread.h"

namespace rush::data {

template <class Job, class Result>
class WorkerPool {
 public:
  using Work = std::function<Result(Job)>;

  /// Starts a thread for each function.
  explicit WorkerPool(std::vector<Work> works) {
    try {
      for (Work& work : works) {
        threads_.emplace_back([this, work = std::move(work)] { run(work); });
      }
    } catch (...) {  // no more threads to be had
      stop();
      throw;
    }
  }
  ~WorkerPool() { stop(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// What became of a job: a result, or what it threw.
  struct Outcome {
    uint64_t number = 0;
    std::optional<Result> result;
    std::exception_ptr failure;
  };

  /// Hands out a job. Returns its number, higher than all before.
  uint64_t push(Job job) {
    std::list<Entry> entry;
    entry.push_back({std::move(job), {}});
    uint64_t number = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      number = entry.front().outcome.number = next_number_++;
      jobs_.splice(jobs_.end(), entry);
    }
    ++outstanding_;
    jobs_changed_.notify_one();
    return number;
  }
  /// Jobs that were pushed and whose results were not taken.
  size_t outstanding() const { return outstanding_; }

  /// Waits for the outcome of the oldest job, or of any. Returns nothing after `timeout`.
  std::optional<Outcome> pop(bool in_order, const std::optional<std::chrono::milliseconds>& timeout) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto ready = [&] {
      return !results_.empty() && (!in_order || results_.front().outcome.number == next_result_);
    };
    if (!timeout) {
      results_changed_.wait(lock, ready);
    } else if (!results_changed_.wait_for(lock, timeout->count(), ready)) {
      return std::nullopt;
    }
    Outcome outcome = std::move(results_.front().outcome);
    results_.pop_front();
    lock.unlock();
    ++next_result_;
    --outstanding_;
    return outcome;
  }

  /// Forgets all jobs and results. A job that is being carried out is finished, and its result dropped.
  void clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    jobs_.clear();
    results_.clear();
    next_result_ = first_wanted_ = next_number_;
    outstanding_ = 0;
  }

  /// Waits until no job is waiting or being carried out.
  void wait_until_idle() {
    std::unique_lock<std::mutex> lock(mutex_);
    results_changed_.wait(lock, [&] { return jobs_.empty() && running_ == 0; });
  }

 private:
  void stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    jobs_changed_.notify_all();
    threads_.clear();  // waits for them
  }

  void run(const Work& work) {
    const SerialLoopsGuard one_thread;  // the workers themselves are what runs in parallel
    while (true) {
      std::unique_lock<std::mutex> lock(mutex_);
      jobs_changed_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      std::list<Entry> mine;
      mine.splice(mine.end(), jobs_, jobs_.begin());
      ++running_;
      lock.unlock();
      Outcome& outcome = mine.front().outcome;
      try {
        outcome.result.emplace(work(std::move(mine.front().job)));
      } catch (...) {
        outcome.failure = std::current_exception();
      }
      lock.lock();
      --running_;
      if (outcome.number >= first_wanted_) {
        const auto later = [&](const Entry& each) { return each.outcome.number > outcome.number; };
        results_.splice(std::find_if(results_.begin(), results_.end(), later), mine);
      }
      lock.unlock();
      results_changed_.notify_one();
    }
  }

  std::mutex mutex_;
  rush::detail::Condition jobs_changed_, results_changed_;
  // What a job needs until its outcome is taken: workers move it on and need no memory, for which they could not ask
  // without an end to the program.
  struct Entry {
    Job job;
    Outcome outcome;
  };
  std::list<Entry> jobs_, results_;  // by number
  uint64_t next_number_ = 0, first_wanted_ = 0;
  size_t running_ = 0;
  bool stopping_ = false;
  uint64_t next_result_ = 0;  // these two belong to the caller's thread
  size_t outstanding_ = 0;
  std::vector<rush::detail::Thread> threads_;
};

}  // namespace rush::data
