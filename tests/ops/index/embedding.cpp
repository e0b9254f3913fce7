#include "core/ops/index/embedding.h"

#include <doctest/doctest.h>

#include "core/ops/index/embedding_bag.h"
#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

TEST_CASE("embedding looks rows up") {
  const Tensor table = counting({4, 2});
  const Tensor out = embedding(table, tensor({3, 0, 3, 1, 1, 2}).view({2, 3}));
  CHECK(out.sizes() == IntArrayRef({2, 3, 2}));
  CHECK(values(out) == Doubles{6, 7, 0, 1, 6, 7, 2, 3, 2, 3, 4, 5});
  CHECK(values(embedding(counting({2, 3}).t(), tensor({2}).to(kInt32))) == Doubles{2, 5});
  CHECK(embedding(table, scalar_tensor(1, kInt64)).sizes() == IntArrayRef({2}));
  CHECK(embedding(table, zeros({0, 3}, kInt64)).sizes() == IntArrayRef({0, 3, 2}));
  CHECK(embedding(table.to(kBFloat16), tensor({0})).scalar_type() == kBFloat16);
  CHECK(embedding(empty({4, 2}, kMeta), empty({5}, TensorOptions(kInt64).device(kMeta))).sizes() ==
        IntArrayRef({5, 2}));
  CHECK_THROWS_WITH_AS(embedding(table, tensor({4})),
                       doctest::Contains("embedding: index out of range in self: index 4 is out of bounds for"),
                       IndexError);
  CHECK_THROWS_AS(embedding(table, tensor({-1})), IndexError);
  CHECK_THROWS_AS(embedding(table, tensor({1.0})), TypeError);
  CHECK_THROWS_AS(embedding(counting({4}), tensor({1})), ValueError);
}

TEST_CASE("embedding_dense_backward sums, scales and leaves the padding out") {
  const Tensor grad = counting({2, 2, 2}), indices = tensor({2, 0, 2, 1}).view({2, 2});
  CHECK(values(embedding_dense_backward(grad, indices, 4, -1, false)) == Doubles{2, 3, 6, 7, 4, 6, 0, 0});
  CHECK(values(embedding_dense_backward(grad, indices, 4, 2, false)) == Doubles{2, 3, 6, 7, 0, 0, 0, 0});
  CHECK(values(embedding_dense_backward(grad, indices, 4, 1, true)) == Doubles{2, 3, 0, 0, 2, 3, 0, 0});
  CHECK_THROWS_AS(embedding_dense_backward(grad, indices, 2, -1, false), IndexError);
  CHECK_THROWS_AS(embedding_dense_backward(grad, tensor({2, 0}), 4, -1, false), ValueError);
}

TEST_CASE("derivatives of embedding") {
  const Tensor indices = tensor({2, 0, 2, 1, 2, 1}).view({3, 2});
  for (const bool scale : {false, true}) {
    // Scaling changes the gradient and not the function, so only the sum's own derivative can be checked by
    // differences.
    check_gradients([&](const Tensors& x) { return Tensors{embedding_dense_backward(x[0], indices, 4, 1, scale)}; },
                    {leaf({3, 2, 2})});
  }
  check_gradients([&](const Tensors& x) { return Tensors{embedding(x[0], indices)}; }, {leaf({4, 3})});
  check_gradients([&](const Tensors& x) { return Tensors{embedding(x[0].t(), indices)}; }, {leaf({3, 4})});
  const Tensor table = leaf({4, 2});
  embedding(table, indices, 2, true).backward(ones({3, 2, 2}, kFloat64));
  CHECK(values(table.grad()) == Doubles{1, 1, 1, 1, 0, 0, 0, 0});
}

// Bags {1, 2, 2}, {}, {0}, {2} of rows.
const Tensor bag_indices() { return tensor({1, 2, 2, 0, 2}); }
const Tensor bag_offsets() { return tensor({0, 3, 3, 4}); }

TEST_CASE("embedding_bag sums, averages and takes the largest of each bag") {
  const Tensor table = tensor({{1.0, -1.0}, {2.0, 5.0}, {3.0, 4.0}}, kFloat64);
  const auto run = [&](BagMode mode, std::optional<int64_t> padding, const std::optional<Tensor>& each = std::nullopt) {
    return embedding_bag(table, bag_indices(), bag_offsets(), false, static_cast<int64_t>(mode), false, each, false,
                         padding);
  };
  CHECK(values(std::get<0>(run(BagMode::Sum, std::nullopt))) == Doubles{8, 13, 0, 0, 1, -1, 3, 4});
  CHECK(values(std::get<0>(run(BagMode::Sum, 2))) == Doubles{2, 5, 0, 0, 1, -1, 0, 0});
  const Tensor each = tensor({1.0, 0.5, -1.0, 2.0, 3.0}, kFloat64);
  CHECK(values(std::get<0>(run(BagMode::Sum, std::nullopt, each))) == Doubles{0.5, 3, 0, 0, 2, -2, 9, 12});
  const auto [mean, bags, sizes, copy] = run(BagMode::Mean, -1);
  CHECK(values(mean) == Doubles{2, 5, 0, 0, 1, -1, 0, 0});
  CHECK(values(bags) == Doubles{0, 0, 0, 2, 3});
  CHECK(values(sizes) == Doubles{1, 0, 1, 0});
  CHECK(values(copy) == values(sizes));
  const auto [maximum, same_bags, all_sizes, rows] = run(BagMode::Max, std::nullopt);
  CHECK(values(maximum) == Doubles{3, 5, 0, 0, 1, -1, 3, 4});
  CHECK(values(all_sizes) == Doubles{3, 0, 1, 1});
  CHECK(values(rows) == Doubles{2, 1, 0, 0, 0, 0, 2, 2});
  const auto last = embedding_bag(table, bag_indices(), tensor({0, 3, 5}), false, 0, false, std::nullopt, true);
  CHECK(values(std::get<0>(last)) == Doubles{8, 13, 4, 3});
  const auto narrow = embedding_bag(table.to(kBFloat16), bag_indices().to(kInt32), bag_offsets().to(kInt32));
  CHECK(std::get<0>(narrow).scalar_type() == kBFloat16);
  CHECK(std::get<1>(narrow).sizes() == IntArrayRef({0}));
  CHECK(std::get<1>(narrow).scalar_type() == kInt32);
  const auto mixed = embedding_bag(table, bag_indices().to(kInt32), bag_offsets());
  CHECK(std::get<1>(mixed).scalar_type() == kInt64);
}

TEST_CASE("embedding_bag: what it returns beside the result has PyTorch's shapes and values") {
  const Tensor ends = tensor({0, 3, 3, 5});  // with include_last_offset, three bags
  for (const int64_t columns : {0, 1, 2, 40}) {
    for (const bool recorded : {false, true}) {
      for (const int64_t mode : {0, 1, 2}) {
        CAPTURE(columns);
        CAPTURE(recorded);
        CAPTURE(mode);
        const Tensor table = counting({3, columns}).to(kFloat32).requires_grad_(recorded);
        const auto [out, bags, sizes, maxima] =
            embedding_bag(table, bag_indices(), ends, false, mode, false, std::nullopt, true);
        CHECK(out.sizes() == IntArrayRef({3, columns}));
        if (mode == 0) {
          CHECK(values(bags) == (recorded ? Doubles{0, 0, 0, 2, 2} : Doubles{}));
          CHECK(values(sizes) == Doubles(recorded ? 3 : 4, 0.0));
        } else {
          CHECK(values(bags) == Doubles{0, 0, 0, 2, 2});
          CHECK(values(sizes) == Doubles{3, 0, 2});
        }
        if (mode == 2) CHECK(maxima.sizes() == IntArrayRef({3, columns}));
        if (mode != 2) CHECK(values(maxima) == values(sizes));
        if (columns > 0) CHECK(values(out.select(0, 1)) == Doubles(static_cast<size_t>(columns), 0.0));
      }
    }
  }
  // One offset that is the end: no bag.
  const auto none = embedding_bag(counting({3, 2}).to(kFloat32), tensor(Doubles{}).to(kInt64), tensor({0}), false, 0,
                                  false, std::nullopt, true);
  CHECK(std::get<0>(none).sizes() == IntArrayRef({0, 2}));
  CHECK(values(std::get<2>(none)) == Doubles{0});
}

TEST_CASE("embedding_bag: bad input") {
  const Tensor table = counting({3, 2}), at = bag_indices(), bags = bag_offsets();
  CHECK_THROWS_AS(embedding_bag(table, tensor({3}), tensor({0})), IndexError);
  CHECK_THROWS_AS(embedding_bag(table, tensor({-1}), tensor({0})), IndexError);
  if (table.device().is_cpu()) {  // where the offsets can be read without waiting
    CHECK_THROWS_AS(embedding_bag(table, at, tensor({1, 2})), ValueError);
    CHECK_THROWS_AS(embedding_bag(table, at, tensor({0, 3, 2})), ValueError);
    CHECK_THROWS_AS(embedding_bag(table, at, tensor({0, 6})), ValueError);
  }
  CHECK_THROWS_AS(embedding_bag(table, at, bags, false, 3), ValueError);
  CHECK_THROWS_AS(embedding_bag(table, at, bags, true, 2), ValueError);
  CHECK_THROWS_AS(embedding_bag(table, at, bags, false, 1, false, zeros({5}, kFloat64)), ValueError);
  CHECK_THROWS_AS(embedding_bag(table, at, bags, false, 0, false, zeros({4}, kFloat64)), ValueError);
  CHECK_THROWS_AS(embedding_bag(table, at, bags, false, 0, false, zeros({5})), TypeError);
  CHECK_THROWS_AS(embedding_bag(table, at.view({1, 5}), bags), ValueError);
  CHECK_THROWS_AS(embedding_bag(table, at, bags, false, 0, false, std::nullopt, false, 3), IndexError);
}

TEST_CASE("derivatives of embedding_bag") {
  for (const std::optional<int64_t> padding : {std::optional<int64_t>(), std::optional<int64_t>(2)}) {
    for (const int64_t mode : {0, 1, 2}) {
      CAPTURE(mode);
      check_gradients(
          [&](const Tensors& x) {
            return Tensors{std::get<0>(
                embedding_bag(x[0], bag_indices(), bag_offsets(), false, mode, false, std::nullopt, false, padding))};
          },
          {leaf({3, 2})});
    }
    check_gradients(
        [&](const Tensors& x) {
          return Tensors{
              std::get<0>(embedding_bag(x[0], bag_indices(), bag_offsets(), false, 0, false, x[1], false, padding))};
        },
        {leaf({3, 2}), leaf({5}, 1)});
  }
  // Every look-up of row 2 counts a third.
  const Tensor table = leaf({3, 1});
  std::get<0>(embedding_bag(table, bag_indices(), bag_offsets(), true)).sum().backward();
  CHECK(values(table.grad()) == Doubles{1, 1, 1});
}

}  // namespace
