// What the caching allocator did and when, and what it holds: for pictures of memory over time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/debug/stack_trace.h"

namespace rush::cuda {

struct HistoryOptions {
  bool enabled = true;
  bool stacks = true;            // keep the call stack of every allocation
  size_t max_entries = 1000000;  // the oldest are dropped beyond
};

using MemoryTrace = StackTrace;

struct TraceEntry {
  // By PyTorch's names. A block that is freed is "requested" to be, and "completed" when other streams are done.
  enum class Action {
    Alloc,
    FreeRequested,
    FreeCompleted,
    SegmentAlloc,
    SegmentFree,
    SegmentMap,
    SegmentUnmap,
    Oom,
    Snapshot
  };
  Action action;
  uint64_t address;  // of an Oom: the bytes that the device had free
  size_t size;
  void* stream;
  int64_t time;  // microseconds since 1970
  std::shared_ptr<const MemoryTrace> trace;
};

struct BlockInfo {
  uint64_t address;
  size_t size, requested;
  bool allocated, active;
  std::shared_ptr<const MemoryTrace> trace;
};

struct SegmentInfo {
  uint64_t address = 0;
  size_t total_size = 0, allocated_size = 0, active_size = 0, requested_size = 0;
  void* stream;
  bool small, expandable;
  uint64_t group;
  std::vector<BlockInfo> blocks;
};

struct DeviceSnapshot {
  int device = 0;
  std::vector<SegmentInfo> segments;
  std::vector<TraceEntry> trace;
};

// The entries of one device. Guarded by the allocator's mutex.
class History {
 public:
  bool enabled() const { return options_.enabled; }
  void start(const HistoryOptions& options) {
    options_ = options;
    entries_.clear();
  }
  void add(TraceEntry entry) {
    if (entries_.size() >= options_.max_entries) entries_.pop_front();
    entries_.push_back(std::move(entry));
  }
  // The caller's stack; null unless stacks are wanted.
  std::shared_ptr<const MemoryTrace> capture() const {
    return options_.stacks ? std::make_shared<const MemoryTrace>(StackTrace::capture()) : nullptr;
  }
  const std::deque<TraceEntry>& entries() const { return entries_; }

 private:
  HistoryOptions options_{.enabled = false};
  std::deque<TraceEntry> entries_;
};

}  // namespace rush::cuda
