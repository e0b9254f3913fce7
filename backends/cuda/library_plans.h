// Plans of a library, kept by the problem that they solve.
#pragma once
#include <cuda_runtime_api.h>

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "backends/cuda/check.h"

namespace rush::cuda {

// How many plans of cuDNN and cuBLASLt are kept, as many as PyTorch keeps of cuDNN's.
constexpr int64_t kMostPlans = 10000;

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

// Plans in the order of their last use: a new one evicts the least recently used one. A graph that a
// plan was captured in may read its memory whenever it is replayed, so such a plan lives as long as the program. `of`
// and `knows` take the mutex, all other functions want it held.
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
    if (auto known = find(problem)) return known;
    return add(problem, std::make_shared<const Plan>(problem, rest...));
  }
  // The plan that is known, or make()'s, which runs without the mutex: it may take seconds. Where several threads make
  // one for the same problem, all use the first that is done. In a graph that is being captured the plan is kept.
  template <class Make>
  std::shared_ptr<const Plan> of(const Problem& problem, bool is_captured, const Make& make) {
    std::unique_lock<std::mutex> lock(mutex_);
    std::shared_ptr<const Plan> plan = find(problem);
    if (!plan) {
      lock.unlock();
      auto made = std::make_shared<const Plan>(make());
      lock.lock();
      plan = find(problem);
      if (!plan) plan = add(problem, std::move(made));
    }
    if (is_captured) keep_for_graphs(plan);
    return plan;
  }
  bool knows(const Problem& problem) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return by_problem_.contains(problem);
  }
  void keep_for_graphs(const std::shared_ptr<const Plan>& plan) { in_graphs_.insert(plan); }

 private:
  std::shared_ptr<const Plan> find(const Problem& problem) {
    const auto found = by_problem_.find(problem);
    if (found == by_problem_.end()) return nullptr;
    by_age_.splice(by_age_.begin(), by_age_, found->second);
    return by_age_.front().plan;
  }
  std::shared_ptr<const Plan> add(const Problem& problem, std::shared_ptr<const Plan> plan) {
    if (limit_ == 0) return plan;
    shrink_to(limit_ - 1);
    by_age_.push_front({problem, plan});
    by_problem_[problem] = by_age_.begin();
    return plan;
  }

  struct Entry {
    Problem problem;
    std::shared_ptr<const Plan> plan;
  };

  std::mutex mutex_;
  int64_t limit_;
  std::list<Entry> by_age_;  // the one used last in front
  std::unordered_map<Problem, typename std::list<Entry>::iterator, Hash> by_problem_;
  std::unordered_set<std::shared_ptr<const Plan>> in_graphs_;
};

}  // namespace rush::cuda
