// What the emulated grid sees of memory: Note [The emulated grid]. The compiler's calls before each access lead to
// watch_access, which finds the buffer or the shared array, refuses what is wrong and counts the rest.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "tests/labs/grid/grid.h"
#include "tests/labs/grid/running.h"
#include "tests/labs/grid/symbols.h"

namespace rush::grid {
namespace {

constexpr uint64_t kNobody = UINT64_MAX;
constexpr int kWordBytes = 4, kPageWords = 256;
constexpr uintptr_t kPageBytes = kWordBytes * kPageWords;
// Address space around each buffer, so that an index that is 2^31 elements off is still known to be of this buffer.
constexpr size_t kMargin = size_t{64} << 30;

// ---- where memory is ----

struct Region {
  std::string name;
  uintptr_t begin, end;
  size_t element_size;
  bool shared;
};

std::list<Region>& regions() {
  static std::list<Region> all;
  return all;
}

// The buffer around the address, or in whose margin it lies.
const Region* buffer_near(uintptr_t address) {
  for (const Region& region : regions()) {
    if (address >= region.begin - kMargin && address < region.end + kMargin) return &region;
  }
  return nullptr;
}

// The shared array that the address belongs to; of dynamic shared memory, as many bytes as the launch asked for.
const Region* shared_near(uintptr_t address, size_t size) {
  static std::unordered_map<uintptr_t, Region> known;
  const ThreadLocal& array = thread_local_at(address);
  if (array.size == 0) return nullptr;
  Region& region = known.try_emplace(array.begin, Region{array.name, array.begin, 0, size, true}).first->second;
  region.end = array.begin + (array.name == "shared_memory" ? running.shared_bytes : array.size);
  return &region;
}

// ---- who accessed a word last ----

struct Access {
  uint64_t block = kNobody;
  uint16_t thread = 0;
  uint8_t bytes = 0;  // of the word, a bit each
  bool atomic = false;
  uint32_t barriers = 0, warp_barriers = 0;
  uint32_t code = 0;
};

struct Word {
  Access writer, reader, other_reader;  // the two readers are different threads
  Access earlier_reader;                // of a block before the last reader's
  uint64_t written_in = kNobody;        // the block that wrote `written`, for shared memory
  uint8_t written = 0;
  bool overwritten = false;  // the last write was not the first: the block had written there before an earlier barrier
};
using Page = std::array<Word, kPageWords>;

struct Watch {
  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
  std::function<std::string()> noted;  // what is to be said at the block's end
  FaultKind noted_kind = {};
  std::vector<Traffic> traffic;
  std::map<std::pair<uintptr_t, uintptr_t>, size_t> sites;  // of `traffic`, by code and the beginning of the memory
  std::vector<std::vector<uint32_t>> executed;              // by thread and site: how often so far
  std::vector<std::vector<std::vector<Request>>> requests;  // by warp, site and how often
};
Watch watch;

Word& word_at(uintptr_t address) {
  std::unique_ptr<Page>& page = watch.pages[address / kPageBytes];
  if (!page) page = std::make_unique<Page>();
  return (*page)[address % kPageBytes / kWordBytes];
}

bool ordered(const Access& a, const Access& b) {
  if (a.block != b.block) return false;
  const bool same_warp = a.thread / kWarp == b.thread / kWarp;
  return a.thread == b.thread || a.barriers != b.barriers || (same_warp && a.warp_barriers != b.warp_barriers);
}

bool in_conflict(const Access& before, const Access& now, bool shared) {
  if (before.block == kNobody || (before.bytes & now.bytes) == 0 || (before.atomic && now.atomic)) return false;
  return !(shared && before.block != now.block) && !ordered(before, now);
}

void note_reader(Word& word, const Access& now) {
  if (word.reader.block != kNobody && word.reader.block != now.block) word.earlier_reader = word.reader;
  if (word.reader.block != now.block || word.reader.thread != now.thread) word.other_reader = word.reader;
  word.reader = now;
}

bool written_before(const Word& word, const Access& now) {
  return word.writer.block == now.block && word.writer.barriers != now.barriers;
}

void note_writer(Word& word, const Access& now) {
  word.overwritten = written_before(word, now);
  word.writer = now;
  word.written = static_cast<uint8_t>((word.written_in == now.block ? word.written : 0) | now.bytes);
  word.written_in = now.block;
}

// ---- what is wrong ----

const char* verb(Use use) { return use == Use::Load ? "reads" : use == Use::Store ? "writes" : "atomically changes"; }

std::string element_name(const Region& region, uintptr_t address, size_t size) {
  const auto distance = static_cast<int64_t>(address) - static_cast<int64_t>(region.begin);
  const auto each = static_cast<int64_t>(region.shared ? size : region.element_size);
  return "element " + std::to_string(distance / each) + " of " + region.name;
}

std::string thread_of(const Access& access) {
  return "block " + block_name(access.block) + ", thread " + thread_name(access.thread);
}

std::string report(const char* what, const Access& now, Use use, const Region& region, uintptr_t address, size_t size) {
  return what + (" in " + kernel_name()) + ": " + thread_of(now) + " " + verb(use) + " " +
         element_name(region, address, size) + ", at " + place_of(code_at(now.code));
}

void refuse_alignment(const Region& region, uintptr_t address, size_t size, Use use, const Access& now) {
  stop([=] {
    return Fault(FaultKind::Misaligned, report("misaligned", now, use, region, address, size) + "; an access of " +
                                            std::to_string(size) + " bytes needs an address that is a multiple of " +
                                            std::to_string(size));
  });
}

void refuse_bounds(const Region* region, uintptr_t address, size_t size, Use use, const Access& now) {
  stop([=] {
    if (!region) {
      return Fault(FaultKind::OutOfBounds, "out of bounds in " + kernel_name() + ": " + thread_of(now) + " " +
                                               verb(use) + " memory that is in no buffer of the device, at " +
                                               place_of(code_at(now.code)));
    }
    const size_t elements = (region->end - region->begin) / (region->shared ? size : region->element_size);
    return Fault(FaultKind::OutOfBounds, report("out of bounds", now, use, *region, address, size) + "; it has " +
                                             std::to_string(elements) + " elements");
  });
}

// A race, or a read of what nobody wrote, waits for the block's end: where a barrier stands in a branch, the divergence
// says more.
void note(FaultKind kind, std::function<std::string()> text) {
  const bool says_more = watch.noted && watch.noted_kind == FaultKind::Unwritten && kind != FaultKind::Unwritten;
  if (watch.noted && !says_more) return;
  watch.noted_kind = kind;
  watch.noted = std::move(text);
}

void note_race(FaultKind kind, const Region& region, uintptr_t address, size_t size, Use use, const Access& now,
               const Access& before, Use earlier) {
  const bool blocks = now.block != before.block;
  note(blocks ? FaultKind::RaceOfBlocks : kind, [=] {
    return report("race", now, use, region, address, size) + ", and " + thread_of(before) + " " + verb(earlier) +
           " it, at " + place_of(code_at(before.code)) +
           (blocks ? ": blocks run in any order" : ", without a barrier in between");
  });
}

void note_unwritten(const Region& region, uintptr_t address, size_t size, const Access& now) {
  note(FaultKind::Unwritten, [=] {
    return report("unwritten shared memory", now, Use::Load, region, address, size) +
           ", which no thread of the block has written before";
  });
}

void check_word(Word& word, const Region& region, uintptr_t address, size_t size, Use use, const Access& now) {
  const bool of_next = use == Use::Load ? word.overwritten : written_before(word, now);
  const FaultKind kind = of_next ? FaultKind::RaceOfNext : FaultKind::Race;
  const auto check = [&](const Access& before, Use earlier) {
    if (in_conflict(before, now, region.shared)) note_race(kind, region, address, size, use, now, before, earlier);
  };
  check(word.writer, word.writer.atomic ? Use::Atomic : Use::Store);
  if (use != Use::Load) {
    for (const Access* reader : {&word.reader, &word.other_reader, &word.earlier_reader}) check(*reader, Use::Load);
  }
  const uint8_t written = word.written_in == now.block ? word.written : 0;
  if (region.shared && use != Use::Store && (now.bytes & ~written) != 0) note_unwritten(region, address, size, now);
  if (use == Use::Load) {
    note_reader(word, now);
  } else {
    note_writer(word, now);
  }
}

// ---- counts ----

size_t site_of(const Region& region, Use use, uintptr_t code) {
  const auto [found, is_new] = watch.sites.try_emplace({code, region.begin}, watch.traffic.size());
  if (is_new) watch.traffic.push_back({region.name, region.shared, use, code});
  return found->second;
}

void count_access(const Region& region, uintptr_t address, size_t size, Use use, uintptr_t code) {
  const size_t site = site_of(region, use, code);
  if (use == Use::Atomic) {
    ++watch.traffic[site].requests;
    return;
  }
  auto& executed = watch.executed[static_cast<size_t>(running.thread)];
  auto& sites = watch.requests[static_cast<size_t>(running.thread / kWarp)];
  if (executed.size() <= site) executed.resize(site + 1);
  if (sites.size() <= site) sites.resize(site + 1);
  const uint32_t time = executed[site]++;
  if (sites[site].size() <= time) sites[site].resize(time + 1);
  Request& request = sites[site][time];
  request.size = static_cast<uint32_t>(size);
  request.address[request.lanes++] = address;
}

void count_sectors(const Request& request, Traffic& traffic) {
  constexpr uintptr_t kSector = 32;
  std::set<uintptr_t> sectors, words;
  for (int l = 0; l < request.lanes; ++l) {
    const uintptr_t first = request.address[l], last = first + request.size - 1;
    for (uintptr_t sector = first / kSector; sector <= last / kSector; ++sector) sectors.insert(sector);
    words.insert(first);
  }
  traffic.sectors += static_cast<int64_t>(sectors.size());
  traffic.least_sectors += static_cast<int64_t>((words.size() * request.size + kSector - 1) / kSector);
}

// Lanes that access 8 or 16 bytes take turns, a half or a quarter of the warp each.
void count_passes(const Request& request, Traffic& traffic) {
  const int at_once = kWarp * kWordBytes / static_cast<int>(std::max<uint32_t>(request.size, kWordBytes));
  for (int first = 0; first < request.lanes; first += at_once) {
    std::array<std::set<uintptr_t>, 32> banks;
    for (int l = first; l < std::min(first + at_once, request.lanes); ++l) {
      const uintptr_t begin = request.address[l] / kWordBytes,
                      end = (request.address[l] + request.size - 1) / kWordBytes;
      for (uintptr_t word = begin; word <= end; ++word) banks[word % banks.size()].insert(word);
    }
    size_t most = 0;
    for (const auto& bank : banks) most = std::max(most, bank.size());
    traffic.passes += static_cast<int64_t>(most);
    ++traffic.requests;
  }
}

}  // namespace

// ---- what the grid calls ----

void watch_launch() {
  watch.noted = nullptr;
  watch.pages.clear();
  watch.traffic.clear();
  watch.sites.clear();
}

void watch_block() {
  watch.executed.assign(static_cast<size_t>(running.threads), {});
  watch.requests.assign(running.warp_barriers.size(), {});
}

void throw_noted() {
  if (watch.noted) throw Fault(watch.noted_kind, watch.noted());
}

void end_block() {
  throw_noted();
  for (const auto& sites : watch.requests) {
    for (size_t site = 0; site < sites.size(); ++site) {
      Traffic& traffic = watch.traffic[site];
      for (const Request& request : sites[site]) {
        if (traffic.shared) {
          count_passes(request, traffic);
        } else {
          count_sectors(request, traffic);
          ++traffic.requests;
        }
      }
    }
  }
}

void watch_access(uintptr_t address, size_t size, Use use, uintptr_t code) {
  if (!running.in_kernel) return;
  const OutsideKernel outside;
  if (in_program(address)) return;
  if (address >= running.stack_begin && address < running.stack_end) return;
  const auto thread = static_cast<uint16_t>(running.thread);
  Access now{running.block,          thread,           0,
             use == Use::Atomic,     running.barriers, running.warp_barriers[static_cast<size_t>(thread / kWarp)],
             offset_in_program(code)};
  const Region* region = buffer_near(address);
  if (!region) region = shared_near(address, size);
  if (region && region->shared && region->name.empty()) return;
  if (!region || address < region->begin || address + size > region->end) {
    refuse_bounds(region, address, size, use, now);
  }
  const bool is_one_access = size == 2 || size == 4 || size == 8 || size == 16;
  if (is_one_access && address % size != 0) refuse_alignment(*region, address, size, use, now);
  for (uintptr_t at = address / kWordBytes * kWordBytes; at < address + size; at += kWordBytes) {
    const uintptr_t first = std::max(at, address) - at, last = std::min(at + kWordBytes, address + size) - at;
    now.bytes = static_cast<uint8_t>((1U << last) - (1U << first));
    check_word(word_at(at), *region, address, size, use, now);
  }
  count_access(*region, address, size, use, code);
}

const std::vector<Traffic>& traffic() { return watch.traffic; }

// ---- buffers ----

Memory::Memory(std::string name, int64_t count, size_t element_size) {
  const size_t bytes = static_cast<size_t>(count) * element_size;
  void* space = mmap(nullptr, bytes + 2 * kMargin, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) throw std::bad_alloc();
  begin_ = static_cast<char*>(space) + kMargin;
  const auto begin = reinterpret_cast<uintptr_t>(begin_);
  regions().push_back({std::move(name), begin, begin + bytes, element_size, false});
  if (bytes > 0 && mprotect(begin_, bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
}

Memory::~Memory() {
  const auto begin = reinterpret_cast<uintptr_t>(begin_);
  const auto region =
      std::find_if(regions().begin(), regions().end(), [&](const Region& r) { return r.begin == begin; });
  munmap(static_cast<char*>(begin_) - kMargin, region->end - begin + 2 * kMargin);
  regions().erase(region);
}

}  // namespace rush::grid

// ---- what the compiler calls ----

#define RUSH_CODE reinterpret_cast<uintptr_t>(__builtin_return_address(0))
#define RUSH_WATCH(name, use, size)                                                                   \
  void __tsan_##name(void* address) {                                                                 \
    rush::grid::watch_access(reinterpret_cast<uintptr_t>(address), size, rush::grid::use, RUSH_CODE); \
  }
#define RUSH_WATCH_SIZE(size)                       \
  RUSH_WATCH(read##size, Use::Load, size)           \
  RUSH_WATCH(write##size, Use::Store, size)         \
  RUSH_WATCH(unaligned_read##size, Use::Load, size) \
  RUSH_WATCH(unaligned_write##size, Use::Store, size)

extern "C" {
RUSH_WATCH_SIZE(1)
RUSH_WATCH_SIZE(2)
RUSH_WATCH_SIZE(4)
RUSH_WATCH_SIZE(8)
RUSH_WATCH_SIZE(16)
void __tsan_read_range(void* address, size_t size) {
  rush::grid::watch_access(reinterpret_cast<uintptr_t>(address), size, rush::grid::Use::Load, RUSH_CODE);
}
void __tsan_write_range(void* address, size_t size) {
  rush::grid::watch_access(reinterpret_cast<uintptr_t>(address), size, rush::grid::Use::Store, RUSH_CODE);
}
void* __tsan_memcpy(void* to, const void* from, size_t size) {
  rush::grid::watch_access(reinterpret_cast<uintptr_t>(from), size, rush::grid::Use::Load, RUSH_CODE);
  rush::grid::watch_access(reinterpret_cast<uintptr_t>(to), size, rush::grid::Use::Store, RUSH_CODE);
  return std::memcpy(to, from, size);
}
void* __tsan_memset(void* to, int value, size_t size) {
  rush::grid::watch_access(reinterpret_cast<uintptr_t>(to), size, rush::grid::Use::Store, RUSH_CODE);
  return std::memset(to, value, size);
}
void __tsan_vptr_read(void*) {}
void __tsan_vptr_update(void*, void*) {}
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
}
