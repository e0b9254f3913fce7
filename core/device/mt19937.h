// The generator of libtorch's CPU numbers.
#pragma once
#include <memory>
#include <optional>

#include "core/device/generator.h"

namespace rush {

// Note [libtorch's random numbers]
// Rushlight's own stream is the same on every device (Note [One random stream]), and is not libtorch's. A program that
// has to repeat libtorch's numbers draws from this generator instead. libtorch's CPU generator is one Mersenne Twister
// (Matsumoto and Nishimura, "Mersenne Twister", 1998), whose words go to the elements one after the other, in the order
// in which they lie in memory. The operators of core/ops/random, and dropout, then compute what PyTorch's build for
// x86-64 computes on a processor with AVX2: uniform numbers, integers, zeros and ones and float's normal numbers bit
// for bit, the others as far as the C library's logarithms and sines agree.
//
// Operators that draw inside of a fused kernel, as attention with dropout does, take from it a seed of our own stream:
// a program repeats itself, and does not repeat libtorch.

/// libtorch's CPU generator: rush::make_generator<rush::Mt19937GeneratorImpl>(seed) is given to single operators, or to
/// set_default_generator. torch::manual_seed of the libtorch headers does the latter.
class Mt19937GeneratorImpl final : public GeneratorImpl {
 public:
  explicit Mt19937GeneratorImpl(uint64_t seed = kDefaultSeed);
  ~Mt19937GeneratorImpl() override;

  /// The next word and the next two. The caller holds mutex_.
  uint32_t random();
  uint64_t random64() {
    const uint64_t upper = random();
    return upper << 32 | random();
  }
  /// The second of two normal numbers, until it is asked for.
  std::optional<double> next_normal;

  Mt19937GeneratorImpl* mt19937() override { return this; }
  void set_current_seed(uint64_t seed) override;
  /// Throws ValueError unless 0: this stream has no positions.
  void set_offset(uint64_t offset) override;
  /// A band of our own stream, for a seed that is drawn.
  PhiloxState reserve(uint64_t increments) override;
  /// The seed, the normal number kept and the twister's words, as text.
  std::vector<uint8_t> get_state() const override;
  void set_state(const std::vector<uint8_t>& state) override;
  intrusive_ptr<GeneratorImpl> clone() const override;

 private:
  struct Engine;  // a std::mt19937, which the libtorch headers do without
  std::unique_ptr<Engine> engine_;
};

}  // namespace rush
