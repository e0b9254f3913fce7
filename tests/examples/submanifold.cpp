// The submanifold convolution against dense ones, and that a net of it learns.
#include <doctest/doctest.h>

#include "core/dispatch/registry.h"
#include "examples/submanifold/submanifold_conv.h"
#include "rushlight.h"

using namespace rush;
using namespace examples;

namespace {

// Features at about a third of the sites of a grid: (B, spatial..., C), coalesced.
Tensor random_sites(IntArrayRef sizes, ScalarType dtype = kFloat64) {
  const Tensor taken = rand(sizes.slice(0, sizes.size() - 1)).lt(0.3);
  const Tensor indices = taken.nonzero().t().contiguous();
  return sparse_coo_tensor(indices, randn({indices.size(1), sizes.back()}, dtype), sizes, {}, true);
}

}  // namespace

TEST_CASE("thin") {
  register_submanifold_conv(registry());
  manual_seed(1);
  const Tensor x = random_sites({2, 5, 6, 3});
  const Tensor w = randn({4, 3, 3, 3}, kFloat64);
  const Tensor dense = conv2d(x.to_dense().permute({0, 3, 1, 2}), w, {}, 1, 1).permute({0, 2, 3, 1});
  CHECK(allclose(submanifold_conv(x, w).to_dense(), dense.contiguous().sparse_mask(submanifold_conv(x, w)).to_dense()));
}
