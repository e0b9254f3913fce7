#include "core/memory/estimate.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "core/device/backend.h"
#include "core/dispatch/kernel.h"
#include "core/error/error.h"
#include "core/memory/byte_text.h"
#include "core/memory/meta_ledger.h"

namespace rush {

namespace {

// Storages made while an estimate is made keep its number in place of a context, and so are told from older ones.
struct Ledger {
  std::mutex mutex;
  uintptr_t number = 0;  // of the estimate that is being made; 0 without one
  uintptr_t last_number = 0;
  int64_t granularity = 1;
  MemoryUses uses;
  int64_t now = 0;
  std::vector<const void*> keepers;  // what estimate_kept was told of
  MemoryEstimate found;

  int64_t rounded(int64_t bytes) const { return (bytes + granularity - 1) / granularity * granularity; }
  int64_t bytes(const StorageImpl& storage) const { return rounded(static_cast<int64_t>(storage.nbytes())); }
  // More for `Other`.
  void add(int64_t bytes) {
    uses[MemoryUse::Other] += bytes;
    now += bytes;
    if (now <= found.peak) return;
    found.peak = now;
    found.at_peak = uses;
  }
  bool knows(const StorageImpl& storage) const {
    return number != 0 && reinterpret_cast<uintptr_t>(storage.context()) == number;
  }
};

constinit std::atomic<bool> estimating{false};

Ledger& ledger() {
  static auto* const ledger = new Ledger;  // storages may be freed at exit
  return *ledger;
}

// As long as it lives, an estimate is being made.
class Estimating {
 public:
  explicit Estimating(Device like) : default_device_(get_default_device()) {
    Ledger& book = ledger();
    const std::lock_guard lock(book.mutex);
    RUSH_CHECK(book.number == 0, "estimate_memory: another estimate is being made");
    book.number = ++book.last_number;
    // What CUDA's caching allocator rounds requests up to; the CPU's counts what it was asked for.
    book.granularity = like.is_accelerator() ? 512 : 1;
    book.uses = MemoryUses();
    book.now = 0;
    book.keepers.clear();
    book.found = MemoryEstimate();
    book.found.device = like;
    estimating = true;
    stands_for_ = detail::meta_stands_for.exchange(like.type);
    set_default_device(kMeta);
  }
  ~Estimating() {
    set_default_device(default_device_);
    detail::meta_stands_for = stands_for_;
    estimating = false;
    Ledger& book = ledger();
    const std::lock_guard lock(book.mutex);
    book.number = 0;
  }
  Estimating(const Estimating&) = delete;
  Estimating& operator=(const Estimating&) = delete;

  MemoryEstimate found() const {
    Ledger& book = ledger();
    const std::lock_guard lock(book.mutex);
    book.found.at_end = book.now;
    return book.found;
  }

 private:
  const Device default_device_;
  DeviceType stands_for_;
};

}  // namespace

namespace detail {

void estimate_scratch(int64_t bytes) {
  Ledger& book = ledger();
  const std::lock_guard lock(book.mutex);
  bytes = book.rounded(bytes);
  if (book.number == 0 || book.now + bytes <= book.found.peak) return;
  book.found.peak = book.now + bytes;
  book.found.at_peak = book.uses;
  book.found.at_peak[MemoryUse::Other] += bytes;
}

void estimate_kept(const void* owner, int64_t bytes) {
  Ledger& book = ledger();
  const std::lock_guard lock(book.mutex);
  if (book.number == 0 || std::ranges::find(book.keepers, owner) != book.keepers.end()) return;
  book.keepers.push_back(owner);
  book.add(bytes);
}

void* meta_made(const StorageImpl& storage) {
  if (RUSH_LIKELY(!estimating.load(std::memory_order_relaxed))) return nullptr;
  Ledger& book = ledger();
  const std::lock_guard lock(book.mutex);
  if (book.number == 0) return nullptr;
  book.add(book.bytes(storage));
  return reinterpret_cast<void*>(book.number);
}

void meta_claimed(const StorageImpl& storage, MemoryUse before, MemoryUse now) {
  if (RUSH_LIKELY(!storage.context())) return;
  Ledger& book = ledger();
  const std::lock_guard lock(book.mutex);
  if (!book.knows(storage)) return;
  book.uses[before] -= book.bytes(storage);
  book.uses[now] += book.bytes(storage);
}

void meta_freed(const StorageImpl& storage) noexcept {
  if (RUSH_LIKELY(!storage.context())) return;
  Ledger& book = ledger();
  const std::lock_guard lock(book.mutex);
  if (!book.knows(storage)) return;
  book.uses[storage.use()] -= book.bytes(storage);
  book.now -= book.bytes(storage);
}

}  // namespace detail

std::string MemoryEstimate::table() const {
  std::string text;
  const auto line = [&](std::string_view name, int64_t bytes) {
    const std::string amount = byte_text(bytes);
    text += str(name, std::string(20 - name.size() + 12 - std::min<size_t>(amount.size(), 12), ' '), amount, "\n");
  };
  for (size_t i = kNumMemoryUses; i-- > 0;) {
    const auto use = static_cast<MemoryUse>(i);
    if (at_peak[use] > 0) line(memory_use_name(use), at_peak[use]);
  }
  line("peak", peak);
  return text;
}

MemoryEstimate estimate_memory(const std::function<void()>& program, Device device) {
  RUSH_CHECK_VALUE(program, "estimate_memory: expected a callable, got an empty std::function");
  const Estimating estimating(device);
  program();
  return estimating.found();
}

void reset_estimated_peak() {
  Ledger& book = ledger();
  const std::lock_guard lock(book.mutex);
  book.found.peak = book.now;
  book.found.at_peak = book.uses;
}

int64_t largest_that_fits(const std::function<void(int64_t)>& program, int64_t bytes, int64_t most, Device device) {
  RUSH_CHECK_VALUE(program, "largest_that_fits: expected a callable, got an empty std::function");
  RUSH_CHECK_VALUE(most >= 1 && most <= int64_t{1} << 62, "largest_that_fits: most must lie in [1, 2^62], got ", most);
  const auto fits = [&](int64_t n) { return estimate_memory([&] { program(n); }, device).peak <= bytes; };
  int64_t known = 0, next = 1;  // `known` fits
  while (next <= most && fits(next)) {
    known = next;
    next = next < most ? std::min(2 * next, most) : most + 1;
  }
  for (int64_t above = std::min(next, most + 1); above - known > 1;) {
    const int64_t middle = known + (above - known) / 2;
    (fits(middle) ? known : above) = middle;
  }
  return known;
}

int64_t memory_for_tensors(Device device) {
  Backend& backend = backend_of(device.type);
  const MemoryInfo info = backend.memory_info(std::max<int>(device.index, 0));
  return std::min(static_cast<int64_t>(info.total),
                  static_cast<int64_t>(info.free) + backend.allocator().stats().reserved);
}

}  // namespace rush
