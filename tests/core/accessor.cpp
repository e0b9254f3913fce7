// Single elements: accessors, and assignments to what has no name.
#include <doctest/doctest.h>

#include "rushlight.h"

using namespace rush;

TEST_CASE("an accessor reads and writes through the strides") {
  const Tensor x = arange(24, kDouble).reshape({2, 3, 4});
  const Tensor y = x.transpose(0, 2);  // (4, 3, 2)
  const auto read = y.accessor<const double, 3>();
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      for (int64_t k = 0; k < 2; ++k) CHECK(read[i][j][k] == x.select(0, k).select(0, j).select(0, i).item<double>());
    }
  }
  CHECK(read.size(0) == 4);
  CHECK(read.stride(0) == 1);
  CHECK(read[0].sizes() == IntArrayRef({3, 2}));

  auto write = y.accessor<double, 3>();
  write[3][2][1] = -5;
  CHECK(x.select(0, 1).select(0, 2).select(0, 3).item<double>() == -5);

  CHECK_THROWS_AS((x.accessor<double, 2>()), ValueError);
  CHECK_THROWS_AS((x.accessor<float, 3>()), TypeError);
  CHECK_THROWS_AS((empty({2}, kMeta).accessor<float, 1>()), ValueError);
  CHECK_THROWS_AS((Tensor().accessor<float, 1>()), Error);
}

TEST_CASE("dimensions of a packed accessor are exchanged") {
  const Tensor x = arange(6, kFloat).reshape({2, 3});
  const auto exchanged = x.packed_accessor32<float, 2>().transpose(0, 1);
  CHECK(exchanged.size(0) == 3);
  CHECK(exchanged[2][1] == 5);
  CHECK_THROWS_AS(exchanged.transpose(0, 2), IndexError);
  CHECK_THROWS_AS(exchanged.transpose(-1, 0), IndexError);
}

TEST_CASE("assigning to a view that has no name writes into its base") {
  Tensor x = zeros({2, 3}, kDouble);
  x[0] = ones({3}, kDouble);
  x[1][2] = 7;
  x[1][0] = x[1][2];
  x.index({indexing::Ellipsis, 1}) = -2.5;
  CHECK(equal(x, tensor({{1.0, -2.5, 1.0}, {7.0, -2.5, 7.0}}, kDouble)));
  CHECK_THROWS_AS(x[0] = ones({4}), Error);

  // A variable becomes another handle.
  const Tensor before = x;
  Tensor row = x[0];
  row = full({3}, 9.0, kDouble);
  CHECK(x[0][0].item<double>() == 1);
  x = ones({1});
  CHECK(before.numel() == 6);

  const Tensor leaf = ones({2}, TensorOptions(kDouble).requires_grad(true));
  const Tensor y = zeros({2, 2}, kDouble);
  y[1] = leaf * 3;
  y.sum().backward();
  CHECK(equal(leaf.grad(), full({2}, 3.0, kDouble)));
}
