#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "backends/cpu/memory/memory.h"
#include "backends/cpu/memory/size_class.h"
#include "rushlight.h"
#include "tests/byte_units.h"

using namespace rush;
using rush::testing::kMiB;

TEST_CASE("size classes cover every size with at most an eighth of slack") {
  size_t previous = 0;
  for (size_t nbytes = 1; nbytes < 200000; nbytes += 7) {
    const size_t index = cpu::size_class(nbytes), size = cpu::class_size(index);
    REQUIRE(size >= nbytes);
    REQUIRE(size % 64 == 0);
    REQUIRE(index >= previous);
    REQUIRE((size - nbytes < 64 || (size - nbytes) * 8 <= size));
    // The class of a block's own size is the block's class: allocate and deallocate agree.
    REQUIRE(cpu::size_class(size) == index);
    previous = index;
  }
  for (size_t nbytes = cpu::kMedium; nbytes < (size_t{1} << 59); nbytes = nbytes * 5 / 3) {
    const size_t size = cpu::block_size(nbytes);
    REQUIRE(size >= nbytes);
    REQUIRE((size - nbytes) * 8 <= size);
    REQUIRE(cpu::block_size(size) == size);
  }
}

TEST_CASE("a freed block serves the next request of its class") {
  Allocator& cpu = allocator(kCPU);
  for (const size_t nbytes : {size_t{100}, size_t{5000}, 300 * (kMiB >> 10), 3 * kMiB}) {
    void* first = cpu.allocate(nbytes);
    CHECK(reinterpret_cast<uintptr_t>(first) % 64 == 0);
    std::memset(first, 1, nbytes);
    cpu.deallocate(first, nbytes);
    const int64_t hits = cpu.stats().cache_hits;
    void* second = cpu.allocate(nbytes - 3);
    CHECK(second == first);
    CHECK(cpu.stats().cache_hits == hits + 1);
    cpu.deallocate(second, nbytes - 3);
  }
}

TEST_CASE("a large freed block serves smaller requests, and is whole again when they are freed") {
  Allocator& cpu = allocator(kCPU);
  cpu.empty_cache();
  cpu.deallocate(cpu.allocate(100 * kMiB), 100 * kMiB);
  const int64_t hits = cpu.stats().cache_hits, calls = cpu.stats().allocations;
  void* third = cpu.allocate(33 * kMiB);
  void* half = cpu.allocate(50 * kMiB);
  void* little = cpu.allocate(900 * (kMiB >> 10));
  cpu.deallocate(half, 50 * kMiB);
  cpu.deallocate(little, 900 * (kMiB >> 10));
  cpu.deallocate(third, 33 * kMiB);
  cpu.deallocate(cpu.allocate(100 * kMiB), 100 * kMiB);
  CHECK(cpu.stats().cache_hits - hits == cpu.stats().allocations - calls);
}

TEST_CASE("of tensors of any sizes, one alive at a time, little more than the largest is reserved") {
  cpu::empty_cache();
  cpu::reset_peak_memory_stats();
  const int64_t before = cpu::memory_reserved();
  std::mt19937_64 random(1);
  int64_t largest = 0;
  for (int i = 0; i < 2000; ++i) {
    const int64_t size = std::uniform_int_distribution<int64_t>(1, 400'000'000)(random);
    largest = std::max(largest, size);
    const Tensor t = empty({size}, kUInt8);
  }
  CHECK(cpu::max_memory_reserved() - before <= largest + largest / 8 + 34 * static_cast<int64_t>(kMiB));
}

TEST_CASE("the memory of a peak is given back once much was allocated without reaching it again") {
  cpu::empty_cache();
  const int64_t before = cpu::memory_reserved();
  { const Tensor peak = empty({160'000'000}, kUInt8); }
  CHECK(cpu::memory_reserved() - before >= 160'000'000);
  for (int i = 0; i < 30; ++i) const Tensor t = empty({16'000'000}, kUInt8);
  CHECK(cpu::memory_reserved() - before >= 160'000'000);
  // Enough also for the peaks of the tests before.
  for (int i = 0; i < 4000; ++i) const Tensor t = empty({16'000'000}, kUInt8);
  CHECK(cpu::memory_reserved() - before <= 80'000'000);
}

TEST_CASE("statistics follow tensors") {
  Allocator& cpu = allocator(kCPU);
  const AllocatorStats before = cpu.stats();
  {
    const Tensor t = empty({1000, 1000});
    CHECK(cpu.stats().allocated == before.allocated + 4000000);
    CHECK(cpu.stats().max_allocated >= before.allocated + 4000000);
    CHECK(cpu.stats().reserved >= 4000000);
  }
  CHECK(cpu.stats().allocated == before.allocated);
  cpu.empty_cache();
  CHECK(cpu.stats().reserved < before.reserved + 4000000);
  cpu::reset_peak_memory_stats();
  CHECK(cpu::max_memory_allocated() == cpu::memory_allocated());
  CHECK(cpu::max_memory_reserved() == cpu::memory_reserved());
}

TEST_CASE("blocks may be freed by another thread, and survive the end of theirs") {
  std::vector<Tensor> tensors;
  std::thread maker([&] {
    for (int i = 0; i < 500; ++i) tensors.push_back(full({i + 1}, i));
  });
  maker.join();
  for (int i = 0; i < 500; ++i) CHECK(tensors[i][i].item<int>() == i);
  std::thread([&] { tensors.clear(); }).join();
  const Tensor again = full({64}, 7);
  CHECK(again.sum().item<int>() == 448);
}

TEST_CASE("threads allocate, hand over and free side by side") {
  const int64_t before = allocator(kCPU).stats().allocated;
  std::vector<Tensor> handed(8);
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        Tensor made = full({(i * 37 + t) % 5000 * (i % 20 == 0 ? 90 : 1) + 1}, t);
        CHECK(made[made.numel() - 1].item<int>() == t);
        const std::lock_guard<std::mutex> lock(mutex);
        std::swap(handed[static_cast<size_t>(i % 8)], made);  // what another thread made is freed by this one
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  handed.clear();
  CHECK(allocator(kCPU).stats().allocated == before);
}

TEST_CASE("empty_cache empties the caches of other threads when they next allocate") {
  std::atomic<int> stage{0};
  const auto reach = [&](int next) {
    stage = next;
    stage.notify_all();
  };
  const auto wait_for = [&](int wanted) {
    for (int now = stage; now < wanted; now = stage) stage.wait(now);
  };
  std::thread other([&] {
    {
      std::vector<Tensor> kept;
      for (int i = 0; i < 60; ++i) kept.push_back(empty({4000}, kUInt8));
    }
    reach(1);
    wait_for(2);
    const Tensor next = empty({64}, kUInt8);
    reach(3);
    wait_for(4);
  });
  wait_for(1);
  cpu::empty_cache();
  const int64_t before = cpu::memory_reserved();
  reach(2);
  wait_for(3);
  CHECK(cpu::memory_reserved() <= before - 60 * 4096 + 64);
  reach(4);
  other.join();
}

TEST_CASE("a request that no memory can serve is an OutOfMemoryError, and the program goes on") {
  CHECK_THROWS_AS(allocator(kCPU).allocate(size_t{1} << 62), OutOfMemoryError);
  const int64_t failed = cpu::memory_stats().num_ooms;
  CHECK_THROWS_AS(empty({int64_t{1} << 50}), OutOfMemoryError);
  CHECK(cpu::memory_stats().num_ooms == failed + 1);
  CHECK(empty({4}).numel() == 4);
}

TEST_CASE("a process reserves no more than the part of the memory that it was given") {
  CHECK(cpu::get_per_process_memory_fraction() == 1);
  CHECK_THROWS_AS(cpu::set_per_process_memory_fraction(0), ValueError);
  CHECK_THROWS_AS(cpu::set_per_process_memory_fraction(1.5), ValueError);
  cpu::empty_cache();
  const double allowed = static_cast<double>(cpu::memory_reserved()) + 100e6;
  cpu::set_per_process_memory_fraction(allowed / static_cast<double>(cpu::memory_limit()));
  { const Tensor most = empty({60'000'000}, kUInt8); }
  { const Tensor other = empty({90'000'000}, kUInt8); }
  CHECK_THROWS_WITH_AS(empty({110'000'000}, kUInt8), doctest::Contains("this process may reserve"), OutOfMemoryError);
  CHECK(static_cast<double>(cpu::memory_reserved()) <= allowed);
  cpu::set_per_process_memory_fraction(1);
  CHECK(empty({110'000'000}, kUInt8).numel() == 110'000'000);
}

#ifndef __SANITIZE_THREAD__  // which cannot follow a fork of several threads
TEST_CASE("a child of fork allocates, whatever the parent's threads were at") {
  std::atomic<bool> done{false};
  std::thread busy([&] {
    while (!done) const Tensor t = empty({3'000'000}, kUInt8), u = empty({200'000}, kUInt8);
  });
  const Tensor before = full({1000}, 3);
  for (int i = 0; i < 30; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // a child that waits for a lock ends by it
      bool right = before.sum().item<int>() == 3000;
      for (const int64_t size : {100, 5000, 200'000, 3'000'000, 50'000'000}) {
        right = right && full({size}, 1, kUInt8)[size - 1].item<int>() == 1;
      }
      allocator(kCPU).empty_cache();
      ::_exit(right ? 0 : 1);
    }
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  done = true;
  busy.join();
}
#endif
