// What the modules' fixtures leave out: dropout, options of their own, bad input.
#include "nn/functional.h"

#include <doctest/doctest.h>

#include "rushlight.h"
#include "tests/warnings.h"

namespace {

using namespace rush;
namespace F = rush::nn::functional;

TEST_CASE("dropout keeps the mean while training, and does nothing otherwise") {
  manual_seed(0);
  const Tensor x = ones({100, 100});
  const Tensor y = F::dropout(x, F::DropoutFuncOptions().p(0.25));
  CHECK(y.max().item<double>() == doctest::Approx(1 / 0.75));
  CHECK(y.eq(0).sum().item<int64_t>() == doctest::Approx(2500).epsilon(0.1));
  CHECK(F::dropout(x, F::DropoutFuncOptions().p(0.25).training(false)).is_same(x));
  CHECK(F::dropout(x, F::DropoutFuncOptions().p(1)).abs().sum().item<double>() == 0);
  nn::Dropout module(0.5);
  CHECK(module(x).eq(0).any().item<bool>());
  module->eval();
  CHECK(!module(x).eq(0).any().item<bool>());
  Tensor z = ones({10, 10});
  F::dropout(z, F::DropoutFuncOptions().inplace(true));
  CHECK(z.eq(0).any().item<bool>());
  CHECK_THROWS_AS(F::dropout(x, F::DropoutFuncOptions().p(-0.1)), ValueError);
}

TEST_CASE("dropout2d drops whole channels") {
  manual_seed(1);
  const Tensor y = F::dropout2d(ones({20, 30, 2, 3}));
  const Tensor per_channel = y.sum(IntArrayRef({2, 3}));  // 0, or 6 elements of 2
  CHECK((per_channel.eq(0) + per_channel.eq(12)).all().item<bool>());
  CHECK(per_channel.eq(0).sum().item<int64_t>() == doctest::Approx(300).epsilon(0.2));
}

// As PyTorch takes them: 2d has a row of elements for a channel, 3d a vector of them for one without a batch.
TEST_CASE("dropout2d and dropout3d warn of inputs of other dimensions, and dropout1d refuses them") {
  manual_seed(1);
  const rush::testing::Warnings warnings;
  const auto is_whole = [](const Tensor& sums, double size) { return (sums.eq(0) + sums.eq(2 * size)).all(); };
  const Tensor x = ones({8, 30, 5}), elements = F::dropout2d(ones({30, 30}));
  CHECK(is_whole(elements, 1).item<bool>());
  CHECK(warnings.last().find("dropout2d: an input of 3 or 4 dimensions") == 0);
  const Tensor y = F::dropout3d(x);
  CHECK(warnings.last().find("dropout3d: an input of 4 or 5 dimensions") == 0);
  CHECK(is_whole(y.sum(IntArrayRef({1, 2})), 150).item<bool>());
  CHECK(y.eq(0).any().item<bool>());
  CHECK_THROWS_AS(F::dropout1d(ones({2, 2, 2, 2})), ValueError);
}

TEST_CASE("in-place activations write their input") {
  Tensor x = tensor({-1., 2.});
  CHECK(F::relu(x, F::ReLUFuncOptions().inplace(true)).is_same(x));
  CHECK(x[0].item<double>() == 0);
  nn::Sequential net(nn::Linear(2, 2), nn::ReLU(nn::ReLUOptions(true)));
  net(ones({1, 2})).sum().backward();
  CHECK(net->parameters()[0].grad().defined());
}

TEST_CASE("softmax computes in the dtype that is asked for") {
  CHECK(F::softmax(ones(4), F::SoftmaxFuncOptions(0).dtype(kFloat64)).scalar_type() == kFloat64);
  CHECK(F::log_softmax(ones(4), F::LogSoftmaxFuncOptions(0)).scalar_type() == kFloat32);
}

TEST_CASE("pad") {
  const Tensor x = tensor({1., 2., 3.}).view({1, 3});
  const auto row = [&](const F::PadFuncOptions& options) {
    const Tensor y = F::pad(x, options);
    std::vector<double> values;
    for (int64_t i = 0; i < y.size(1); ++i) values.push_back(y[0][i].item<double>());
    return values;
  };
  using Row = std::vector<double>;
  CHECK(row(F::PadFuncOptions({1, 2}).value(9)) == Row{9, 1, 2, 3, 9, 9});
  CHECK(row(F::PadFuncOptions({2, 2}).mode(kReflect)) == Row{3, 2, 1, 2, 3, 2, 1});
  CHECK(row(F::PadFuncOptions({2, 1}).mode(kReplicate)) == Row{1, 1, 1, 2, 3, 3});
  CHECK(row(F::PadFuncOptions({1, 2}).mode(kCircular)) == Row{3, 1, 2, 3, 1, 2});
  CHECK(row(F::PadFuncOptions({-1, 0})) == Row{2, 3});
  CHECK_THROWS_AS(F::pad(x, F::PadFuncOptions({3, 0}).mode(kReflect)), Error);
}

TEST_CASE("normalize, one_hot, bilinear") {
  const Tensor y = F::normalize(tensor({3., 4., 0., 0.}).view({2, 2}));
  CHECK(y[0][1].item<double>() == doctest::Approx(0.8));
  CHECK(y[1][0].item<double>() == 0);
  const Tensor hot = F::one_hot(tensor({2, 0}), 4);
  CHECK(hot.sizes() == IntArrayRef({2, 4}));
  CHECK(hot[0][2].item<int64_t>() == 1);
  CHECK(hot.sum().item<int64_t>() == 2);
  CHECK(F::bilinear(ones({5, 2}), ones({5, 3}), ones({4, 2, 3}))[0][0].item<double>() == 6);
}

TEST_CASE("embedding checks its padding, batch_norm and instance_norm their batch") {
  CHECK_THROWS_AS(F::embedding(tensor({0}), ones({2, 2}), F::EmbeddingFuncOptions().padding_idx(2)), ValueError);
  CHECK_THROWS_AS(F::batch_norm(ones({1, 2}), {}, {}, F::BatchNormFuncOptions().training(true)), ValueError);
  CHECK_THROWS_AS(F::batch_norm_relu(ones({1, 2}), {}, {}, {}, F::BatchNormFuncOptions().training(true)), ValueError);
  CHECK_THROWS_AS(F::batch_norm(ones(2), {}, {}), ValueError);
  CHECK(F::batch_norm(ones({1, 0, 2}), {}, {}, F::BatchNormFuncOptions().training(true)).numel() == 0);
  CHECK_THROWS_AS(F::instance_norm(ones({2, 3, 1, 1})), ValueError);
  CHECK(F::instance_norm(ones({0, 3, 4, 4})).sizes() == IntArrayRef({0, 3, 4, 4}));
  CHECK_THROWS_AS(F::cross_entropy(ones({2, 3}), tensor({0, 5})), Error);
}

}  // namespace
