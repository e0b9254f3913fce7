#include "sim.h"

#include <sys/mman.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>

#include "core/device/backend.h"

namespace sim {

namespace {

using rush::Scalar;
using rush::TensorIterator;

rush::DeviceType type;
std::atomic<int> calls;
std::atomic<int> started = -1;
int kernels_set = 0;

// ---- memory: an arena that nobody may read or write but while an Access is alive

constexpr size_t kArena = size_t{1} << 32;  // of addresses; pages are taken as they are touched
constexpr size_t kUnit = 64;

class Memory final : public rush::Allocator {
 public:
  Memory() {
    void* reserved = mmap(nullptr, kArena, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    RUSH_CHECK(reserved != MAP_FAILED, "sim: no memory");
    arena_ = static_cast<char*>(reserved);
    free_[0] = kArena;
  }

  void* allocate(size_t nbytes) override {
    if (nbytes == 0) return nullptr;
    const size_t size = (nbytes + kUnit - 1) / kUnit * kUnit;
    const std::lock_guard lock(mutex_);
    for (auto range = free_.begin(); range != free_.end(); ++range) {
      if (range->second < size) continue;
      const auto [begin, length] = *range;
      free_.erase(range);
      if (length > size) free_[begin + size] = length - size;
      stats_.allocated += static_cast<int64_t>(size);
      ++stats_.allocations;
      return arena_ + begin;
    }
    throw rush::OutOfMemoryError("sim: the arena is full");
  }

  void deallocate(void* data, size_t nbytes) noexcept override {
    if (!data) return;
    size_t size = (nbytes + kUnit - 1) / kUnit * kUnit;
    const std::lock_guard lock(mutex_);
    stats_.allocated -= static_cast<int64_t>(size);
    size_t begin = static_cast<size_t>(static_cast<char*>(data) - arena_);
    const auto after = free_.lower_bound(begin);
    if (after != free_.end() && after->first == begin + size) {
      size += after->second;
      free_.erase(after);
    }
    const auto next = free_.lower_bound(begin);
    if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == begin) {
      std::prev(next)->second += size;
    } else {
      free_[begin] = size;
    }
  }

  rush::AllocatorStats stats() const override { return stats_; }
  void empty_cache() override {}

  void protect(int protection) { RUSH_CHECK(mprotect(arena_, kArena, protection) == 0, "sim: mprotect failed"); }

 private:
  char* arena_;
  std::mutex mutex_;
  std::map<size_t, size_t> free_;  // where ranges begin, and how long they are
  rush::AllocatorStats stats_;
};

Memory& memory() {
  static Memory& instance = *new Memory;  // tensors in static variables are freed after everything else
  return instance;
}

// Opens the memory; the last one closes it.
class Access {
 public:
  Access() {
    const std::lock_guard lock(mutex_);
    if (count_++ == 0) memory().protect(PROT_READ | PROT_WRITE);
  }
  ~Access() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) memory().protect(PROT_NONE);
  }

 private:
  static inline std::mutex mutex_;
  static inline int count_ = 0;
};

// ---- the backend

class Sim final : public rush::Backend {
 public:
  int device_count() noexcept override { return 2; }
  int current_device() override { return current_; }
  void set_device(int device) override { current_ = device; }
  rush::Allocator& allocator() override { return memory(); }
  void copy_bytes(void* to, rush::Device, const void* from, rush::Device, size_t nbytes) override {
    const Access access;
    std::memcpy(to, from, nbytes);
  }
  void start(int device) override { started = device; }
  bool falls_back_to_cpu() const override { return true; }

 private:
  static inline thread_local int current_ = 0;
};

// ---- kernels: of float32; everything else falls back

bool all_float(const TensorIterator& it) {
  for (int i = 0; i < it.ntensors(); ++i) {
    if (it.dtype(i) != rush::kFloat32 || !(it.operand(i).tensor.device().type == type)) return false;
  }
  return true;
}

float number(const char* at) {
  float value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
void store(char* at, float value) { std::memcpy(at, &value, sizeof value); }

template <class F>
void unary(TensorIterator& it, F f) {
  ++calls;
  const Access access;
  it.for_each([&](char** data, const int64_t* strides, int64_t n) {
    for (int64_t i = 0; i < n; ++i) store(data[0] + i * strides[0], f(number(data[1] + i * strides[1])));
  });
}
template <class F>
void binary(TensorIterator& it, F f) {
  ++calls;
  const Access access;
  it.for_each([&](char** data, const int64_t* strides, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      store(data[0] + i * strides[0], f(number(data[1] + i * strides[1]), number(data[2] + i * strides[2])));
    }
  });
}

template <auto& kernel, class F>
void set_unary(F) {
  ++kernels_set;
  kernel.set(type, [](TensorIterator& it) { all_float(it) ? unary(it, F()) : kernel.run_on_cpu(type, it); });
}
template <auto& kernel, class F>
void set_binary(F) {
  ++kernels_set;
  kernel.set(type, [](TensorIterator& it) { all_float(it) ? binary(it, F()) : kernel.run_on_cpu(type, it); });
}

void add(TensorIterator& it, const Scalar& alpha) {
  if (!all_float(it)) return rush::kernels::add.run_on_cpu(type, it, alpha);
  const auto factor = alpha.to<float>();
  if (factor == 1) return binary(it, [](float a, float b) { return a + b; });
  binary(it, [factor](float a, float b) { return std::fma(factor, b, a); });
}

void fill(TensorIterator& it, const Scalar& value) {
  if (!all_float(it)) return rush::kernels::fill.run_on_cpu(type, it, value);
  ++calls;
  const Access access;
  it.for_each([number = value.to<float>()](char** data, const int64_t* strides, int64_t n) {
    for (int64_t i = 0; i < n; ++i) store(data[0] + i * strides[0], number);
  });
}

void threshold_backward(TensorIterator& it, const Scalar& threshold) {
  if (!all_float(it)) return rush::kernels::threshold_backward.run_on_cpu(type, it, threshold);
  binary(it, [limit = threshold.to<float>()](float grad, float x) { return x <= limit ? 0.0F : grad; });
}

void set_kernels() {
  namespace k = rush::kernels;
  k::add.set(type, add);
  k::fill.set(type, fill);
  k::threshold_backward.set(type, threshold_backward);
  kernels_set += 3;
  set_unary<k::copy>([](float x) { return x; });
  set_unary<k::neg>([](float x) { return -x; });
  set_unary<k::abs>([](float x) { return std::fabs(x); });
  set_unary<k::sqrt>([](float x) { return std::sqrt(x); });
  set_unary<k::floor>([](float x) { return std::floor(x); });
  set_unary<k::ceil>([](float x) { return std::ceil(x); });
  set_unary<k::trunc>([](float x) { return std::trunc(x); });
  set_unary<k::relu>([](float x) { return x < 0 ? 0 : x; });
  set_unary<k::reciprocal>([](float x) { return 1 / x; });
  set_binary<k::mul>([](float a, float b) { return a * b; });
  set_binary<k::div>([](float a, float b) { return a / b; });
  set_binary<k::fmod>([](float a, float b) { return std::fmod(a, b); });
  set_binary<k::maximum>([](float a, float b) { return std::isnan(a) || a > b ? a : b; });
  set_binary<k::minimum>([](float a, float b) { return std::isnan(a) || a < b ? a : b; });
  set_binary<k::fmax>([](float a, float b) { return std::fmax(a, b); });
  set_binary<k::fmin>([](float a, float b) { return std::fmin(a, b); });
}

}  // namespace

rush::DeviceType add_device() {
  static auto& backend = *new Sim;
  type = rush::register_backend("sim", backend);
  set_kernels();
  return type;
}

int kernel_calls() { return calls; }
int kernel_count() { return kernels_set; }
int started_device() { return started; }

}  // namespace sim
