// PowerSGD's gradients against loops over the numbers of all processes.
#include "nn/parallel/power_sgd.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/distributed/collectives.h"
#include "core/distributed/flight_recorder.h"
#include "core/ops/basic.h"
#include "core/ops/nn/loss.h"
#include "core/ops/random/random_factories.h"
#include "nn/functional.h"
#include "nn/modules.h"
#include "nn/parallel/distributed_data_parallel.h"
#include "optim/optim.h"
#include "tests/distributed/numbers.h"
#include "tests/distributed/rank_inputs.h"

namespace {

using namespace rush;
using namespace rush::distributed;
using nn::parallel::PowerSGDOptions;
using testing::same_bits;

constexpr int64_t kRows = 12, kColumns = 10, kRank = 2, kStart = 2, kSteps = 6;
constexpr uint64_t kSeed = 5;

// ---- the reference: row-major matrices

struct Matrix {
  int64_t rows, columns;
  std::vector<double> values = std::vector<double>(static_cast<size_t>(rows * columns));
  double& at(int64_t i, int64_t j) { return values[static_cast<size_t>(i * columns + j)]; }
  double at(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * columns + j)]; }
};

Matrix matrix_of(const Tensor& tensor) {
  Matrix result{tensor.size(0), tensor.numel() / tensor.size(0)};
  const Tensor values = tensor.to(kFloat64).cpu().contiguous();
  std::copy_n(values.data_ptr<double>(), values.numel(), result.values.begin());
  return result;
}

Matrix transposed(const Matrix& a) {
  Matrix result{a.columns, a.rows};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) result.at(j, i) = a.at(i, j);
  }
  return result;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result{a.rows, b.columns};
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < b.columns; ++j) {
      for (int64_t k = 0; k < a.columns; ++k) result.at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return result;
}

Matrix sum(const Matrix& a, const Matrix& b, double factor) {  // a + factor * b
  Matrix result = a;
  for (size_t i = 0; i < a.values.size(); ++i) result.values[i] += factor * b.values[i];
  return result;
}

Matrix mean(const std::vector<Matrix>& all) {
  Matrix result{all[0].rows, all[0].columns};
  for (const Matrix& each : all) result = sum(result, each, 1.0 / static_cast<double>(all.size()));
  return result;
}

Matrix gram_schmidt(Matrix a) {
  for (int64_t j = 0; j < a.columns; ++j) {
    for (int64_t k = 0; k < j; ++k) {
      double dot = 0;
      for (int64_t i = 0; i < a.rows; ++i) dot += a.at(i, j) * a.at(i, k);
      for (int64_t i = 0; i < a.rows; ++i) a.at(i, j) -= dot * a.at(i, k);
    }
    double square = 0;
    for (int64_t i = 0; i < a.rows; ++i) square += a.at(i, j) * a.at(i, j);
    for (int64_t i = 0; i < a.rows; ++i) a.at(i, j) /= std::sqrt(square);
  }
  return a;
}

// Of one matrix on all processes, from step to step: Vogels et al., Algorithm 1.
struct Reference {
  bool feeds_back = true, is_warm = true;
  Generator generator = make_generator<CPUGeneratorImpl>(kSeed);
  std::vector<Matrix> errors;
  std::optional<Matrix> q;

  Matrix step(std::vector<Matrix> all) {
    for (size_t i = 0; i < errors.size(); ++i) all[i] = sum(all[i], errors[i], 1);
    if (!q || !is_warm) q = matrix_of(testing::here(randn({kColumns, kRank}, generator, TensorOptions(kCPU))));
    std::vector<Matrix> ps, qs;
    for (const Matrix& m : all) ps.push_back(product(m, gram_schmidt(*q)));
    const Matrix p = gram_schmidt(mean(ps));
    for (const Matrix& m : all) qs.push_back(product(transposed(m), p));
    q = mean(qs);
    const Matrix result = product(p, transposed(*q));
    errors.clear();
    if (!feeds_back) return result;
    for (const Matrix& m : all) errors.push_back(sum(m, result, -1));
    return result;
  }
};

// ---- the hook

// The gradients of its parameters are what it is called with.
struct GivenImpl : nn::Module {
  explicit GivenImpl(ScalarType dtype) {
    wide = register_parameter("wide", ones({kRows, 5, 2}, dtype));
    narrow = register_parameter("narrow", ones({3, 3}, dtype));
    vector = register_parameter("vector", ones({7}, dtype));
  }
  Tensor forward(const Tensor& of_wide, const Tensor& of_narrow, const Tensor& of_vector) {
    return (wide * of_wide).sum() + (narrow * of_narrow).sum() + (vector * of_vector).sum();
  }
  Tensor wide, narrow, vector;
};
RUSH_MODULE(Given);

Tensor gradient_of(int rank, int64_t step, IntArrayRef sizes) {
  return testing::seeded_randn(sizes, static_cast<uint64_t>(100 * step + rank + sizes[0]));
}

Tensor mean_of(int64_t step, IntArrayRef sizes) {
  std::vector<Tensor> all;
  for (int rank = 0; rank < get_world_size(); ++rank) all.push_back(gradient_of(rank, step, sizes));
  return stack(all).mean(0);
}

PowerSGDOptions options_for(bool feeds_back, bool is_warm) {
  return PowerSGDOptions()
      .matrix_approximation_rank(kRank)
      .start_powerSGD_iter(kStart)
      .use_error_feedback(feeds_back)
      .warm_start(is_warm)
      .random_seed(kSeed);
}

void check_steps(bool feeds_back, bool is_warm) {
  Given inner(kFloat32);
  nn::DistributedDataParallel net(inner);
  net->register_comm_hook(nn::parallel::powerSGD_hook(options_for(feeds_back, is_warm)));
  Reference reference;
  reference.feeds_back = feeds_back;
  reference.is_warm = is_warm;
  for (int64_t step = 0; step < kSteps; ++step) {
    CAPTURE(step);
    net->zero_grad();
    const auto mine = [&](IntArrayRef sizes) { return gradient_of(get_rank(), step, sizes); };
    net(mine({kRows, 5, 2}), mine({3, 3}), mine({7})).backward();
    CHECK(allclose(inner->narrow.grad(), mean_of(step, {3, 3}), 1e-5, 1e-6));
    CHECK(allclose(inner->vector.grad(), mean_of(step, {7}), 1e-5, 1e-6));
    if (step < kStart) {
      CHECK(allclose(inner->wide.grad(), mean_of(step, {kRows, 5, 2}), 1e-5, 1e-6));
      continue;
    }
    std::vector<Matrix> all;
    for (int rank = 0; rank < get_world_size(); ++rank)
      all.push_back(matrix_of(gradient_of(rank, step, {kRows, 5, 2})));
    const Matrix expected = reference.step(all), result = matrix_of(inner->wide.grad());
    for (size_t i = 0; i < expected.values.size(); ++i) CHECK(std::abs(result.values[i] - expected.values[i]) < 1e-4);
  }
}

TEST_CASE("gradients are the products of the paper's narrow matrices") {
  for (const bool feeds_back : {true, false}) {
    for (const bool is_warm : {true, false}) {
      CAPTURE(feeds_back);
      CAPTURE(is_warm);
      check_steps(feeds_back, is_warm);
    }
  }
}

TEST_CASE("matrices are compressed where that saves as much as is asked for, and travel in fewer numbers") {
  const auto sent = [](double rate) {
    nn::DistributedDataParallel net{Given(kFloat32)};
    net->register_comm_hook(nn::parallel::powerSGD_hook(options_for(true, true).min_compression_rate(rate)));
    for (int64_t step = 0; step <= kStart; ++step) {
      flight_recorder().clear();
      net(ones({kRows, 5, 2}), ones({3, 3}), ones({7})).backward();
    }
    int64_t elements = 0;
    for (const CollectiveRecord& record : flight_recorder().records()) elements += record.elements;
    return elements;
  };
  const int64_t whole = kRows * kColumns + 9 + 7, compressed = (kRows + kColumns) * kRank + 9 + 7;
  CHECK(sent(2.0) == compressed);
  CHECK(sent(3.0) == whole);  // 120 / 44 elements are less than 3
  CHECK(sent(0.5) == compressed - 9 + 6 * kRank);
}

TEST_CASE("gradients in bfloat16 are compressed in float32") {
  Given inner(kBFloat16);
  nn::DistributedDataParallel net(inner);
  net->register_comm_hook(nn::parallel::powerSGD_hook(options_for(true, true)));
  const auto rank_one = [](int rank) {
    return arange(kRows).add(rank + 1).unsqueeze(1).mul(arange(kColumns).add(1)).view({kRows, 5, 2}).to(kBFloat16);
  };
  for (int64_t step = 0; step <= kStart; ++step) {
    net->zero_grad();
    net(rank_one(get_rank()), ones({3, 3}, kBFloat16), ones({7}, kBFloat16)).backward();
  }
  Tensor expected = zeros({kRows, 5, 2});
  for (int rank = 0; rank < get_world_size(); ++rank) expected += rank_one(rank).to(kFloat32) / get_world_size();
  CHECK(allclose(inner->wide.grad().to(kFloat32), expected, 0.01, 0.01));
}

TEST_CASE("a net that is trained with compressed gradients comes near the losses of one that is not") {
  const auto train = [](bool compresses) {
    manual_seed(1);
    nn::DistributedDataParallel net(nn::Sequential(nn::Linear(16, 64), nn::Tanh(), nn::Linear(64, 8)));
    const auto options = PowerSGDOptions().matrix_approximation_rank(2).start_powerSGD_iter(5);
    if (compresses) net->register_comm_hook(nn::parallel::powerSGD_hook(options));
    optim::SGD optimizer(net->parameters(), optim::SGDOptions(0.1).momentum(0.9));
    double loss_of_all = 0;
    for (int64_t step = 0; step < 150; ++step) {
      const Tensor x = gradient_of(get_rank(), step, {32, 16});
      optimizer.zero_grad();
      Tensor loss = nn::functional::mse_loss(net(x), x.narrow(1, 0, 8).sin());
      loss.backward();
      optimizer.step();
      loss = loss.detach();
      all_reduce(loss, ReduceOp::AVG);
      loss_of_all = loss.item<double>();
    }
    for (const Tensor& parameter : net->parameters()) {
      Tensor first = parameter.detach().clone();
      broadcast(first, 0);
      CHECK(same_bits(parameter.detach(), first));
    }
    return loss_of_all;
  };
  const double exact = train(false), compressed = train(true);
  CHECK(exact < 0.1);
  CHECK(compressed < 1.1 * exact);
}

TEST_CASE("options that make no sense are refused") {
  using nn::parallel::powerSGD_hook;
  CHECK_THROWS_WITH_AS(powerSGD_hook(PowerSGDOptions().matrix_approximation_rank(0)), doctest::Contains("at least 1"),
                       ValueError);
  CHECK_THROWS_WITH_AS(powerSGD_hook(PowerSGDOptions().start_powerSGD_iter(1)), doctest::Contains("at least 2"),
                       ValueError);
  CHECK_THROWS_WITH_AS(powerSGD_hook(PowerSGDOptions().min_compression_rate(0)), doctest::Contains("more than 0"),
                       ValueError);
}

}  // namespace
