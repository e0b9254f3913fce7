// The demo's digits: MNIST where it is at hand, else digits that the program draws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/tensor.h"

namespace examples {

struct DigitSet {
  rush::Tensor images;   // (N, 1, 28, 28) float32, 0 to 1
  rush::Tensor targets;  // (N) int64
  int64_t size() const { return targets.size(0); }
};

struct DigitSets {
  DigitSet train, test;
  std::string description;  // one line: what they are and where they come from
};

/// MNIST from the folder `data`; if that is empty, from $RUSH_DATA/mnist or $RUSH_ROOT/data/mnist, the first that has
/// it, else drawn digits, which depend on `seed`. By default as many as MNIST has; of the real ones the first are
/// taken. Throws rush::IOError if a named folder has none, or if what is found is damaged.
DigitSets load_digits(const std::string& data, uint64_t seed, size_t for_training = 60000, size_t for_test = 10000);

}  // namespace examples
