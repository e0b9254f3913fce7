// Which overload a literal chooses: Note [Overloads that a literal chooses].
#include <doctest/doctest.h>

#include <cmath>

#include "rushlight.h"
#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

// [[0, 1, 2], [3, 4, 8]]
Tensor rows() { return tensor({{0., 1., 2.}, {3., 4., 8.}}, kFloat64); }

TEST_CASE("var and std: a number is a dimension, true and false are `unbiased`") {
  const Tensor x = rows();
  const int64_t dim = 0;
  const size_t unsigned_dim = 0;
  const DimVector columns{3};
  for (const Tensor& t : {x.var(0), x.var(dim), x.var(unsigned_dim), x.var({0}), x.var(-2), var(x, 0), var(x, {0}),
                          std::get<0>(var_mean(x, 0)), std::get<0>(var_mean(x, {0}))}) {
    CHECK(t.sizes() == IntArrayRef(columns));
    CHECK(values(t) == Doubles{4.5, 4.5, 18});
  }
  for (const Tensor& t :
       {x.std(1), x.std({1}), rush::std(x, 1), std::get<0>(std_mean(x, 1)), std::get<0>(std_mean(x, {1}))}) {
    CHECK(values(t)[0] == 1);
    CHECK(t.sizes() == IntArrayRef(2));
  }
  for (const Tensor& t : {x.var(true), x.var(), x.var({}), x.var(std::nullopt), x.var({0, 1}), var(x, true), var(x),
                          x.std(true).square(), rush::std(x, true).square()}) {
    CHECK(t.item<double>() == doctest::Approx(8));
  }
  CHECK(x.var(false).item<double>() == doctest::Approx(40. / 6));
  // The second argument: `unbiased`, or by how much n is corrected.
  CHECK(values(x.var(0, false)) == Doubles{2.25, 2.25, 9});
  CHECK(values(x.var(0, 0)) == Doubles{2.25, 2.25, 9});
  CHECK(values(x.var({1}, 1)) == values(x.var(1, true)));
  CHECK(values(x.var(1, 2)) == Doubles{2, 14});
  CHECK(values(var(x, 1, 2)) == Doubles{2, 14});
  CHECK(x.var(1, 2, true).sizes() == IntArrayRef({2, 1}));
}

TEST_CASE("sort and argsort: a number is a dimension, true and false are `stable`") {
  const Tensor x = -rows();
  const int64_t dim = 0;
  CHECK(values(std::get<0>(x.sort(0))) == Doubles{-3, -4, -8, 0, -1, -2});
  CHECK(values(x.argsort(0)) == Doubles{1, 1, 1, 0, 0, 0});
  CHECK(values(x.argsort(dim)) == Doubles{1, 1, 1, 0, 0, 0});
  CHECK(values(argsort(x, 0)) == Doubles{1, 1, 1, 0, 0, 0});
  for (const Tensor& along_last : {x.argsort(true), argsort(x, true), x.argsort(false), std::get<1>(x.sort(true)),
                                   std::get<1>(sort(x, true)), std::get<1>(x.sort(std::optional<bool>()))}) {
    CHECK(values(along_last) == Doubles{2, 1, 0, 2, 1, 0});
  }
  CHECK(values(std::get<1>(x.sort(true, 0))) == Doubles{1, 1, 1, 0, 0, 0});
  CHECK(values(std::get<1>(x.sort(0, true))) == Doubles{0, 0, 0, 1, 1, 1});
}

TEST_CASE("braces are a list, also around one number or none") {
  const Tensor x = arange(6);
  CHECK(x.tensor_split({2})[1].numel() == 4);
  CHECK(tensor_split(x, {2})[1].numel() == 4);
  CHECK(x.tensor_split(2)[1].numel() == 3);
  CHECK(x.tensor_split({}).size() == 1);
  CHECK(x.split(2).size() == 3);
  CHECK_THROWS_AS(x.split({2}), ValueError);  // two of six
  CHECK_THROWS_AS(split(x, {2}), ValueError);
  CHECK(x.split({6}).size() == 1);
  const Tensor thin = zeros({1, 2, 1});
  CHECK(thin.squeeze({}).dim() == 3);
  CHECK(squeeze(thin, {}).dim() == 3);
  CHECK(thin.squeeze({0}).sizes() == thin.squeeze(0).sizes());
  CHECK(thin.squeeze({0, 2}).dim() == 1);
  for (const Tensor& t : {thin.any(1), thin.any({1}), any(thin, 1), any(thin, {1}), thin.all(1), thin.all({1}),
                          all(thin, 1), all(thin, {1}), thin.any(1, false)}) {
    CHECK(t.sizes() == IntArrayRef({1, 1}));
  }
  CHECK(thin.any({0, 1}).dim() == 1);
  CHECK(thin.all({}).sizes() == thin.sizes());  // as aten::all.dims: an empty list reduces nothing
  CHECK(values(rows().count_nonzero(0)) == Doubles{1, 2, 2});
  CHECK(values(rows().count_nonzero({0})) == Doubles{1, 2, 2});
  CHECK(values(count_nonzero(rows(), 1)) == Doubles{2, 3});
  CHECK(rows().count_nonzero({0, 1}).item<int64_t>() == 5);
  CHECK(rows().count_nonzero(std::optional<int64_t>()).item<int64_t>() == 5);
  CHECK(values(rows().count_nonzero(std::optional<int64_t>(1))) == Doubles{2, 3});
  CHECK(values(rows().sum({0})) == values(rows().sum(0)));
  CHECK(values(rows().norm(2, {0})) == values(rows().norm(2, 0)));
}

TEST_CASE("zero is a number, never a pointer to text") {
  const Tensor x = rows(), image = ones({1, 1, 2, 2});
  CHECK(linalg_norm(x[0], 0).item<double>() == 2);
  CHECK(linalg_norm(x, "fro").item<double>() == doctest::Approx(std::sqrt(94.)));
  CHECK(linalg_norm(x, std::string("fro")).item<double>() == doctest::Approx(std::sqrt(94.)));
  CHECK(linalg_matrix_norm(x).item<double>() == doctest::Approx(std::sqrt(94.)));
  CHECK(linalg_matrix_norm(x, 1).item<double>() == 10);
  CHECK_THROWS_AS(linalg_matrix_norm(x, 0), ValueError);
  CHECK(conv2d(image, image, {}, 1, 0).numel() == 1);
  CHECK(conv2d(image, image, {}, 1, {0, 0}).numel() == 1);
  CHECK(conv2d(image, image, {}, 1, "same").numel() == 4);
  CHECK(x.index({0}).numel() == 3);
  CHECK(x.index({0, 0}).numel() == 1);
  CHECK(x.index({"...", 0}).numel() == 2);
  CHECK(x.index({indexing::Slice(), 0}).numel() == 2);
  CHECK(x.index({true}).dim() == 3);
}

TEST_CASE("the type of a literal is the type of the tensor") {
  CHECK(full({2}, true).scalar_type() == kBool);
  CHECK(full({2}, 1).scalar_type() == kInt64);
  CHECK(full({2}, 1.0).scalar_type() == kFloat32);
  CHECK(full(2, 3).sizes() == IntArrayRef(2));
  CHECK(values(tensor({1, 2.5, true})) == Doubles{1, 2.5, 1});
  CHECK(tensor({1, 2.5}).scalar_type() == kFloat32);
  CHECK(tensor({true, false}).scalar_type() == kBool);
  CHECK(tensor(std::vector<bool>{true, false}).scalar_type() == kBool);
  CHECK(tensor({1, true}).scalar_type() == kInt64);
  CHECK(where(tensor({true, false}), 1, 0.5).scalar_type() == kFloat32);
  CHECK(where(tensor({true, false}), 1, 0).scalar_type() == kInt64);
  CHECK(values(tensor({-1., .5, 3.}).clamp(0, 1)) == Doubles{0, .5, 1});
  CHECK(values(tensor({-1., .5, 3.}).clamp(std::nullopt, 1)) == Doubles{-1, .5, 1});
  CHECK(rows().to(kCPU, true).is_cpu());
  CHECK(rows().to(kFloat32, true).scalar_type() == kFloat32);
}

// Calls that C++ would accept by a conversion to bool, or with a null pointer as text, if they were not ruled out.
#define RUSH_CALLABLE(name, call) \
  template <class X>              \
  concept name = requires(X x) {  \
    call;                         \
  };
RUSH_CALLABLE(VarOfText, x.var("0"))
RUSH_CALLABLE(VarOfTensor, x.var(x))
RUSH_CALLABLE(MoveToZero, x.to(0))
RUSH_CALLABLE(MoveToName, x.to("cpu"))
RUSH_CALLABLE(NormByText, x.norm("fro"))
RUSH_CALLABLE(AddText, x.add("1"))
RUSH_CALLABLE(FullOfText, full(x.sizes(), "1"))
RUSH_CALLABLE(ArgsortByText, x.argsort("0"))
RUSH_CALLABLE(Kaiser, kaiser_window(4, x))
RUSH_CALLABLE(Hamming, hamming_window(4, x))
#undef RUSH_CALLABLE
static_assert(!VarOfText<Tensor> && !VarOfTensor<Tensor> && !ArgsortByText<Tensor>);
static_assert(!MoveToZero<Tensor> && MoveToName<Tensor>);
static_assert(!NormByText<Tensor> && !AddText<Tensor> && !FullOfText<Tensor>);
static_assert(Kaiser<bool> && !Kaiser<double> && Hamming<bool> && !Hamming<double>);
static_assert(!std::is_convertible_v<int, Tensor> && !std::is_convertible_v<bool, Tensor> &&
              !std::is_convertible_v<std::nullptr_t, Device> && !std::is_convertible_v<bool, TensorOptions>);

}  // namespace
