// Sets the number of threads for a scope.
#pragma once
#include "core/threads/parallel.h"

class NumThreadsGuard {
 public:
  explicit NumThreadsGuard(int threads) : before_(rush::get_num_threads()) { rush::set_num_threads(threads); }
  ~NumThreadsGuard() { rush::set_num_threads(before_); }
  NumThreadsGuard(const NumThreadsGuard&) = delete;
  NumThreadsGuard& operator=(const NumThreadsGuard&) = delete;

 private:
  int before_;
};
