#include "backends/cpu/caching_allocator.h"

#include <doctest/doctest.h>

#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "rushlight.h"

using namespace rush;

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
  for (size_t nbytes = size_t{1} << 20; nbytes < (size_t{1} << 59); nbytes = nbytes * 5 / 3) {
    const size_t size = cpu::class_size(cpu::size_class(nbytes));
    REQUIRE(size >= nbytes);
    REQUIRE((size - nbytes) * 8 <= size);
  }
}

TEST_CASE("a freed block serves the next request of its class") {
  Allocator& cpu = allocator(kCPU);
  for (const size_t nbytes : {size_t{100}, size_t{5000}, size_t{3} << 20}) {
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
        Tensor made = full({(i * 37 + t) % 5000 + 1}, t);
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

TEST_CASE("a request that no memory can serve is an OutOfMemoryError, and the program goes on") {
  CHECK_THROWS_AS(allocator(kCPU).allocate(size_t{1} << 62), OutOfMemoryError);
  CHECK_THROWS_AS(empty({int64_t{1} << 50}), OutOfMemoryError);
  CHECK(empty({4}).numel() == 4);
}
