// The caching allocator's decisions, on a device that is only played: these tests need no GPU.
#include "core/error/error.h"
#include "tests/cuda/fake_device.h"

namespace rush_tests {

TEST_CASE("small blocks are cut from one segment and merge again") {
  FakeDevice device;
  Block *a = device.take(100), *b = device.take(513), *c = device.take(kMiB);
  CHECK(a->size == 512);
  CHECK(b->size == 1024);
  CHECK(b->data == a->data + 512);
  CHECK(c->data == b->data + 1024);
  CHECK(device.driver.calls == 1);
  CHECK(device.reserved() == 2 * int64_t{kMiB});
  CHECK(device.allocated() == 512 + 1024 + int64_t{kMiB});
  CHECK(device.allocator.stats().requested_bytes.all.current == 100 + 513 + int64_t{kMiB});
  char* const start = a->data;
  device.give(b);
  device.give(a);
  device.give(c);
  CHECK(device.allocated() == 0);
  CHECK(device.allocator.stats().inactive_split_bytes.all.current == 0);
  Block* whole = device.take(kMiB);
  CHECK(whole->data == start);
  CHECK(device.driver.calls == 1);
  device.give(whole);
  device.allocator.empty_cache();
  CHECK(device.reserved() == 0);
  CHECK(device.driver.live.empty());
}

TEST_CASE("segments have PyTorch's sizes") {
  FakeDevice device;
  const auto reserved_for = [&](size_t nbytes) {
    device.allocator.empty_cache();
    Block* block = device.take(nbytes);
    const int64_t reserved = device.reserved();
    device.give(block);
    return static_cast<size_t>(reserved);
  };
  CHECK(reserved_for(1) == 2 * kMiB);
  CHECK(reserved_for(kMiB) == 2 * kMiB);
  CHECK(reserved_for(kMiB + 1) == 20 * kMiB);
  CHECK(reserved_for(10 * kMiB - 512) == 20 * kMiB);
  CHECK(reserved_for(10 * kMiB) == 10 * kMiB);
  CHECK(reserved_for(11 * kMiB) == 12 * kMiB);
  // What is left of a large segment is cut off only when it exceeds 1 MiB.
  Block* block = device.take(11 * kMiB);
  CHECK(block->size == 12 * kMiB);
  device.give(block);
}

TEST_CASE("the smallest block that fits is taken") {
  FakeDevice device;
  std::vector<Block*> blocks, separators;
  for (const size_t size : {40, 24, 32, 28}) {
    blocks.push_back(device.take(size * kMiB));
  }
  std::vector<char*> data;
  for (Block* block : blocks) data.push_back(block->data);
  for (Block* block : blocks) device.give(block);
  CHECK(device.take(27 * kMiB)->data == data[3]);
  CHECK(device.take(23 * kMiB)->data == data[1]);
  CHECK(device.take(29 * kMiB)->data == data[2]);
  CHECK(device.take(38 * kMiB)->data == data[0]);
  CHECK(device.driver.calls == 4);
}

TEST_CASE("blocks of one stream do not serve another") {
  FakeDevice device;
  Block* a = device.take(4096);
  device.give(a);
  Block* b = device.take(4096, kOther);
  CHECK(device.driver.calls == 2);
  CHECK(b->data != a->data);
  device.give(b);
}

TEST_CASE("a block that another stream used comes back when that stream is done") {
  FakeDevice device;
  Block* a = device.take(4096);
  char* const data = a->data;
  device.allocator.record_stream(a, kOther);
  device.allocator.record_stream(a, kOther);
  device.allocator.record_stream(a, kStream);  // its own: nothing to wait for
  device.give(a);
  CHECK(device.driver.events == std::vector<void*>{kOther});
  CHECK(device.allocated() == 0);
  CHECK(device.allocator.stats().active_bytes.all.current == 4096);
  Block* b = device.take(4096);
  CHECK(b->data != data);
  device.driver.reached_events = 1;
  Block* c = device.take(4096);
  CHECK(c->data == data);
  device.give(b);
  device.give(c);
  CHECK(device.allocator.stats().active_bytes.all.current == 0);
}

TEST_CASE("while a graph is captured no event is recorded or asked for") {
  FakeDevice device;
  Block* a = device.take(4096);
  device.allocator.record_stream(a, kOther);
  device.allocator.set_capturing(true);
  device.driver.capturing = true;
  device.give(a);
  CHECK(device.driver.events.empty());
  Block* b = device.take(4096);
  CHECK(b != a);
  device.driver.capturing = false;
  device.allocator.set_capturing(false);
  CHECK(device.driver.events.size() == 1);
  device.driver.reached_events = 1;
  device.give(b);
  device.allocator.empty_cache();
  CHECK(device.reserved() == 0);
}

TEST_CASE("when the device is full, cached segments are returned and the request is tried again") {
  FakeDevice device(100 * kMiB);
  Block* a = device.take(60 * kMiB);
  device.give(a);
  Block* b = device.take(80 * kMiB);
  CHECK(b->size == 80 * kMiB);
  CHECK(device.reserved() == 80 * int64_t{kMiB});
  CHECK(device.allocator.stats().num_alloc_retries == 1);
  for (int i = 0; i < 100; ++i) {
    try {
      device.take(50 * kMiB);
      FAIL("expected an OutOfMemoryError");
    } catch (const OutOfMemoryError& error) {
      const std::string message = error.what();
      for (const char* part :
           {"tried to allocate 52428800 bytes on cuda:0", "the device has 104857600 bytes", "20971520 of them free",
            "tensors hold 83886080", "has reserved 83886080", "the largest free block of these is 0"}) {
        CHECK_MESSAGE(message.find(part) != message.npos, message);
      }
    }
  }
  CHECK(device.allocator.stats().num_ooms == 100);
  // Everything goes on.
  Block* c = device.take(20 * kMiB);
  device.give(c);
  device.give(b);
  CHECK_THROWS_AS(device.take(size_t{1} << 61), OutOfMemoryError);
}

TEST_CASE("a request waits for other streams rather than failing") {
  FakeDevice device(100 * kMiB);
  Block* a = device.take(80 * kMiB);
  device.allocator.record_stream(a, kOther);
  device.give(a);
  Block* b = device.take(70 * kMiB);
  CHECK(device.driver.reached_events == 1);
  device.give(b);
}

TEST_CASE("a process keeps to its part of the device") {
  FakeDevice device(100 * kMiB);
  device.allocator.set_memory_fraction(0.5);
  CHECK(device.allocator.memory_fraction() == doctest::Approx(0.5));
  Block* a = device.take(40 * kMiB);
  CHECK_THROWS_AS(device.take(20 * kMiB), OutOfMemoryError);
  device.allocator.set_memory_fraction(1);
  device.give(device.take(20 * kMiB));
  device.give(a);
  CHECK_THROWS_AS(device.allocator.set_memory_fraction(0), ValueError);
  CHECK_THROWS_AS(device.allocator.set_memory_fraction(1.5), ValueError);
}

TEST_CASE("a private pool keeps its memory to itself until it is released") {
  FakeDevice device;
  device.allocator.make_group(7);
  Block* a = device.take(4096, kStream, 7);
  char* const data = a->data;
  device.give(a);
  Block* b = device.take(4096);
  CHECK(b->data != data);
  device.allocator.empty_cache();
  Block* c = device.take(4096, kStream, 7);
  CHECK(c->data == data);
  device.give(b);
  device.allocator.release_group(7);
  device.allocator.empty_cache();
  CHECK(device.reserved() == 2 * int64_t{kMiB});  // still in use
  device.give(c);
  device.allocator.empty_cache();
  CHECK(device.reserved() == 0);
}

TEST_CASE("a private pool that graphs share is live until the last is released") {
  FakeDevice device;
  device.allocator.make_group(7);
  device.allocator.make_group(7);
  Block* a = device.take(30 * kMiB, kStream, 7);
  char* const data = a->data;
  device.give(a);
  device.allocator.release_group(7);
  device.allocator.empty_cache();
  CHECK(device.reserved() == 30 * int64_t{kMiB});
  Block* b = device.take(30 * kMiB, kStream, 7);  // the second graph takes over the first one's memory
  CHECK(b->data == data);
  device.give(b);
  device.allocator.release_group(7);
  CHECK(device.reserved() == 0);
}

TEST_CASE("a private pool released during a capture returns its memory afterwards") {
  FakeDevice device;
  device.allocator.make_group(7);
  device.give(device.take(30 * kMiB, kStream, 7));
  device.allocator.set_capturing(true);
  device.allocator.release_group(7);
  CHECK(device.reserved() == 30 * int64_t{kMiB});
  device.allocator.empty_cache();  // does nothing meanwhile
  CHECK(device.reserved() == 30 * int64_t{kMiB});
  device.allocator.set_capturing(false);
  device.allocator.empty_cache();
  CHECK(device.reserved() == 0);
}

TEST_CASE("during a capture no memory is returned to make room") {
  for (const char* settings : {"", "max_split_size_mb:32", "garbage_collection_threshold:0.1"}) {
    INFO(str(settings));
    FakeDevice device(100 * kMiB, settings);
    Block* a = device.take(60 * kMiB);
    device.give(a);
    device.allocator.make_group(7);
    device.allocator.set_capturing(true);
    CHECK_THROWS_AS(device.take(80 * kMiB, kStream, 7), OutOfMemoryError);
    CHECK(device.reserved() == 60 * int64_t{kMiB});
    Block* b = device.take(30 * kMiB, kStream, 7);
    CHECK(device.reserved() == 90 * int64_t{kMiB});
    device.give(b);
    device.allocator.set_capturing(false);
    device.give(device.take(65 * kMiB));  // now it is
    device.allocator.release_group(7);
  }
}

TEST_CASE("max_split_size keeps large blocks whole") {
  FakeDevice device(1024 * kMiB, "max_split_size_mb:64");
  Block* large = device.take(100 * kMiB);
  device.give(large);
  Block* small = device.take(30 * kMiB);  // not cut from the block of 100 MiB
  CHECK(device.reserved() == 130 * int64_t{kMiB});
  Block* again = device.take(90 * kMiB);  // near enough to be served whole
  CHECK(again->size == 100 * kMiB);
  device.give(small);
  device.give(again);
}

TEST_CASE("garbage is collected before the device is full") {
  FakeDevice device(100 * kMiB, "garbage_collection_threshold:0.5");
  Block *old = device.take(20 * kMiB), *fresh = device.take(22 * kMiB);
  char* const kept = fresh->data;
  device.give(old);
  device.give(device.take(512));
  device.give(fresh);
  Block* more = device.take(23 * kMiB);  // 20 + 2 + 22 + 24 would exceed half of the device
  CHECK(device.reserved() == 48 * int64_t{kMiB});
  Block* again = device.take(22 * kMiB);
  CHECK(again->data == kept);
  device.give(more);
  device.give(again);
}

TEST_CASE("freed blocks are poisoned in debug mode") {
  FakeDevice device(100 * kMiB, "debug:True");
  Block* a = device.take(1000);
  void* const data = a->data;
  device.give(a);
  REQUIRE(device.driver.poisoned.size() == 1);
  CHECK(device.driver.poisoned[0] == std::pair<void*, size_t>{data, 1024});
  Block* b = device.take(1000);
  device.allocator.set_capturing(true);
  device.give(b);  // a graph would do it again with each replay
  device.allocator.set_capturing(false);
  CHECK(device.driver.poisoned.size() == 1);
}

TEST_CASE("an expandable segment grows in place and gives memory back from its middle") {
  FakeDevice device(200 * kMiB, "expandable_segments:True");
  Block *a = device.take(30 * kMiB), *b = device.take(30 * kMiB), *c = device.take(30 * kMiB);
  CHECK(b->data == a->data + 30 * kMiB);
  CHECK(c->data == b->data + 30 * kMiB);
  CHECK(device.reserved() == 100 * int64_t{kMiB});  // five chunks of 20 MiB
  CHECK(device.driver.mapped.size() == 5);
  device.give(b);
  device.allocator.empty_cache();
  // Of b's bytes 30..60 the chunk 40..60 is whole, and nothing of 90..100.
  CHECK(device.reserved() == 80 * int64_t{kMiB});
  Block* d = device.take(10 * kMiB);
  CHECK(d->data == a->data + 30 * kMiB);
  Block* e = device.take(110 * kMiB);  // goes to the end, which begins with the free 10 MiB of the last chunk
  CHECK(e->data == c->data + 30 * kMiB);
  device.give(e);
  CHECK_THROWS_AS(device.take(180 * kMiB), OutOfMemoryError);
  for (Block* block : {a, c, d}) device.give(block);
  device.allocator.empty_cache();
  CHECK(device.reserved() == 0);
  CHECK(device.driver.mapped.empty());
  Block* whole = device.take(190 * kMiB);
  device.give(whole);
  Block* small = device.take(100);
  CHECK(small->pool->small);
  device.give(small);
}

TEST_CASE("any order of requests leaves the records consistent") {
  for (const char* settings : {"", "expandable_segments:True", "max_split_size_mb:32"}) {
    FakeDevice device(512 * kMiB, settings);
    std::vector<Block*> live;
    uint64_t random = 1;
    const auto next = [&](uint64_t bound) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      return (random >> 33) % bound;
    };
    for (int step = 0; step < 20000; ++step) {
      if (live.empty() || next(100) < 55) {
        const uint64_t scale = uint64_t{1} << next(26);
        try {
          live.push_back(device.take(1 + next(scale), next(4) == 0 ? kOther : kStream));
        } catch (const OutOfMemoryError&) {
          for (int i = 0; i < 5 && !live.empty(); ++i) {
            device.give(live.back());
            live.pop_back();
          }
        }
      } else {
        const size_t at = next(live.size());
        if (next(8) == 0) device.allocator.record_stream(live[at], kOther);
        device.give(live[at]);
        live[at] = live.back();
        live.pop_back();
        if (next(4) == 0) device.driver.reached_events = device.driver.events.size();
      }
      if (step % 1000 == 0) device.allocator.empty_cache();
    }
    std::vector<std::pair<char*, char*>> ranges;
    int64_t bytes = 0;
    for (Block* block : live) {
      ranges.push_back({block->data, block->data + block->size});
      bytes += static_cast<int64_t>(block->size);
    }
    CHECK(device.allocated() == bytes);
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i) CHECK(ranges[i - 1].second <= ranges[i].first);
    size_t total = 0;
    for (const SegmentInfo& segment : device.allocator.snapshot().segments) {
      size_t covered = 0;
      for (const BlockInfo& block : segment.blocks) {
        CHECK(block.address == segment.address + covered);
        covered += block.size;
      }
      CHECK(covered == segment.total_size);
      total += covered;
    }
    CHECK(static_cast<int64_t>(total) == device.reserved());
    CHECK(device.driver.used == total);
    for (Block* block : live) device.give(block);
    device.allocator.empty_cache();
    CHECK(device.reserved() == 0);
    CHECK(device.driver.used == 0);
    CHECK(device.allocator.stats().inactive_split_bytes.all.current == 0);
  }
}

TEST_CASE("settings that make no sense are refused") {
  for (const char* bad : {"nothing:1", "expandable_segments", "expandable_segments:maybe", "max_split_size_mb:5",
                          "max_split_size_mb:x", "garbage_collection_threshold:2"}) {
    CAPTURE(str(bad));
    CHECK_THROWS_AS(AllocatorConfig::parse(bad), ValueError);
  }
  const auto config = AllocatorConfig::parse("expandable_segments:True,max_split_size_mb:100,debug:False");
  CHECK(config.expandable_segments);
  CHECK(config.max_split_size == 100 * kMiB);
  CHECK_FALSE(config.debug);
}

TEST_CASE("history tells what happened") {
  FakeDevice device;
  device.allocator.record_history({});
  Block* a = device.take(1000);
  device.give(a);
  const DeviceSnapshot snapshot = device.allocator.snapshot();
  std::vector<TraceEntry::Action> actions;
  for (const TraceEntry& entry : snapshot.trace) actions.push_back(entry.action);
  using Action = TraceEntry::Action;
  CHECK(actions == std::vector{Action::SegmentAlloc, Action::Alloc, Action::FreeRequested, Action::FreeCompleted});
  CHECK(snapshot.trace[1].trace);
  CHECK(snapshot.trace[1].size == 1024);
}

}  // namespace rush_tests
