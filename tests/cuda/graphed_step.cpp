// Whole training steps as CUDA graphs, with the optimisers that can be captured: they are those outside of a graph.
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>

#include "tests/cuda/graph_testing.h"

using namespace rush;
using namespace rush::testing;
using cuda::CUDAGraph;
namespace F = nn::functional;

namespace {

struct Run {
  std::vector<double> losses;
  std::vector<Tensor> params;
};

using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)>;

std::vector<Tensor> some_params() {
  manual_seed(11);
  std::vector<Tensor> params;
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{37, 5}, {5}, {}, {100'003}}) {
    params.push_back(randn(sizes, on_gpu()).requires_grad_());
  }
  return params;
}

// A hundred steps, under a schedule; `graphed`: as a graph after the warm-up.
Run hundred_steps(const MakeOptimizer& make, bool graphed) {
  Run run{{}, some_params()};
  const auto optimizer = make(run.params);
  optim::ExponentialLR schedule(*optimizer, 0.97);
  const auto take = [&](const Tensor& x) {
    optimizer->zero_grad();
    Tensor loss = zeros({}, on_gpu());
    for (const Tensor& p : run.params) loss = loss + (p * x - 0.5).square().sum() / 100;
    loss.backward();
    optimizer->step();
    return loss;
  };
  cuda::GraphedStep graph(take);
  for (int i = 0; i < 100; ++i) {
    const Tensor x = full({}, 1 + 0.01 * (i % 3), on_gpu());
    run.losses.push_back((graphed ? graph(x) : take(x)).item<double>());
    schedule.step();
  }
  CHECK(graph.captured() == (graphed ? 1u : 0u));
  return run;
}

template <class Kind, class Options>
MakeOptimizer with(const Options& options) {
  return [options](const std::vector<Tensor>& params) { return std::make_unique<Kind>(params, options); };
}

// What steps by the device's numbers differ in from those by the host's: nothing, or last bits, of powers and
// quotients, or where a compiler is free to choose which of two products it adds unrounded.
enum class Corrections { None, Rounded };

template <class Kind, class Options>
void check_graphed(const Options& options, Corrections corrections) {
  CAPTURE(std::string(typeid(Kind).name()));
  const Run eager = hundred_steps(with<Kind>(Options(options).capturable(true)), false);
  const Run graphed = hundred_steps(with<Kind>(Options(options).capturable(true)), true);
  check_equal_lists(graphed.losses, eager.losses);
  check_equal_lists(graphed.params, eager.params);
  CHECK(eager.losses.back() < eager.losses.front());
  // The same steps by the host's numbers.
  const Run usual = hundred_steps(with<Kind>(options), false);
  const bool exact = corrections == Corrections::None;
  for (size_t i = 0; i < usual.params.size(); ++i) {
    CAPTURE(i);
    CAPTURE((graphed.params[i] - usual.params[i]).abs().max().item<double>());
    CHECK(allclose(graphed.params[i], usual.params[i], exact ? 0 : 1e-5, exact ? 0 : 1e-6));
  }
}

}  // namespace

TEST_CASE("a hundred steps of capturable optimisers in a graph are those outside" *
          doctest::skip(nothing_is_cached())) {
  using namespace optim;
  check_graphed<SGD>(SGDOptions(0.1), Corrections::None);
  check_graphed<SGD>(SGDOptions(0.05).momentum(0.9).dampening(0.3).weight_decay(0.01), Corrections::None);
  check_graphed<SGD>(SGDOptions(0.05).momentum(0.9).nesterov(true), Corrections::None);
  check_graphed<Adam>(AdamOptions(0.02).weight_decay(0.01), Corrections::Rounded);
  check_graphed<Adam>(AdamOptions(0.02).amsgrad(true), Corrections::Rounded);
  check_graphed<AdamW>(AdamWOptions(0.02), Corrections::Rounded);
  check_graphed<Adadelta>(AdadeltaOptions(1.0).weight_decay(0.01), Corrections::None);
  check_graphed<RMSprop>(RMSpropOptions(0.01).weight_decay(0.01), Corrections::Rounded);
  check_graphed<RMSprop>(RMSpropOptions(0.002).momentum(0.5), Corrections::Rounded);
  check_graphed<RMSprop>(RMSpropOptions(0.002).momentum(0.5).centered(true).eps(1e-3), Corrections::Rounded);
  check_graphed<Adagrad>(AdagradOptions(0.1).initial_accumulator_value(0.1), Corrections::None);
  check_graphed<Adagrad>(AdagradOptions(0.1).lr_decay(0.05), Corrections::Rounded);
  check_graphed<NAdam>(NAdamOptions(0.02).weight_decay(0.01), Corrections::Rounded);
  check_graphed<NAdam>(NAdamOptions(0.02).weight_decay(0.1).decoupled_weight_decay(true), Corrections::Rounded);
  check_graphed<RAdam>(RAdamOptions(0.02).weight_decay(0.01), Corrections::Rounded);  // rectified from step 6 on
  check_graphed<Adamax>(AdamaxOptions(0.02).weight_decay(0.01), Corrections::Rounded);
  check_graphed<ASGD>(ASGDOptions(0.05).lambd(0.01).t0(20), Corrections::Rounded);
  check_graphed<Rprop>(RpropOptions(0.01), Corrections::None);
}

TEST_CASE("a learning rate that is set between replays counts" * doctest::skip(nothing_is_cached())) {
  const Tensor w = zeros({4}, on_gpu()).requires_grad_();
  auto optimizer = std::make_unique<optim::SGD>(std::vector<Tensor>{w}, optim::SGDOptions(1).capturable(true));
  cuda::GraphedStep step(
      [&] {
        optimizer->zero_grad();
        w.sum().backward();
        optimizer->step();
        return Tensor();
      },
      {.warmup = 1});
  step();
  CHECK(w[0].item<float>() == -1);
  step();
  CHECK(w[0].item<float>() == -2);
  optimizer->param_groups()[0].options().set_lr(10);
  step();
  CHECK(w[0].item<float>() == -12);
  // The optimiser may move.
  optim::SGD moved(std::move(*optimizer));
  optimizer.reset();
  moved.param_groups()[0].options().set_lr(100);
  const int64_t version = w._version();
  step();
  CHECK(w[0].item<float>() == -112);
  CHECK(w._version() > version);  // what autograd saved of it is out of date
}

TEST_CASE("an optimiser that cannot be captured, or has no state yet, says so" * doctest::skip(nothing_is_cached())) {
  const Tensor w = ones({4}, on_gpu()).requires_grad_();
  w.mutable_grad() = ones({4}, on_gpu());
  optim::Adam usual({w}, optim::AdamOptions(0.1)), fresh({w}, optim::AdamOptions(0.1).capturable(true));
  usual.step();
  CUDAGraph g;
  const auto capture = [&](optim::Optimizer& optimizer) {
    const cuda::graph scope(g);
    optimizer.step();
  };
  CHECK_THROWS_AS(capture(usual), Error);
  CHECK_THROWS_AS(capture(fresh), Error);
  fresh.step();
  capture(fresh);
  const int64_t steps = fresh.state_dict()["state.0.step"].item<int64_t>();
  CHECK(steps == 1);
  g.replay();
  CHECK(fresh.state_dict()["state.0.step"].item<int64_t>() == 2);
}

namespace {

// The parameters after three steps of one optimiser and three of another, which takes over the state of the first.
template <class Kind, class Options>
std::vector<Tensor> six_steps(bool first_capturable, bool then_capturable) {
  const std::vector<Tensor> params = some_params();
  const auto take = [&](Kind& optimizer) {
    for (int i = 0; i < 3; ++i) {
      for (const Tensor& p : params) p.mutable_grad() = p.detach() * 0.5;
      optimizer.step();
    }
  };
  Kind first(params, Options(0.1).capturable(first_capturable)), then(params, Options(0.1).capturable(then_capturable));
  take(first);
  then.load_state_dict(first.state_dict());
  take(then);
  CHECK(then.state_dict()["state.0.step"].template item<int64_t>() == 6);
  return params;
}

template <class Kind, class Options>
void check_states_fit() {
  const std::vector<Tensor> expected = six_steps<Kind, Options>(false, false);
  for (const auto& [first, then] : {std::pair(true, false), std::pair(false, true), std::pair(true, true)}) {
    const std::vector<Tensor> got = six_steps<Kind, Options>(first, then);
    for (size_t i = 0; i < got.size(); ++i) CHECK(allclose(got[i], expected[i], 1e-5, 1e-6));
  }
}

}  // namespace

TEST_CASE("a capturable optimiser and a usual one go on with each other's states" *
          doctest::skip(nothing_is_cached())) {
  using namespace optim;
  check_states_fit<Adam, AdamOptions>();
  check_states_fit<NAdam, NAdamOptions>();  // has the product of the momenta, too
  check_states_fit<RAdam, RAdamOptions>();
  check_states_fit<RMSprop, RMSpropOptions>();
  check_states_fit<Adagrad, AdagradOptions>();
}

TEST_CASE("capturable steps of more parameters than one launch takes are the usual ones" *
          doctest::skip(nothing_is_cached())) {
  const auto train = [](bool capturable) {
    std::vector<Tensor> params;
    for (int64_t i = 0; i < 700; ++i) {
      params.push_back(full({1 + i % 7}, 0.01 * static_cast<double>(i), on_gpu()).requires_grad_());
    }
    optim::NAdam optimizer(params, optim::NAdamOptions(0.1).capturable(capturable));
    for (int step = 0; step < 3; ++step) {
      for (const Tensor& p : params) p.mutable_grad() = p.detach() * 0.5 - 1;
      optimizer.step();
    }
    return cat(params).detach();
  };
  CHECK(allclose(train(true), train(false), 1e-5, 1e-6));
}

TEST_CASE("a step that is told of an overflow changes neither parameters nor states" *
          doctest::skip(nothing_is_cached())) {
  using namespace optim;
  const auto check = [](const MakeOptimizer& make) {
    const std::vector<Tensor> params = some_params();
    for (const Tensor& p : params) p.mutable_grad() = p.detach() * 0.5;
    const auto optimizer = make(params);
    optimizer->step();
    std::vector<Tensor> before;
    for (const Tensor& p : params) before.push_back(p.detach().clone());
    const auto copy = [&] {
      std::vector<Tensor> values;
      for (const auto& entry : optimizer->state_dict()) values.push_back(entry.value().clone());
      return values;
    };
    const std::vector<Tensor> state = copy();
    optimizer->set_found_inf(ones({}, on_gpu()));
    optimizer->step();
    check_equal_lists(params, before);
    check_equal_lists(copy(), state);
    optimizer->set_found_inf(zeros({}, on_gpu()));
    optimizer->step();
    CHECK_FALSE(equal(params[0], before[0]));
  };
  check(with<SGD>(SGDOptions(0.1).momentum(0.9).capturable(true)));
  check(with<Adam>(AdamOptions(0.1).capturable(true)));
  check(with<Adadelta>(AdadeltaOptions(1).capturable(true)));
  check(with<RMSprop>(RMSpropOptions(0.1).capturable(true)));
  check(with<Adagrad>(AdagradOptions(0.1).capturable(true)));
  check(with<NAdam>(NAdamOptions(0.1).capturable(true)));
  check(with<RAdam>(RAdamOptions(0.1).capturable(true)));
}

TEST_CASE("a gradient scaler in a graph skips the steps that it skips outside" * doctest::skip(nothing_is_cached())) {
  struct Result {
    std::vector<double> weights, scales;
    std::vector<bool> skipped;
  };
  enum class Way { Usual, Capturable, Graphed };
  const auto train = [](Way way) {
    const Tensor w = full({1000}, 1, on_gpu()).requires_grad_();
    const bool capturable = way != Way::Usual;
    optim::SGD optimizer({w}, optim::SGDOptions(0.25).momentum(0.5).capturable(capturable));
    amp::GradScaler scaler(amp::GradScalerOptions().init_scale(1024).growth_interval(3));
    const auto take = [&](const Tensor& x) {
      optimizer.zero_grad();
      const Tensor loss = (w * x).mean();
      scaler.scale(loss).backward();
      scaler.step(optimizer);
      scaler.update();
      return loss;
    };
    cuda::GraphedStep graph(take, {.warmup = 2});
    Result result;
    for (int i = 0; i < 20; ++i) {
      // The first step, and two later ones.
      const double factor = i == 0 || i == 7 || i == 12 ? std::numeric_limits<double>::infinity() : 1 + i;
      const Tensor x = full({1000}, factor, on_gpu());
      way == Way::Graphed ? graph(x) : take(x);
      result.weights.push_back(w.detach().sum().item<double>());
      result.scales.push_back(scaler.get_scale());
      result.skipped.push_back(scaler.step_was_skipped(optimizer));
    }
    return result;
  };
  const Result usual = train(Way::Usual), capturable = train(Way::Capturable), graphed = train(Way::Graphed);
  check_equal_lists(graphed.weights, capturable.weights);
  check_equal_lists(graphed.scales, capturable.scales);
  CHECK(graphed.skipped == capturable.skipped);
  CHECK(graphed.skipped == usual.skipped);
  check_equal_lists(graphed.scales, usual.scales);
  CHECK(graphed.skipped[7]);
  CHECK(graphed.weights[7] == graphed.weights[6]);
}

namespace {

struct SmallNetImpl : nn::Module {
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::BatchNorm2d norm{nullptr};
  nn::Dropout drop{nullptr};
  nn::Linear fc{nullptr};
  SmallNetImpl() {
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(1, 8, 3).padding(1)));
    norm = register_module("norm", nn::BatchNorm2d(8));
    conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(8, 16, 3).padding(1)));
    drop = register_module("drop", nn::Dropout(0.25));
    fc = register_module("fc", nn::Linear(16 * 49, 10));
  }
  Tensor forward(const Tensor& x) {  // (N, 1, 14, 14)
    const Tensor a = relu(norm(conv1(x)));
    const Tensor b = max_pool2d(relu(conv2(a)), 2);  // (N, 16, 7, 7)
    return fc(drop(b.flatten(1)));
  }
};
RUSH_MODULE(SmallNet);

// Twenty steps of a whole training loop; some batches are smaller.
Run train_small_net(bool graphed, std::optional<ScalarType> lower = std::nullopt) {
  manual_seed(21);
  SmallNet net;
  net->to(kCUDA);
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(0.01).capturable(true));
  amp::GradScaler scaler(amp::GradScalerOptions().enabled(lower == kFloat16));
  optim::StepLR schedule(optimizer, 7, 0.5);
  const Tensor images = randn({16 * 5, 1, 14, 14}), digits = randint(0, 10, {16 * 5}, TensorOptions(kInt64));
  const auto take = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const autocast::Autocast scope(kCUDA, lower, lower.has_value());
      loss = F::cross_entropy(net(x), y);
    }
    scaler.scale(loss).backward();
    scaler.unscale_(optimizer);
    const Tensor norm = nn::utils::get_total_norm(nn::utils::gradients_of(net->parameters()));
    nn::utils::clip_grads_with_norm_(net->parameters(), 0.5, norm);
    scaler.step(optimizer);
    scaler.update();
    return loss;
  };
  cuda::GraphedStep graph(take);
  Run run;
  for (int i = 0; i < 20; ++i) {
    const int64_t count = i % 5 == 4 ? 10 : 16;
    const Tensor x = images.narrow(0, 16 * (i % 5), count), y = digits.narrow(0, 16 * (i % 5), count);
    run.losses.push_back((graphed ? graph(x, y) : take(x.cuda(), y.cuda())).item<double>());
    schedule.step();
  }
  CHECK(graph.captured() == (graphed ? 2u : 0u));
  for (const Tensor& p : net->parameters()) run.params.push_back(p.detach());
  for (const Tensor& b : net->buffers()) run.params.push_back(b);
  return run;
}

}  // namespace

TEST_CASE("training as a graph gives the losses and weights of training without" * doctest::skip(nothing_is_cached())) {
  Context& context = globalContext();
  const bool before = context.deterministicCuDNN();
  context.setDeterministicCuDNN(true);
  for (const std::optional<ScalarType> lower :
       {std::optional<ScalarType>(), std::optional(kBFloat16), std::optional(kFloat16)}) {
    const Run eager = train_small_net(false, lower), again = train_small_net(false, lower);
    check_equal_lists(again.losses, eager.losses);  // or there is nothing to compare
    const Run graphed = train_small_net(true, lower);
    check_equal_lists(graphed.losses, eager.losses);
    check_equal_lists(graphed.params, eager.params);
    CHECK(eager.losses[15] < eager.losses[0]);
  }
  context.setDeterministicCuDNN(before);
}

TEST_CASE("a step that is captured leaves aside what an earlier graph of autograd knows" *
          doctest::skip(nothing_is_cached())) {
  // An accumulator that is alive since a forward pass on the default stream.
  const Tensor w = ones({8}, on_gpu()).requires_grad_();
  const Tensor kept = (w * 2).sum();
  optim::SGD optimizer({w}, optim::SGDOptions(1).capturable(true));
  cuda::GraphedStep step(
      [&](const Tensor& x) {
        optimizer.zero_grad();
        const Tensor loss = (w * x).sum();
        loss.backward();
        optimizer.step();
        return loss;
      },
      {.warmup = 1});
  for (int i = 0; i < 4; ++i) step(ones({8}, on_gpu()));
  CHECK(w[0].item<float>() == 1 - 4);
  CHECK(w.grad()[0].item<float>() == 1);
  CHECK(kept.item<float>() == 16);
}

TEST_CASE("a step that waits for the device is refused when it is captured" * doctest::skip(nothing_is_cached())) {
  const Tensor w = ones({8}, on_gpu());
  cuda::GraphedStep step([&](const Tensor& x) { return w * x.sum().item<double>(); }, {.warmup = 1});
  CHECK(step(ones({8}, on_gpu()))[0].item<float>() == 8);
  check_refused([&] { step(ones({8}, on_gpu())); }, {"CUDA graph", "aten::_to_copy"});
  CHECK(step.captured() == 0);
  CHECK((w + 1).sum().item<float>() == 16);
}
