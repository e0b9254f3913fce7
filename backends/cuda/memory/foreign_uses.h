// The uses of blocks by streams other than their own, for the allocator's debug mode.
#pragma once
#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "backends/cuda/stream/stream_order.h"
#include "core/debug/stack_trace.h"

namespace rush::cuda {

// Note [Blocks that are reused too early]
// A block that is freed may be handed out at once to its own stream, whose further work comes after all that the stream
// has. Another stream that used the block is not in that order: unless the tensor's record_stream() was called, or the
// block's stream has waited for the other by the time the block is handed out again, both may write to it at once. Such
// numbers are wrong once in a while and cannot be reproduced. In debug mode every operator notes which tensors it was
// given on which stream, and what is noted stays with the addresses after the block is freed, split or merged, until
// the block's stream is behind it, or they are handed out again: then that is reported.
//
// An operator that only asks for a tensor's shape (zeros_like) counts as a use; views do not. Kernels that are called
// without an operator, such as an optimiser's fused step, are not noted.
struct ForeignUse {
  const char *begin, *end;
  StreamOrder::Moment moment;
  std::string_view op;
  // Where the block was allocated: the operator, and the stack while history is recorded.
  std::string_view allocated_in;
  std::shared_ptr<const StackTrace> allocated_at;

  bool overlaps(const char* from, const char* to) const { return begin < to && from < end; }
};

class ForeignUses {
 public:
  // A later use of the same memory on the same stream stands for the earlier ones.
  void add(ForeignUse use) {
    std::erase_if(uses_, [&](const ForeignUse& known) {
      return known.begin == use.begin && known.end == use.end && known.moment.stream == use.moment.stream;
    });
    uses_.push_back(std::move(use));
  }
  // Those of the range are over.
  void forget(const char* begin, const char* end) {
    std::erase_if(uses_, [&](const ForeignUse& use) { return use.overlaps(begin, end); });
  }
  // Forgets those of the range that are on `stream`, because it is waited for.
  void forget(const char* begin, const char* end, const Stream& stream) {
    std::erase_if(uses_,
                  [&](const ForeignUse& use) { return use.overlaps(begin, end) && use.moment.stream == stream; });
  }
  // Whether `stream` is not behind one of the range; forgets those that it is behind.
  bool any_before(const char* begin, const char* end, const Stream& stream, StreamOrder& order) {
    std::erase_if(
        uses_, [&](const ForeignUse& use) { return use.overlaps(begin, end) && order.is_behind(stream, use.moment); });
    return std::ranges::any_of(uses_, [&](const ForeignUse& use) { return use.overlaps(begin, end); });
  }
  // Takes those of the range out.
  std::vector<ForeignUse> take(const char* begin, const char* end) {
    std::vector<ForeignUse> taken;
    for (const ForeignUse& use : uses_) {
      if (use.overlaps(begin, end)) taken.push_back(use);
    }
    forget(begin, end);
    return taken;
  }

 private:
  std::vector<ForeignUse> uses_;
};

}  // namespace rush::cuda
