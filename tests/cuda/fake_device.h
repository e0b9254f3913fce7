// A device that is only played, so that the caching allocator's decisions are tested without a GPU.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/memory/device_allocator.h"
#include "tests/byte_units.h"

namespace rush_tests {

using namespace rush;
using namespace rush::cuda;

using rush::testing::kKiB;
using rush::testing::kMiB;

// A device of `total` bytes. Events are reached when the test says so.
class FakeDriver final : public MemoryDriver {
 public:
  explicit FakeDriver(size_t total) : total_(total) {}

  void* allocate(size_t nbytes) override {
    ++calls;
    if (used + nbytes > total_) return nullptr;
    used += nbytes;
    auto* data = reinterpret_cast<void*>(next_);
    next_ += (nbytes + 0xFFFFF) / 0x100000 * 0x100000 + 0x100000;
    live[data] = nbytes;
    return data;
  }
  void free(void* data) override {
    REQUIRE(live.count(data) == 1);
    used -= live[data];
    live.erase(data);
  }
  MemoryInfo info() override { return {total_ - used, total_}; }

  void* record_event(void* stream) override {
    events.push_back(stream);
    return reinterpret_cast<void*>(events.size());
  }
  bool reached(void* event) override {
    CHECK_FALSE(capturing);
    return reinterpret_cast<size_t>(event) <= reached_events;
  }
  void wait(void* event) override { reached_events = std::max(reached_events, reinterpret_cast<size_t>(event)); }
  void poison(void* data, size_t nbytes, void*) override { poisoned.push_back({data, nbytes}); }
  void report(const std::string& line) override { reports.push_back(line); }

  size_t granularity() override { return 2 * kMiB; }
  void* reserve_addresses(size_t nbytes) override {
    const uint64_t start = next_;
    next_ += nbytes;
    return reinterpret_cast<void*>(start);
  }
  bool map(void* start, size_t nbytes) override {
    CHECK(mapped.count(start) == 0);
    if (used + nbytes > total_) return false;
    used += nbytes;
    mapped[start] = nbytes;
    return true;
  }
  void unmap(void* start, size_t nbytes) override {
    REQUIRE(mapped.count(start) == 1);
    CHECK(mapped[start] == nbytes);
    used -= nbytes;
    mapped.erase(start);
  }

  size_t used = 0, reached_events = 0;
  int calls = 0;
  bool capturing = false;
  std::map<void*, size_t> live, mapped;
  std::vector<void*> events;
  std::vector<std::pair<void*, size_t>> poisoned;
  std::vector<std::string> reports;

 private:
  size_t total_;
  uint64_t next_ = uint64_t{1} << 40;
};

inline void* const kStream = nullptr;
inline void* const kOther = reinterpret_cast<void*>(1);

struct FakeDevice {
  explicit FakeDevice(size_t total = 1024 * kMiB, const char* settings = "")
      : driver(total), allocator(0, driver, AllocatorConfig::parse(settings), &order) {}
  Block* take(size_t nbytes, void* stream = kStream, uint64_t group = 0) {
    return allocator.allocate(nbytes, stream, group);
  }
  void give(Block* block) { allocator.deallocate(block); }
  int64_t reserved() { return allocator.stats().reserved_bytes.all.current; }
  int64_t allocated() { return allocator.stats().allocated_bytes.all.current; }

  FakeDriver driver;
  StreamOrder order;
  DeviceAllocator allocator;
};

}  // namespace rush_tests
