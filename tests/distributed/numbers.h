// Random numbers that are the same on every device, and how close two results must be.
#pragma once
#include <doctest/doctest.h>

#include "core/device/generator.h"
#include "core/ops/random/random_factories.h"
#include "tests/distributed/on_gpus.h"

namespace rush::testing {

inline Tensor seeded_randn(IntArrayRef sizes, uint64_t seed, ScalarType dtype = kFloat32) {
  return here(randn(sizes, make_generator<CPUGeneratorImpl>(seed), TensorOptions(dtype).device(kCPU)));
}

inline void check_close(const Tensor& a, const Tensor& b, double tolerance = 1e-12) {
  REQUIRE(a.sizes() == b.sizes());
  if (a.numel() > 0) CHECK((a - b).abs().max().item<double>() < tolerance);
}

}  // namespace rush::testing
