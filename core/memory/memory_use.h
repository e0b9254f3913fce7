// What the memory of tensors is for.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/device/device.h"

namespace rush {

class StorageImpl;

// Note [What memory is for]
// A storage carries a byte that says what it is for. A module or an optimiser claims parameters, a module buffers,
// AccumulateGrad gradients, an optimiser its states, and Saved what a graph keeps. What nobody claims is on its way
// from one operator to the next. A later claim counts only where it is the stronger one, as the order of MemoryUse
// says: a weight that a graph saves is still a parameter, and a saved tensor that becomes a gradient is a gradient.
//
// Claims of storages from kSmallestCounted on are added up for each device, so that an error that tells of full memory
// can say what it is full of. A call that claims nothing pays for a byte; smaller storages are not worth two atomic
// additions.
enum class MemoryUse : uint8_t { Other, Activation, Buffer, Gradient, OptimizerState, Parameter };
inline constexpr size_t kNumMemoryUses = 6;

/// "activations", "parameters"; of Other "temporaries".
std::string_view memory_use_name(MemoryUse use);

/// Bytes by use.
class MemoryUses {
 public:
  /// Of one use.
  int64_t& operator[](MemoryUse use) { return bytes_[static_cast<size_t>(use)]; }
  int64_t operator[](MemoryUse use) const { return bytes_[static_cast<size_t>(use)]; }
  int64_t sum() const;  // of all uses
  /// The uses with any bytes, the largest first: "activations 3.20 GiB, parameters 475.00 MiB".
  std::string text() const;

 private:
  std::array<int64_t, kNumMemoryUses> bytes_{};
};

/// What the tensors on the device hold now, by use. Storages below 4 KiB count as Other, as does what kernels work in.
MemoryUses memory_uses(Device device);

namespace detail {
inline constexpr size_t kSmallestCounted = 4096;

/// Adds the storage's bytes to its device's of that use, or takes them away.
void count_memory(const StorageImpl& storage, MemoryUse use, int sign) noexcept;
/// Without a lock, and so also where an allocator holds its own. `allocated` is what tensors hold together.
MemoryUses uses_of(Device device, int64_t allocated) noexcept;
/// Of what the memory is full, and what would need less of it: the end of an OutOfMemoryError's message.
std::string full_of(Device device, int64_t allocated);
}  // namespace detail

}  // namespace rush
