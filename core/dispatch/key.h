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
  Dense,
  Sparse,
  Tracer,  // records the calls that go on below autograd, see Note [Tracing]
  Autograd,
  Autocast,
  Free1,  // for programs, see Registry::take_key
  Free2,
  Free3,
  Free4,
  UndefinedTensor,  // see Note [Undefined arguments]
  Profiler,         // these two see every stop of a call, see Note [Watching calls]
  Trace,
};
inline constexpr int kNumDispatchKeys = 13;

// A free key that a program took has the name that it was given.
const char* name(DispatchKey key);
namespace detail {
extern std::atomic<const char*> key_names[kNumDispatchKeys];
}

// Note [Key sets]
// A tensor, and a call, carries dispatch keys, which choose the kernel, and the devices that its tensors lie on. The
// front of an operator is the same on all devices (Note [Fronts and kernels]), so devices do not multiply the keys:
// they are bits beside them, by which a call finds what to check and which device to make current.
class KeySet {
 public:
  constexpr KeySet() = default;
  constexpr KeySet(DispatchKey key) : bits_(bit(key)) {}
  constexpr KeySet(DeviceType device) : bits_(1u << static_cast<unsigned>(device)) {}
  static constexpr KeySet all() { return from_bits(~0u); }  // every key and every device type
  // As sets, bit by bit: `has` asks for all of `other`'s keys and devices, `has_any` for one of them.
  constexpr KeySet operator|(KeySet other) const { return from_bits(bits_ | other.bits_); }
  constexpr KeySet operator&(KeySet other) const { return from_bits(bits_ & other.bits_); }
  constexpr KeySet without(KeySet other) const { return from_bits(bits_ & ~other.bits_); }
  constexpr KeySet& operator|=(KeySet other) { return *this = *this | other; }
  constexpr bool has(KeySet other) const { return (bits_ & other.bits_) == other.bits_; }
  constexpr bool has_any(KeySet other) const { return (bits_ & other.bits_) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  // These, and the dispatch keys from the lowest of them on; from UndefinedTensor on only where the lowest is there.
  constexpr KeySet and_above() const {
    const uint32_t keys = bits_ >> kDeviceBits << kDeviceBits;
    const uint32_t up = keys == 0 ? 0 : ~0u << __builtin_ctz(keys);
    const uint32_t below = bit(DispatchKey::UndefinedTensor) - 1;
    return from_bits((up & below) == 0 ? up : (up & below) | keys);
  }
  // Undefined where there is none.
  constexpr DispatchKey highest() const {
    return static_cast<DispatchKey>(31 - __builtin_clz(bits_ | bit(DispatchKey::Undefined)) - kDeviceBits);
  }
  // The last of its devices. There must be one.
  constexpr DeviceType device() const {
    return static_cast<DeviceType>(31 - __builtin_clz(bits_ & ((1u << kDeviceBits) - 1)));
  }
  constexpr uint32_t bits() const { return bits_; }  // devices below, keys above
  friend constexpr bool operator==(KeySet a, KeySet b) { return a.bits_ == b.bits_; }

 private:
  static constexpr unsigned kDeviceBits = 8;
  static_assert(kNumDeviceTypes <= kDeviceBits);

  static constexpr uint32_t bit(DispatchKey key) { return 1u << (kDeviceBits + static_cast<unsigned>(key)); }
  static constexpr KeySet from_bits(uint32_t bits) {
    KeySet set;
    set.bits_ = bits;
    return set;
  }
  uint32_t bits_ = 0;
};

// Whether kernels of backends serve the key.
constexpr bool is_backend_key(DispatchKey key) { return key > DispatchKey::Undefined && key < DispatchKey::Tracer; }
// Of a tensor.
constexpr KeySet keys_on(DeviceType device, Layout layout = kStrided) {
  return KeySet(device) | (layout == kStrided ? DispatchKey::Dense : DispatchKey::Sparse);
}
// Devices that work by themselves, each at its own pace: all but the CPU and meta.
inline constexpr KeySet kAccelerators = [] {
  KeySet devices;
  for (int i = 0; i < kNumDeviceTypes; ++i) devices |= static_cast<DeviceType>(i);
  return devices.without(KeySet(kCPU) | kMeta);
}();

// "[Autograd, Dense, cuda, cpu]"
void append(std::string& out, KeySet keys);

class OpBase;

// What autocast does on this thread; core/amp/autocast.h reads and sets it.
struct AutocastState {
  uint8_t devices = 0;  // for which it is on: a bit for each DeviceType
  bool cache = true;
  ScalarType dtypes[kNumDeviceTypes];  // that it lowers to

  constexpr AutocastState() {
    for (ScalarType& dtype : dtypes) dtype = kFloat16;
    dtypes[static_cast<int>(kCPU)] = kBFloat16;
  }
};

// What this thread adds to and takes from every call's keys, its grad mode and its autocast.
struct DispatchState {
  KeySet included;
  KeySet excluded;
  bool grad_mode = true;
  bool inference_mode = false;
  Device default_device;              // of factories, see set_default_device
  AutocastState autocast;             // `included` has the Autocast key while it is on for any device
  const OpBase* device_op = nullptr;  // the last one called for an accelerator; errors name it
};
inline thread_local constinit DispatchState dispatch_state;

// The keys at which a call with `keys` has stopped before, except those of tensors: what watches calls leaves them out
// when it passes the call on, or the call would come back to them. See Note [Watching calls].
inline KeySet stops_behind(KeySet keys) {
  return dispatch_state.included.without(dispatch_state.excluded | keys) | DispatchKey::Trace;
}

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
