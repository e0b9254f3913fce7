// The streams of a backward pass.
#pragma once
#include <vector>

#include "autograd/node.h"
#include "core/device/guard.h"
#include "core/device/hand_over.h"

namespace rush {

// Note [The backward pass and streams]
// A node's `apply` runs on the stream of its forward call, so that a backward pass overlaps as its forward pass did. A
// gradient that is produced on one stream and consumed on another makes the consumer's stream wait, and its memory is
// not handed out again before the consumer is done. When the pass ends, the caller's current streams wait for all
// streams that leaves were written on: to the caller the pass looks as if it had run on the current stream. On the CPU
// no node has a stream and nothing of this happens.
class BackwardStreams {
 public:
  /// The stream that a gradient given by the caller was made on.
  static Stream of_caller(const Tensor& grad) { return grad.defined() ? current_stream(grad.device()) : Stream(); }

  /// `stream` holds results that the caller will look at.
  void ends_on(const Stream& stream) {
    if (!stream.is_queue()) return;
    for (const Stream& known : ends_) {
      if (known == stream) return;
    }
    ends_.push_back(stream);
  }

  /// Call it outside of any node's StreamGuard.
  void join_caller() const {
    for (const Stream& stream : ends_) wait_stream(current_stream(stream.device), stream);
  }

 private:
  std::vector<Stream> ends_;
};

}  // namespace rush
