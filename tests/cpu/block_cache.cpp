// The parts that the CPU's caching allocator is made of.
#include "backends/cpu/memory/block_cache.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "backends/cpu/memory/memory_limit.h"
#include "core/error/error.h"
#include "tests/byte_units.h"
#include "tests/temporary_folder.h"

using namespace rush;
using namespace rush::cpu;
using rush::testing::kMiB;

namespace {

constexpr size_t kPage = 4096, kMuch = size_t{1} << 40;

struct Used {
  char* data;
  size_t size;
  char mark;
};

// Blocks in random order, each marked at both ends: two that overlapped would not keep their marks.
size_t take_and_give(BlockCache& cache, int steps, size_t most) {
  std::mt19937_64 random(7);
  std::vector<Used> blocks;
  size_t in_use = 0, peak = 0;
  for (int i = 0; i < steps; ++i) {
    if (blocks.size() < 40 && random() % 5 < 3) {
      const size_t size = block_size(std::uniform_int_distribution<size_t>(1, random() % 2 ? most : most / 50)(random));
      auto* data = static_cast<char*>(cache.take(size));
      blocks.push_back({data, size, static_cast<char>(i)});
      data[0] = data[size - 1] = static_cast<char>(i);
      peak = std::max(peak, in_use += size);
    } else if (!blocks.empty()) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      const Used& last = blocks.back();
      REQUIRE(last.data[0] == last.mark);
      REQUIRE(last.data[last.size - 1] == last.mark);
      in_use -= last.size;
      cache.give(last.data, last.size);
      blocks.pop_back();
    }
    REQUIRE(static_cast<size_t>(cache.stats().reserved) >= in_use);
  }
  for (const Used& each : blocks) cache.give(each.data, each.size);
  return peak;
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("blocks never overlap, and what is reserved stays near the most that was in use") {
  BlockCache cache(kMuch, kPage);
  const size_t peak = take_and_give(cache, 20000, 8 * kMiB);
  CHECK(static_cast<size_t>(cache.stats().max_reserved) <= peak + peak / 8 + CacheBudget::kSlack + kHugePage);
  cache.empty();
  CHECK(cache.stats().reserved == 0);
}

TEST_CASE("blocks do not overlap either where the system's pages are larger than the units of blocks") {
  BlockCache cache(kMuch, 64 << 10);
  const size_t peak = take_and_give(cache, 5000, 4 * kMiB);
  CHECK(static_cast<size_t>(cache.stats().max_reserved) <= peak + peak / 8 + CacheBudget::kSlack + kHugePage);
  cache.empty();
  CHECK(cache.stats().reserved < static_cast<int64_t>(kMiB));
}

TEST_CASE("near the memory limit less is kept") {
  BlockCache cache(100 * kMiB, kPage);
  // One block after the other, so that the first cannot serve the second.
  void* apart[3];
  for (void*& each : apart) each = cache.take(25 * kMiB);
  cache.give(apart[0], 25 * kMiB);
  cache.give(apart[2], 25 * kMiB);
  void* wide = cache.take(40 * kMiB);
  CHECK(cache.stats().reserved <= static_cast<int64_t>(80 * kMiB));
  cache.give(wide, 40 * kMiB);
  cache.give(apart[1], 25 * kMiB);
  cache.empty();
  CHECK(cache.stats().reserved == 0);
}

TEST_CASE("small blocks are bounded, too") {
  BlockCache cache(kMuch, kPage);
  std::vector<void*> blocks;
  for (int i = 0; i < 100'000; ++i) blocks.push_back(cache.take(1024));
  for (void* each : blocks) cache.give(each, 1024);
  CHECK(cache.stats().reserved == 100'000 * 1024);
  // Forgotten once much was handed out without needing so many at once.
  for (int i = 0; i < 100; ++i) cache.give(cache.take(kHugePage * 32), kHugePage * 32);
  CHECK(cache.stats().reserved <= static_cast<int64_t>(110 * kMiB));
  cache.empty();
  CHECK(cache.stats().reserved == 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need addresses of their own
TEST_CASE("when the system refuses, what is kept is given back, and then comes an OutOfMemoryError") {
  BlockCache cache(kMuch, kPage);
  cache.give(cache.take(400 * kMiB), 400 * kMiB);
  std::ifstream file("/proc/self/statm");
  size_t pages = 0;
  file >> pages;
  REQUIRE(pages > 0);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_AS, &before) == 0);
  const rlimit lowered{pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE)) + 100 * kMiB, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_AS, &lowered) == 0);
  CHECK(find_memory_limit() <= static_cast<int64_t>(lowered.rlim_cur));
  void* larger = nullptr;
  CHECK_NOTHROW(larger = cache.take(450 * kMiB));
  CHECK(cache.stats().retries == 1);
  CHECK_THROWS_AS(cache.take(450 * kMiB), OutOfMemoryError);
  CHECK(cache.stats().out_of_memory == 1);
  REQUIRE(::setrlimit(RLIMIT_AS, &before) == 0);
  cache.give(larger, 450 * kMiB);
  cache.empty();
}
#endif

TEST_CASE("the memory limit is the least of the machine's and of all control groups'") {
  const rush::testing::TemporaryFolder folder;
  const std::filesystem::path root = folder.path();
  const auto limit = [&] { return find_memory_limit(root.string()); };
  write(root / "proc/meminfo", "MemTotal:       24000000 kB\nMemFree:  5 kB\n");
  CHECK(limit() == 24000000ll * 1024);
  SUBCASE("version 2: the process's group or one above it") {
    write(root / "proc/self/cgroup", "0::/outer/inner\n");
    write(root / "sys/fs/cgroup/outer/inner/memory.max", "max\n");
    CHECK(limit() == 24000000ll * 1024);
    write(root / "sys/fs/cgroup/outer/memory.max", "1258291200\n");
    CHECK(limit() == 1258291200);
    write(root / "sys/fs/cgroup/outer/inner/memory.max", "300000000\n");
    CHECK(limit() == 300000000);
  }
  SUBCASE("version 1") {
    write(root / "proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/group\n3:cpuset:/\n");
    write(root / "sys/fs/cgroup/memory/group/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK(limit() == 24000000ll * 1024);
    write(root / "sys/fs/cgroup/memory/group/memory.limit_in_bytes", "1258291200\n");
    CHECK(limit() == 1258291200);
  }
  SUBCASE("a container sees its own group as the top, by whatever path") {
    write(root / "proc/self/cgroup", "0::/docker/0123\n");
    write(root / "sys/fs/cgroup/memory.max", "1258291200\n");
    CHECK(limit() == 1258291200);
  }
  SUBCASE("what is no limit") {
    write(root / "proc/self/cgroup", "nonsense\n0::/group\n");
    write(root / "sys/fs/cgroup/group/memory.max", "-5\n");
    write(root / "sys/fs/cgroup/memory.max", "");
    CHECK(limit() == 24000000ll * 1024);
  }
}
