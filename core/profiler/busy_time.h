// BusyTime: how long a device did anything.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace rush::profiler {

// The length of the union of intervals that come nearly in the order of their beginnings.
class BusyTime {
 public:
  void add(int64_t begin, int64_t end) {
    waiting_.emplace_back(begin, end);
    if (waiting_.size() == 2 * kWaiting) merge(kWaiting);
  }
  int64_t total() {
    merge(waiting_.size());
    return total_;
  }

 private:
  static constexpr size_t kWaiting = size_t{1} << 14;

  void merge(size_t count) {
    std::sort(waiting_.begin(), waiting_.end());
    for (size_t i = 0; i < count; ++i) {
      const auto [begin, end] = waiting_[i];
      total_ += std::max<int64_t>(0, end - std::max(begin, merged_until_));
      merged_until_ = std::max(merged_until_, end);
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  std::vector<std::pair<int64_t, int64_t>> waiting_;
  int64_t total_ = 0, merged_until_ = std::numeric_limits<int64_t>::min();
};

}  // namespace rush::profiler
