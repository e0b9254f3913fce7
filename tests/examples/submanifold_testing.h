// What the tests of the submanifold convolution on the CPU and on the GPU share.
#pragma once
#include "examples/submanifold/classifier.h"
#include "rushlight.h"

namespace rush::testing {

// Features at about a third of the sites of a grid, on the CPU: (B, spatial..., C), coalesced.
inline Tensor random_sites(IntArrayRef sizes, ScalarType dtype = kFloat64) {
  const Tensor taken = rand(sizes.slice(0, sizes.size() - 1)).lt(0.35);
  const Tensor indices = taken.nonzero().t().contiguous();
  return sparse_coo_tensor(indices, randn({indices.size(1), sizes.back()}, dtype), sizes, {}, true);
}

inline Tensor random_weight(int64_t out, int64_t in, IntArrayRef kernel) {
  DimVector sizes(kernel);
  sizes.insert(sizes.begin(), in);
  sizes.insert(sizes.begin(), out);
  return randn(sizes, kFloat64);
}

// How much of 20 new shapes of each kind a net tells right after so many steps on `count` of each.
inline double accuracy_after(int64_t steps, int64_t count, Device device) {
  manual_seed(1);
  examples::ShapeClassifier classifier(device, 1e-2, steps);
  for (int64_t i = 0; i < steps; ++i) classifier.step(count);
  const examples::Shapes test = examples::make_shapes(20, device);
  return classifier.guess(test).eq(test.labels).to(kFloat64).mean().item<double>();
}

}  // namespace rush::testing
