// Dispatch keys: what a call may stop at on its way to a kernel, highest first.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "core/device/device.h"
#include "core/layout.h"
#include "core/scalar_type.h"

namespace rush {

// The order is the order of dispatch: the highest key that a call carries and the operator implements is served first.
enum class DispatchKey : uint8_t {
  Undefined,
  Meta,
  CPU,
  CUDA,
  SparseCPU,
  SparseCUDA,
  Autograd,
  Autocast,
  Free1,  // for programs, see Registry::take_key
  Free2,
  Free3,
  Free4,
  UndefinedTensor,  // see Note [Undefined arguments]
};
inline constexpr int kNumDispatchKeys = 13;

// A free key that a program took has the name that it was given.
const char* name(DispatchKey key);
namespace detail {
extern std::atomic<const char*> key_names[kNumDispatchKeys];
}

class KeySet {
 public:
  constexpr KeySet() = default;
  constexpr KeySet(DispatchKey key) : bits_(static_cast<uint16_t>(1u << static_cast<unsigned>(key))) {}
  static constexpr KeySet all() { return from_bits(0xFFFF); }

  constexpr KeySet operator|(KeySet other) const { return from_bits(bits_ | other.bits_); }
  constexpr KeySet operator&(KeySet other) const { return from_bits(bits_ & other.bits_); }
  constexpr KeySet without(KeySet other) const { return from_bits(bits_ & ~other.bits_); }
  constexpr KeySet& operator|=(KeySet other) { return *this = *this | other; }
  constexpr bool has(DispatchKey key) const { return (bits_ & KeySet(key).bits_) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  // Undefined for the empty set.
  constexpr DispatchKey highest() const {
    return static_cast<DispatchKey>(31 - __builtin_clz(static_cast<unsigned>(bits_) | 1u));
  }
  constexpr uint16_t bits() const { return bits_; }
  friend constexpr bool operator==(KeySet a, KeySet b) { return a.bits_ == b.bits_; }

 private:
  static constexpr KeySet from_bits(unsigned bits) {
    KeySet set;
    set.bits_ = static_cast<uint16_t>(bits);
    return set;
  }
  uint16_t bits_ = 0;
};

constexpr bool is_backend_key(DispatchKey key) { return key > DispatchKey::Undefined && key < DispatchKey::Autograd; }
constexpr DispatchKey backend_key(DeviceType device) {
  return device == DeviceType::CPU    ? DispatchKey::CPU
         : device == DeviceType::CUDA ? DispatchKey::CUDA
                                      : DispatchKey::Meta;
}
// Sparse tensors are on the CPU or on CUDA.
constexpr DispatchKey backend_key(DeviceType device, Layout layout) {
  if (layout == kStrided) return backend_key(device);
  return device == DeviceType::CUDA ? DispatchKey::SparseCUDA : DispatchKey::SparseCPU;
}
inline constexpr KeySet kSparseKeys = KeySet(DispatchKey::SparseCPU) | DispatchKey::SparseCUDA;
// Of the tensors that lie on a GPU.
inline constexpr KeySet kCudaKeys = KeySet(DispatchKey::CUDA) | DispatchKey::SparseCUDA;

void append(std::string& out, KeySet keys);

class OpBase;

// What autocast does on this thread; core/amp/autocast.h reads and sets it.
struct AutocastState {
  uint8_t devices = 0;  // for which it is on: a bit for each DeviceType
  bool cache = true;
  ScalarType dtypes[2] = {kBFloat16, kFloat16};  // that it lowers to, on the CPU and on CUDA
};

// What this thread adds to and takes from every call's keys, its grad mode and its autocast.
struct DispatchState {
  KeySet included;
  KeySet excluded;
  bool grad_mode = true;
  bool inference_mode = false;
  Device default_device;            // of factories, see set_default_device
  int depth = 0;                    // of nested calls, kept only while the dispatch trace is on
  AutocastState autocast;           // `included` has the Autocast key while it is on for any device
  const OpBase* cuda_op = nullptr;  // the last one called with the CUDA key; errors name it
};
inline thread_local constinit DispatchState dispatch_state;

// Restores the thread's dispatch state at the end of a scope.
class DispatchStateGuard {
 public:
  DispatchStateGuard() : saved_(dispatch_state) {}
  // Until the end of the scope no call of this thread stops at these keys.
  explicit DispatchStateGuard(KeySet exclude) : saved_(dispatch_state) { dispatch_state.excluded |= exclude; }
  ~DispatchStateGuard() { dispatch_state = saved_; }
  DispatchStateGuard(const DispatchStateGuard&) = delete;
  DispatchStateGuard& operator=(const DispatchStateGuard&) = delete;

 private:
  DispatchState saved_;
};

// Until the end of a scope every call of this thread stops at these keys, too.
class IncludeDispatchKeyGuard : DispatchStateGuard {
 public:
  explicit IncludeDispatchKeyGuard(KeySet keys) { dispatch_state.included |= keys; }
};

}  // namespace rush
