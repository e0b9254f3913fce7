// Plans of a library, kept by the problem that they solve.
#pragma once
#include <cuda_runtime_api.h>

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/cuda/check.h"

namespace rush::cuda {

// Some libraries launch in the thread's driver context, which a thread that has not called the runtime yet does not
// have.
inline void enter_context() {
  thread_local bool entered = false;
  if (entered) return;
  int device = 0;
  RUSH_CUDA_CHECK(cudaGetDevice(&device));
  RUSH_CUDA_CHECK(cudaSetDevice(device));
  entered = true;
}

// FNV-1a over the members of a problem, a word at a time.
class WordHash {
 public:
  void mix(int64_t word) { hash_ = (hash_ ^ static_cast<uint64_t>(word)) * 1099511628211ull; }
  size_t value() const { return hash_ ^ (hash_ >> 32); }

 private:
  uint64_t hash_ = 14695981039346656037ull;
};

// The plans of a device, in the order of their last use; the one that was used least recently makes way for a new one.
// A graph that a plan was captured in may read its memory whenever it is replayed, so such a plan lives as long as the
// program. Whoever calls holds the mutex.
template <class Problem, class Plan, class Hash>
class LibraryPlans {
 public:
  explicit LibraryPlans(int64_t limit) : limit_(limit) {}

  std::mutex& mutex() { return mutex_; }
  int64_t size() const { return static_cast<int64_t>(by_age_.size()); }
  int64_t limit() const { return limit_; }
  void set_limit(int64_t limit) {
    limit_ = limit;
    shrink_to(limit);
  }
  void shrink_to(int64_t plans) {
    while (size() > plans) {
      by_problem_.erase(by_age_.back().problem);
      by_age_.pop_back();
    }
  }
  // A new one is made of the problem and the rest of the arguments.
  template <class... Rest>
  std::shared_ptr<const Plan> find_or_make(const Problem& problem, const Rest&... rest) {
    const auto found = by_problem_.find(problem);
    if (found != by_problem_.end()) {
      by_age_.splice(by_age_.begin(), by_age_, found->second);
      return by_age_.front().plan;
    }
    auto plan = std::make_shared<const Plan>(problem, rest...);
    if (limit_ == 0) return plan;
    shrink_to(limit_ - 1);
    by_age_.push_front({problem, plan});
    by_problem_[problem] = by_age_.begin();
    return plan;
  }
  void keep_for_graphs(std::shared_ptr<const Plan> plan) { in_graphs_.push_back(std::move(plan)); }

 private:
  struct Entry {
    Problem problem;
    std::shared_ptr<const Plan> plan;
  };

  std::mutex mutex_;
  int64_t limit_;
  std::list<Entry> by_age_;  // the one used last in front
  std::unordered_map<Problem, typename std::list<Entry>::iterator, Hash> by_problem_;
  std::vector<std::shared_ptr<const Plan>> in_graphs_;
};

}  // namespace rush::cuda
