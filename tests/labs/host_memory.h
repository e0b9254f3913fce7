// The host's memory as if it were a device's, for lab 9: what the CUDA caching allocator asks its device for is
// answered without a GPU.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "backends/cuda/memory/memory_driver.h"
#include "core/error/error.h"

namespace rush::labs {

// Of `total` bytes. Events are reached in the order in which they were recorded, as far as `reached_events` says.
class HostMemory final : public cuda::MemoryDriver {
 public:
  explicit HostMemory(size_t total) : total_(total) {}
  ~HostMemory() override {
    for (const auto& [data, nbytes] : segments_) std::free(data);
  }

  void* allocate(size_t nbytes) override {
    if (used_ + nbytes > total_) return nullptr;
    void* data = std::aligned_alloc(512, nbytes);
    RUSH_CHECK_AS(OutOfMemoryError, data, "this machine has no ", nbytes, " bytes");
    used_ += nbytes;
    segments_[data] = nbytes;
    return data;
  }
  void free(void* data) override {
    used_ -= segments_.at(data);
    segments_.erase(data);
    std::free(data);
  }
  MemoryInfo info() override { return {total_ - used_, total_}; }

  // Events have numbers from 1 on.
  void* record_event(void* stream) override {
    events.push_back(stream);
    return reinterpret_cast<void*>(events.size());
  }
  bool reached(void* event) override { return reinterpret_cast<size_t>(event) <= reached_events; }
  void wait(void* event) override { reached_events = std::max(reached_events, reinterpret_cast<size_t>(event)); }

  void poison(void*, size_t, void*) override {}
  void report(const std::string&) override {}

  // It has no virtual memory.
  size_t granularity() override { return size_t{2} << 20; }
  void* reserve_addresses(size_t) override { return nullptr; }
  bool map(void*, size_t) override { return false; }
  void unmap(void*, size_t) override {}

  std::vector<void*> events;  // by number: the stream at whose end it is
  size_t reached_events = 0;

 private:
  const size_t total_;
  size_t used_ = 0;
  std::map<void*, size_t> segments_;
};

}  // namespace rush::labs
