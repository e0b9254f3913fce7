#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

using PartFunction = Tensor (*)(const Tensor&);
using PartsFunction = Tensors (*)(const Tensor&);

TEST_CASE("parts: geometry and values") {
  const struct {
    const char* name;
    PartFunction part;
    DimVector sizes;
    Doubles expected;
  } cases[] = {
      {"select", [](const Tensor& x) { return x.select(1, -2); }, {3}, {2, 6, 10}},
      {"slice", [](const Tensor& x) { return x.slice(1, 1, 4, 2); }, {3, 2}, {1, 3, 5, 7, 9, 11}},
      {"slice from the end", [](const Tensor& x) { return x.slice(0, -1); }, {1, 4}, {8, 9, 10, 11}},
      {"slice beyond", [](const Tensor& x) { return x.slice(0, -9, 99, 2); }, {2, 4}, {0, 1, 2, 3, 8, 9, 10, 11}},
      {"slice reversed", [](const Tensor& x) { return x.slice(0, 2, 1); }, {0, 4}, {}},
      {"slice with a huge step", [](const Tensor& x) { return x.slice(1, 3, {}, INT64_MAX); }, {3, 1}, {3, 7, 11}},
      {"narrow", [](const Tensor& x) { return x.narrow(0, 1, 2); }, {2, 4}, {4, 5, 6, 7, 8, 9, 10, 11}},
      {"narrow from the end", [](const Tensor& x) { return x.narrow(1, -1, 1); }, {3, 1}, {3, 7, 11}},
      {"narrow nothing", [](const Tensor& x) { return x.narrow(1, 4, 0); }, {3, 0}, {}},
      {"narrow by a tensor",
       [](const Tensor& x) { return x.narrow(0, scalar_tensor(2, kInt64), 1); },
       {1, 4},
       {8, 9, 10, 11}},
      {"diagonal", [](const Tensor& x) { return x.diagonal(); }, {3}, {0, 5, 10}},
      {"diagonal above", [](const Tensor& x) { return x.diagonal(2); }, {2}, {2, 7}},
      {"diagonal below", [](const Tensor& x) { return x.diagonal(-1); }, {2}, {4, 9}},
      {"diagonal outside", [](const Tensor& x) { return x.diagonal(INT64_MIN); }, {0}, {}},
      {"diagonal of swapped dims", [](const Tensor& x) { return x.diagonal(-2, 1, 0); }, {2}, {2, 7}},
      {"unfold", [](const Tensor& x) { return x.unfold(1, 2, 1).select(0, 2); }, {3, 2}, {8, 9, 9, 10, 10, 11}},
      {"unfold with gaps", [](const Tensor& x) { return x.unfold(0, 1, 2); }, {2, 4, 1}, {0, 1, 2, 3, 8, 9, 10, 11}},
  };
  const Tensor x = counting({3, 4});
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const Tensor y = c.part(x);
    CHECK(y.sizes() == IntArrayRef(c.sizes));
    CHECK(values(y) == c.expected);
    CHECK(y.is_alias_of(x));
    CHECK(c.part(empty({3, 4}, kMeta)).sizes() == y.sizes());
  }
}

TEST_CASE("several parts: sizes, and together they are the whole") {
  const struct {
    const char* name;
    PartsFunction split;
    std::vector<int64_t> lengths;  // along dimension 1
  } cases[] = {
      {"split", [](const Tensor& x) { return x.split(3, 1); }, {3, 3, 1}},
      {"split into one", [](const Tensor& x) { return x.split(9, -1); }, {7}},
      {"split by sizes",
       [](const Tensor& x) {
         return x.split({2, 0, 5}, 1);
       },
       {2, 0, 5}},
      {"split_with_sizes",
       [](const Tensor& x) {
         return x.split_with_sizes({7, 0}, 1);
       },
       {7, 0}},
      {"chunk", [](const Tensor& x) { return x.chunk(3, 1); }, {3, 3, 1}},
      {"chunk into fewer", [](const Tensor& x) { return x.chunk(5, 1); }, {2, 2, 2, 1}},
      {"tensor_split", [](const Tensor& x) { return x.tensor_split(3, 1); }, {3, 2, 2}},
      {"tensor_split of more", [](const Tensor& x) { return x.tensor_split(9, 1); }, {1, 1, 1, 1, 1, 1, 1, 0, 0}},
      {"tensor_split indices",
       [](const Tensor& x) {
         return x.tensor_split({2, 4}, 1);
       },
       {2, 2, 3}},
      {"tensor_split tensor",
       [](const Tensor& x) {
         return x.tensor_split(tensor({1, 6}), 1);
       },
       {1, 5, 1}},
      {"tensor_split sections", [](const Tensor& x) { return x.tensor_split(tensor(2), 1); }, {4, 3}},
  };
  const Tensor x = counting({2, 7});
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const Tensors parts = c.split(x);
    std::vector<int64_t> lengths;
    for (const Tensor& part : parts) {
      lengths.push_back(part.size(1));
      CHECK(part.is_alias_of(x));
    }
    CHECK(lengths == c.lengths);
    CHECK(values(cat(parts, 1)) == values(x));
  }
  const Tensors slices = x.unbind(1);
  CHECK(slices.size() == 7);
  CHECK(values(stack(slices, 1)) == values(x));
  CHECK(zeros({0, 2}).unbind().empty());
  CHECK(zeros({0, 2}).chunk(3).size() == 3);
  CHECK(zeros({0, 2}).split(0).size() == 1);
}

TEST_CASE("parts: what does not fit is a typed error") {
  const Tensor x = counting({3, 4}), number = counting({});
  CHECK_THROWS_WITH_AS(x.select(0, 3), "select: index 3 out of range for tensor of size [3, 4] at dimension 0",
                       IndexError);
  CHECK_THROWS_AS(number.select(0, 0), IndexError);
  CHECK_THROWS_AS(x.slice(0, 0, 1, 0), ValueError);
  CHECK_THROWS_AS(number.slice(), IndexError);
  CHECK_THROWS_AS(x.narrow(0, 2, 2), IndexError);
  CHECK_THROWS_AS(x.narrow(0, 4, 0), IndexError);
  CHECK_THROWS_AS(x.narrow(0, 0, -1), ValueError);
  CHECK_THROWS_AS(x.narrow(0, tensor({1}), 1), TypeError);
  CHECK_THROWS_AS(x.diagonal(0, 1, -1), ValueError);
  CHECK_THROWS_AS(x.unfold(0, 4, 1), ValueError);
  CHECK_THROWS_AS(x.unfold(0, 1, 0), ValueError);
  CHECK_THROWS_AS(x.split(0), ValueError);
  CHECK_THROWS_AS(x.split({1, 1}), ValueError);
  CHECK_THROWS_AS(x.split({5, -2}), ValueError);
  CHECK_THROWS_AS(x.chunk(0), ValueError);
  CHECK_THROWS_AS(x.tensor_split(0), ValueError);
  CHECK_THROWS_AS(x.tensor_split(INT64_MAX), ValueError);
  CHECK_THROWS_AS(zeros({3, 0}).chunk(int64_t{1} << 61, 1), ValueError);
  CHECK_THROWS_AS(ops::unfold_backward(ones({1, 2, 1}), {3, 4}, -1, 1, -5), ValueError);
  CHECK_THROWS_AS(ops::unfold_backward(ones({2, 2, 3}), {3, 4}, -1, 3, 1), ValueError);
  CHECK_THROWS_AS(ops::unfold_backward(ones({1, 2, 1}), {3, 4}, 0, 1, INT64_MAX), ValueError);
  CHECK_THROWS_AS(ops::strided_sum(ones({8}), {-2}, 1, 0), ValueError);
  CHECK_THROWS_AS(x.tensor_split(tensor({0.5})), TypeError);
  CHECK_THROWS_AS(number.unbind(), IndexError);
}

TEST_CASE("unfold_backward: a gradient of one row is that of all rows") {
  CHECK(values(ops::unfold_backward(ones({1, 2, 3}), {2, 4}, -1, 3, 1)) == Doubles{1, 2, 2, 1, 1, 2, 2, 1});
}

TEST_CASE("one of several views cannot be written in place while gradients are recorded") {
  const Tensor x = leaf({4}) * 1;
  CHECK_THROWS_AS(x.split(2)[0].mul_(2), Error);
  CHECK_THROWS_AS(x.unbind()[0].mul_(2), Error);
  CHECK_THROWS_AS(x.chunk(2)[0].mul_(2), Error);
  CHECK_NOTHROW(x.narrow(0, 0, 2).mul_(2));
}

TEST_CASE("derivatives of parts") {
  const struct {
    const char* name;
    PartFunction part;
    DimVector input;
  } cases[] = {
      {"select", [](const Tensor& x) { return x.select(-1, 1); }, {2, 3}},
      {"slice", [](const Tensor& x) { return x.slice(0, 1, {}, 2); }, {5, 2}},
      {"slice of a transpose", [](const Tensor& x) { return x.t().slice(0, -2); }, {2, 3}},
      {"empty slice", [](const Tensor& x) { return x.slice(0, 3); }, {3, 2}},
      {"narrow", [](const Tensor& x) { return x.narrow(1, 1, 2); }, {2, 4}},
      {"diagonal", [](const Tensor& x) { return x.diagonal(1, 2, 0); }, {3, 2, 3}},
      {"unfold", [](const Tensor& x) { return x.unfold(0, 3, 1); }, {5, 2}},
      {"unfold with gaps", [](const Tensor& x) { return x.unfold(1, 2, 3); }, {2, 6}},
      {"unfold of 0-d", [](const Tensor& x) { return x.unfold(0, 1, 1); }, {}},
  };
  for (const auto& c : cases) {
    CAPTURE(c.name);
    const auto squared = [&](const Tensors& x) {
      const Tensor y = c.part(x[0]);
      return Tensors{y * y};
    };
    check_gradients(squared, {leaf(c.input)});
  }
}

TEST_CASE("derivatives of several parts, all of them or only one") {
  const PartsFunction splits[] = {
      [](const Tensor& x) { return x.split(2, 1); }, [](const Tensor& x) { return x.split({1, 4}, 1); },
      [](const Tensor& x) { return x.chunk(3, 1); }, [](const Tensor& x) { return x.tensor_split(2, 1); },
      [](const Tensor& x) { return x.unbind(1); },
  };
  for (const PartsFunction& split : splits) {
    check_gradients(
        [&](const Tensors& x) {
          Tensors parts = split(x[0]);
          for (Tensor& part : parts) part = part * part;
          return parts;
        },
        {leaf({2, 5})});
    check_gradients(
        [&](const Tensors& x) {
          const Tensor one = split(x[0])[1];
          return Tensors{one * one};
        },
        {leaf({2, 5})});
  }
}

TEST_CASE("gradients of parts that lie side by side are those of the whole") {
  const Tensor weights = leaf({4, 6}, 3).detach();
  const auto gradient = [&](const auto& join) {
    const Tensor x = leaf({4, 6}, 1), y = x * 1;
    const Tensors parts = y.split({2, 2, 2}, 1);
    (join(parts) * weights).sum().backward();
    return x.grad();
  };
  // Gradients that are parts of one tensor, in order, in another order, with another between them, and the same thrice.
  CHECK(gradient([](const Tensors& p) { return cat({p[0], p[1], p[2]}, 1); }).equal(weights));
  const Tensor turned = gradient([](const Tensors& p) { return cat({p[2], p[0], p[1]}, 1); });
  CHECK(turned.equal(cat({weights.narrow(1, 2, 4), weights.narrow(1, 0, 2)}, 1)));
  const Tensor used_twice = gradient([](const Tensors& p) { return cat({p[0] + p[2], p[1], p[2]}, 1); });
  CHECK(used_twice.narrow(1, 0, 4).equal(weights.narrow(1, 0, 4)));
  CHECK(used_twice.narrow(1, 4, 2).equal(weights.narrow(1, 4, 2) + weights.narrow(1, 0, 2)));
  const Tensor x = leaf({4, 6}, 1);
  Tensor total = zeros({}, kFloat64);
  for (const Tensor& part : x.split(2, 1)) total = total + part.sum();
  total.backward();
  CHECK(x.grad().equal(ones({4, 6}, kFloat64)));
  // The gradient can be written, and a second backward pass adds to it.
  x.mutable_grad().mul_(2);
  x.split(3, 0)[0].sum().backward();
  CHECK(x.grad().narrow(0, 0, 3).equal(full({3, 6}, 3, kFloat64)));
  CHECK(x.grad().narrow(0, 3, 1).equal(full({1, 6}, 2, kFloat64)));
}

TEST_CASE("sums of many 16-bit gradients are made in float") {
  const Tensor x = ones({1}, kBFloat16).requires_grad_();
  const Tensor y = x.as_strided({1000}, {0});
  y.backward(ones({1000}, kBFloat16));
  CHECK(x.grad().item<double>() == 1000);  // one by one they would stop at 256
}

}  // namespace
