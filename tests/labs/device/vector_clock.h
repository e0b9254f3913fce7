// Vector clocks, which say whether one piece of a device's work comes before another.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rush::labs {

// For each stream, how much of its work is known to come before. Lamport, "Time, clocks, and the ordering of events in
// a distributed system" (1978); Mattern, "Virtual time and global states of distributed systems" (1989).
class VectorClock {
 public:
  uint64_t at(size_t stream) const { return stream < times_.size() ? times_[stream] : 0; }
  void tick(size_t stream) {
    if (times_.size() <= stream) times_.resize(stream + 1);
    ++times_[stream];
  }
  void join(const VectorClock& other) {
    if (times_.size() < other.times_.size()) times_.resize(other.times_.size());
    for (size_t i = 0; i < other.times_.size(); ++i) times_[i] = std::max(times_[i], other.times_[i]);
  }

 private:
  std::vector<uint64_t> times_;
};

}  // namespace rush::labs
