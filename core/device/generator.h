// Generators: the owners of a position in the random stream. See Note [One random stream] in core/philox.h.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "core/device/device.h"
#include "core/error/error.h"
#include "core/intrusive_ptr.h"
#include "core/philox.h"

namespace rush {

/// What every generator starts from unless it is seeded; PyTorch's number.
inline constexpr uint64_t kDefaultSeed = 67280421310721;

class Mt19937GeneratorImpl;

/// The state (seed, offset). Its functions take no lock: threads that share a generator must hold `mutex_`
/// around them, as in ATen. Operators call Generator::reserve, which does. A backend derives from it where drawing
/// means more than advancing a counter: under CUDA graph capture, the state lives in device memory.
class GeneratorImpl : public IntrusiveTarget {
 public:
  GeneratorImpl(Device device, uint64_t seed) : device_(device), seed_(seed) {}

  Device device() const { return device_; }  // whose operators draw from it

  /// Starts the stream of `seed` from its beginning.
  virtual void set_current_seed(uint64_t seed);
  uint64_t current_seed() const { return seed_; }

  /// Seeds with a number that the operating system provides, and returns it.
  uint64_t seed();

  /// The position in every subsequence, in words. Throws ValueError unless a multiple of 4.
  virtual void set_offset(uint64_t offset);
  uint64_t get_offset() const { return offset_; }

  /// Hands out the next `increments` words of every subsequence, rounded up to a multiple of 4. The caller draws from
  /// the returned position as Note [One random stream] says.
  virtual PhiloxState reserve(uint64_t increments);

  /// The seed, then the offset, each in 8 bytes, little-endian; the same on every device, and PyTorch's for CUDA.
  virtual std::vector<uint8_t> get_state() const;

  /// Throws ValueError, changing nothing, unless `state` is what get_state could have returned.
  virtual void set_state(const std::vector<uint8_t>& state);

  /// This generator if it is of libtorch's stream, else null. See Note [libtorch's random numbers].
  virtual Mt19937GeneratorImpl* mt19937() { return nullptr; }

  /// A generator on the same device in the same state.
  virtual intrusive_ptr<GeneratorImpl> clone() const;

  std::mutex mutex_;

 private:
  Device device_;
  uint64_t seed_;
  uint64_t offset_ = 0;
};

/// The CPU's own kind of generator, which draws from Philox.
class CPUGeneratorImpl final : public GeneratorImpl {
 public:
  explicit CPUGeneratorImpl(uint64_t seed = kDefaultSeed) : GeneratorImpl(kCPU, seed) {}
  intrusive_ptr<GeneratorImpl> clone() const override;
};

/// A shared handle to a GeneratorImpl; copies share the state. Mirrors at::Generator. A default-constructed one is
/// undefined, and operators then take the device's default generator.
class Generator {
 public:
  Generator() = default;
  explicit Generator(intrusive_ptr<GeneratorImpl> impl) : impl_(std::move(impl)) {
    RUSH_CHECK_VALUE(impl_, "Generator: expected an implementation, got a null pointer");
  }

  bool defined() const { return static_cast<bool>(impl_); }  // it has a state
  friend bool operator==(const Generator& a, const Generator& b) { return a.impl_ == b.impl_; }

  /// All below throw Error on an undefined generator.
  void set_current_seed(uint64_t seed) { impl().set_current_seed(seed); }
  uint64_t current_seed() const { return impl().current_seed(); }
  uint64_t seed() { return impl().seed(); }
  void set_offset(uint64_t offset) { impl().set_offset(offset); }
  uint64_t get_offset() const { return impl().get_offset(); }
  void set_state(const std::vector<uint8_t>& state) { impl().set_state(state); }
  std::vector<uint8_t> get_state() const { return impl().get_state(); }
  Generator clone() const { return Generator(impl().clone()); }
  Device device() const { return impl().device(); }
  std::mutex& mutex() const { return impl().mutex_; }
  Mt19937GeneratorImpl* mt19937() const { return impl().mt19937(); }

  /// GeneratorImpl::reserve under the lock: do not hold mutex() here.
  PhiloxState reserve(uint64_t increments) const {
    const std::lock_guard<std::mutex> lock(mutex());
    return impl().reserve(increments);
  }

  /// The implementation as the type that the caller knows it to be, unchecked as in ATen.
  template <class Impl>
  Impl* get() const {
    return static_cast<Impl*>(impl_.get());
  }

 private:
  intrusive_ptr<GeneratorImpl> impl_;

  GeneratorImpl& impl() const {
    RUSH_CHECK(impl_, "Generator: this generator is undefined; make one with rush::make_generator");
    return *impl_;
  }
};

/// make_generator<CPUGeneratorImpl>(seed). Mirrors at::make_generator.
template <class Impl, class... Args>
Generator make_generator(Args&&... args) {
  return Generator(make_intrusive<Impl>(std::forward<Args>(args)...));
}

/// The generator that operators on `device` draw from when they are given none; made on first use. Throws
/// NotImplementedError if the device type has none, ValueError if there is no such device.
const Generator& default_generator(Device device = kCPU);

/// Makes `generator` the default one of its device: operators draw from it from now on. Not to be called while other
/// threads draw there.
void set_default_generator(const Generator& generator);

/// Seeds the default generators of all devices, those not made yet included. Mirrors torch::manual_seed.
void manual_seed(uint64_t seed);

}  // namespace rush
