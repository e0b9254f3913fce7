#include "core/ops/embedding.h"

#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/ops/index_testing.h"

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
  CHECK_THROWS_WITH_AS(embedding(table, tensor({4})), "embedding: index 4 is out of bounds for dimension 0 of size 4",
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

}  // namespace
