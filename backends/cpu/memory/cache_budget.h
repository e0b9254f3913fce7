// How much memory the CPU's caching allocator may hold.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rush::cpu {

// Note [What the CPU cache keeps]
// The peak of a training step is that of earlier steps, so memory up to the peak is worth keeping, but no more. The
// cache and the memory in use together may take an eighth (and 32 MiB) more than the recent peak. "Recent" is counted
// in bytes handed out, not in seconds: a peak is forgotten once 32 to 64 times its bytes were handed out without
// reaching it again. Getting new pages costs about as much as writing them twice, so forgetting a peak costs a few
// hundredths of the time in which that memory was written.
//
// Moreover, the cache never lets the total exceed four fifths of what the process may use, see memory_limit: a
// container kills a process at its limit without warning.
class CacheBudget {
 public:
  static constexpr size_t kSlack = size_t{32} << 20;
  static constexpr uint64_t kForgetAfter = 32;

  explicit CacheBudget(size_t memory_limit) : most_(memory_limit / 5 * 4) {}

  // A block is handed out, or comes back. `take` returns whether a peak was forgotten.
  bool take(size_t size) {
    in_use_ += size;
    volume_ += size;
    peak_ = std::max(peak_, in_use_);
    if (volume_ - forgot_at_ < kForgetAfter * std::max({peak_, earlier_peak_, kSlack})) return false;
    earlier_peak_ = peak_;
    peak_ = in_use_;
    forgot_at_ = volume_;
    return true;
  }
  void give(size_t size) { in_use_ -= size; }

  // The most bytes that may be held in all, when `more` are needed beside those in use.
  size_t allowed(size_t more) const {
    const size_t needed = in_use_ + more, peak = std::max({peak_, earlier_peak_, needed});
    return std::max(needed, std::min(peak + peak / 8 + kSlack, most_));
  }
  void set_memory_limit(size_t limit) { most_ = limit / 5 * 4; }

  size_t in_use() const { return in_use_; }
  // All bytes ever handed out: the clock that measures the age of kept memory.
  uint64_t volume() const { return volume_; }

 private:
  size_t in_use_ = 0, peak_ = 0, earlier_peak_ = 0, most_;
  uint64_t volume_ = 0, forgot_at_ = 0;
};

}  // namespace rush::cpu
