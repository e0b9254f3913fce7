// The caching allocator's debug mode: freed memory is poisoned, and memory that is reused too early is reported.
#include <cstdio>

#include "backends/cuda/memory/device_allocator.h"
#include "core/dispatch/op.h"
#include "core/str.h"

namespace rush::cuda {

namespace {

std::string_view name_of(const OpBase* op) { return op ? op->name() : "no operator"; }

std::string name_of(const Stream& stream) {
  if (!stream.handle) return "the default stream";
  char text[32];
  std::snprintf(text, sizeof text, "stream %p", stream.handle);
  return text;
}

std::string stack_of(const ForeignUse& use) {
  std::string text;
  if (!use.allocated_at) return text;
  for (const std::string& frame : use.allocated_at->frames()) text += "\n  " + frame;
  return text;
}

}  // namespace

Stream DeviceAllocator::stream_of(const Block& block) const { return {Device(kCUDA, device_), block.pool->stream}; }

void DeviceAllocator::note_use(const Block& block, void* stream, const OpBase& op) {
  const Lock lock(mutex_);
  if (!order_ || stream == block.pool->stream) return;
  foreign_uses_.add({block.data, block.data + block.size, order_->now({Device(kCUDA, device_), stream}), op.name(),
                     name_of(block.allocated_in), block.trace});
}

// A block that another stream may still be using is left as it is: its own stream may yet wait for that one.
void DeviceAllocator::poison(const Block& block) {
  if (order_ && foreign_uses_.any_before(block.data, block.data + block.size, stream_of(block), *order_)) return;
  driver_.poison(block.data, block.size, block.pool->stream);
}

// The block is not free before these are over.
void DeviceAllocator::forget_recorded_uses(const Block& block) {
  for (void* stream : block.streams) {
    foreign_uses_.forget(block.data, block.data + block.size, {Device(kCUDA, device_), stream});
  }
}

void DeviceAllocator::report_early_reuse(Block& block) {
  block.allocated_in = dispatch_state.device_op;
  const Stream stream = stream_of(block);
  const char *begin = block.data, *end = block.data + block.size;
  if (!foreign_uses_.any_before(begin, end, stream, *order_)) return;
  for (const ForeignUse& use : foreign_uses_.take(begin, end)) {
    ++early_reuses_;
    driver_.report(str("CUDA memory reused too early on cuda:", device_, ": ", use.end - use.begin,
                       " bytes allocated in ", use.allocated_in, " are handed out again in ",
                       name_of(block.allocated_in), " on ", name_of(stream), ", while ", use.op,
                       " may still be using them on ", name_of(use.moment.stream),
                       ": record_stream was not called, and the one has not waited for the other", stack_of(use)));
  }
}

int64_t DeviceAllocator::early_reuses() const {
  const Lock lock(mutex_);
  return early_reuses_;
}

}  // namespace rush::cuda
