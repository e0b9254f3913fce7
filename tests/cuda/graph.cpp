// CUDA graphs: what is replayed is what the same calls do outside of a graph, and what cannot be captured is refused
// while the capture goes on.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>

#include "backends/cuda/cuda.h"
#include "core/ops/pinned.h"
#include "rushlight.h"
#include "tests/cuda/caching.h"
#include "tests/temporary_folder.h"

using namespace rush;
using cuda::CUDAGraph;
namespace F = nn::functional;

namespace {

TensorOptions on_gpu(ScalarType dtype = kFloat32) { return TensorOptions(dtype).device(kCUDA); }

using Function = std::function<Tensor(const Tensor&)>;

// fn(input) as a graph, after one call of it on the captured stream.
struct Captured {
  Captured(const Tensor& sample, const Function& fn) : input(sample.clone()) {
    cuda::synchronize();
    {
      const StreamGuard on(cuda::capture_stream());
      fn(input);
    }
    const cuda::graph capture(graph);
    output = fn(input);
  }
  Tensor operator()(const Tensor& x) {
    input.copy_(x);
    graph.replay();
    return output;
  }

  Tensor input, output;
  CUDAGraph graph;
};

void check_replays(const Tensor& sample, const Function& fn) {
  Captured captured(sample, fn);
  for (int i = 0; i < 3; ++i) {
    const Tensor x = sample * (i - 1.5);
    CHECK(equal(captured(x), fn(x)));
  }
}

// Calls `fn`, which must be refused with a message that has all `parts`.
void check_refused(const std::function<void()>& fn, std::initializer_list<const char*> parts) {
  try {
    fn();
    FAIL("expected a CudaError");
  } catch (const CudaError& error) {
    const std::string message = error.what();
    for (const char* part : parts) CHECK_MESSAGE(message.find(part) != message.npos, message);
  }
}

template <class List>
void check_equal_lists(const List& a, const List& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    INFO(i);
    if constexpr (std::is_same_v<typename List::value_type, Tensor>) {
      CHECK(equal(a[i], b[i]));
    } else {
      CHECK(a[i] == b[i]);
    }
  }
}

}  // namespace

TEST_CASE("without a GPU graphs say what is missing, and nobody is capturing" * doctest::skip(cuda::is_available())) {
  CHECK_FALSE(cuda::is_current_stream_capturing());
  CHECK_THROWS_AS(CUDAGraph(), CudaError);
  CHECK_THROWS_AS(cuda::graph_pool_handle(), CudaError);
  CHECK_THROWS_AS(cuda::before_replay(nullptr), Error);
}

TEST_CASE("a replay does what the calls did" * doctest::skip(testing::nothing_is_cached())) {
  manual_seed(1);
  const Tensor x = randn({33, 65}, on_gpu()), w = randn({65, 40}, on_gpu()), b = randn({40}, on_gpu());
  check_replays(x, [](const Tensor& t) { return ((t * 2 + 1).sin() - t).sum(1); });
  check_replays(x, [&](const Tensor& t) { return mm(t, w).relu(); });
  check_replays(x, [&](const Tensor& t) { return linear(t, w.t().contiguous(), b); });
  check_replays(x.to(kBFloat16), [&](const Tensor& t) { return softmax(mm(t, w.to(kBFloat16)), 1); });
  check_replays(x, [](const Tensor& t) { return std::get<0>(t.sort(1)).cumsum(0); });
  check_replays(x, [](const Tensor& t) { return t.narrow(1, 3, 50).t().contiguous().flip({0}); });
  const Tensor image = randn({2, 3, 16, 16}, on_gpu()), kernel = randn({4, 3, 3, 3}, on_gpu());
  check_replays(image, [&](const Tensor& t) { return F::max_pool2d(conv2d(t, kernel), F::MaxPool2dFuncOptions(2)); });
}

TEST_CASE("kernels find errors in a replay too" * doctest::skip(testing::nothing_is_cached())) {
  const Tensor table = arange(10, on_gpu());
  Captured captured(zeros({4}, on_gpu(kInt64)), [&](const Tensor& i) { return table.index_select(0, i); });
  CHECK(captured(full({4}, 9, on_gpu(kInt64))).sum().item<float>() == 36);
  captured(full({4}, 10, on_gpu(kInt64)));
  CHECK_THROWS_AS(cuda::synchronize(), IndexError);
  CHECK(captured(full({4}, 8, on_gpu(kInt64))).sum().item<float>() == 32);
}

TEST_CASE("random numbers in a graph are those of the same calls outside" *
          doctest::skip(testing::nothing_is_cached())) {
  const Tensor x = ones({1000}, on_gpu());
  const Function draws[] = {
      [](const Tensor& t) { return dropout(t, 0.3, true); },
      [](const Tensor& t) { return dropout(t.sin() * 2, 0.3, true); },  // after memory was freed
      [](const Tensor& t) { return dropout(randn_like(t), 0.5, true) + rand_like(t); },
      [](const Tensor& t) { return t + randperm(1000, on_gpu(kInt64)) + randint(0, 9, {1000}, on_gpu(kInt64)); },
      [](const Tensor& t) { return empty_like(t).exponential_(2).bernoulli_(0.4); },
  };
  for (const Function& draw : draws) {
    Captured captured(x, draw);
    manual_seed(7);
    std::vector<Tensor> eager, replayed;
    for (int i = 0; i < 4; ++i) eager.push_back(draw(x));
    const uint64_t offset = default_generator(kCUDA).get_offset();
    manual_seed(7);
    // All take from one stream.
    for (int i = 0; i < 4; ++i) replayed.push_back(i == 2 ? draw(x) : captured(x).clone());
    check_equal_lists(replayed, eager);
    CHECK_FALSE(equal(replayed[0], replayed[1]));
    CHECK(default_generator(kCUDA).get_offset() == offset);
    // A state is got and set between replays.
    Generator generator = default_generator(kCUDA);
    const std::vector<uint8_t> state = generator.get_state();
    const Tensor first = captured(x).clone();
    generator.set_state(state);
    CHECK(equal(captured(x), first));
  }
  // A generator of one's own.
  const Generator own = make_generator<CPUGeneratorImpl>(3), own_gpu = default_generator(kCUDA).clone();
  Captured captured(x, [&](const Tensor& t) { return empty_like(t).uniform_(0, 1, own_gpu); });
  Generator seeded = own_gpu;
  seeded.set_current_seed(3);
  captured(x);
  CHECK(allclose(captured.output.cpu(), empty({1000}).uniform_(0, 1, own)));
}

TEST_CASE("a graph's memory is its own and comes back" * doctest::skip(testing::nothing_is_cached())) {
  const int64_t numel = int64_t{1} << 22;  // 16 MiB
  const Tensor x = ones({numel}, on_gpu());
  cuda::synchronize();
  cuda::empty_cache();
  const int64_t before = cuda::memory_reserved();
  const cuda::MempoolId_t pool = cuda::graph_pool_handle();
  CUDAGraph first, second;
  Tensor a, b;
  {
    const cuda::graph capture(first, pool);
    a = (x + 1) * 2;
  }
  const int64_t with_one = cuda::memory_reserved();
  CHECK(with_one > before);
  CHECK(first.pool() == pool);
  {
    // Takes over what the first graph used in between.
    const cuda::graph capture(second, pool);
    b = x * 3;
  }
  CHECK(cuda::memory_reserved() == with_one);
  // Nobody else gets that memory.
  const Tensor other = full({numel}, 5, on_gpu());
  first.replay();
  second.replay();
  CHECK(a.eq(4).all().item<bool>());
  CHECK(b.eq(3).all().item<bool>());
  CHECK(other.eq(5).all().item<bool>());
  cuda::synchronize();
  first.reset();
  CHECK_THROWS_AS(first.replay(), Error);
  CHECK_THROWS_AS(first.pool(), Error);
  second.replay();
  CHECK(b.eq(3).all().item<bool>());
  a = Tensor();
  b = Tensor();
  second.reset();
  cuda::empty_cache();
  CHECK(cuda::memory_reserved() <= before + 16 * (int64_t{1} << 20) + 4 * (int64_t{1} << 20));
  // And the graph can be captured again.
  {
    const cuda::graph capture(first);
    a = x * 7;
  }
  first.replay();
  CHECK(a.eq(7).all().item<bool>());
}

TEST_CASE("functions of a graph called out of order throw" * doctest::skip(testing::nothing_is_cached())) {
  CUDAGraph g;
  CHECK_THROWS_AS(g.replay(), Error);
  CHECK_THROWS_AS(g.capture_end(), Error);
  CHECK_THROWS_AS(g.debug_dump("x"), Error);
  CHECK_THROWS_AS(g.capture_begin(), Error);  // the default stream
  g.abandon();
  const Tensor x = ones({8}, on_gpu());
  {
    const cuda::graph capture(g);
    CUDAGraph inner;
    CHECK_THROWS_AS(inner.capture_begin(), Error);
    CHECK(cuda::is_current_stream_capturing());
    x.add_(1);
  }
  CHECK_FALSE(cuda::is_current_stream_capturing());
  CHECK_THROWS_AS(g.capture_begin(), Error);  // captured already
  CHECK(x.sum().item<float>() == 8);          // a capture runs nothing
  g.replay();
  g.replay();
  CHECK(x.sum().item<float>() == 24);
  const testing::TemporaryFolder folder;
  const std::string path = folder / "graph.dot";
  g.debug_dump(path);
  CHECK(std::filesystem::file_size(path) > 0);
}

TEST_CASE("what cannot be captured is refused, and the capture goes on" * doctest::skip(testing::nothing_is_cached())) {
  const Tensor x = full({8}, 2, on_gpu()), pageable = ones({8}), y = zeros({8}, on_gpu());
  const Tensor pinned = full({8}, 3, TensorOptions(kFloat32)).pin_memory();
  Generator generator = default_generator(kCUDA);
  const cuda::CUDAStream elsewhere = cuda::getStreamFromPool();
  cuda::CUDAEvent outside;
  outside.record();
  x.nonzero();
  cuda::synchronize();
  CUDAGraph g;
  Tensor out;
  {
    const cuda::graph capture(g);
    out = x * 2;
    check_refused([&] { x.sum().item<float>(); }, {"CUDA graph", "to the host", "aten::_to_copy"});
    check_refused([&] { x.cpu(); }, {"to the host", "aten::_to_copy"});
    check_refused([&] { x.nonzero(); }, {"aten::nonzero"});
    check_refused([&] { x.masked_select(x > 1); }, {"CUDA graph", "aten::"});
    check_refused([&] { y.copy_(pageable); }, {"from the host", "aten::copy_"});
    check_refused([&] { y.copy_(pinned); }, {"from the host", "non_blocking"});
    check_refused([&] { multinomial(x, 2); }, {"CUDA graph", "aten::"});
    check_refused([&] { cuda::synchronize(); }, {"waiting for the GPU"});
    check_refused([&] { cuda::getCurrentCUDAStream().synchronize(); }, {"waiting for a stream"});
    check_refused([&] { outside.query(); }, {"event"});
    check_refused([&] { outside.synchronize(); }, {"event"});
    check_refused([&] { outside.block(cuda::getCurrentCUDAStream()); }, {"from outside of the graph"});
    check_refused([&] { cuda::empty_cache(); }, {"empty_cache"});
    check_refused([&] { generator.set_current_seed(3); }, {"seeding"});
    check_refused([&] { g.replay(); }, {"the replay of a graph"});
    {
      const cuda::CUDAStreamGuard guard(elsewhere);
      check_refused([&] { x + 1; }, {"an allocation", "aten::add.Tensor"});
      elsewhere.wait_stream(cuda::CUDAStream(cuda::capture_stream()));
      out = out + 1;  // now it takes part
    }
    cuda::CUDAStream(cuda::capture_stream()).wait_stream(elsewhere);
    y.copy_(pinned, /*non_blocking=*/true);
    out = out + y;
  }
  g.replay();
  CHECK(out.sum().item<float>() == 8 * (2 * 2 + 1 + 3));
  x.fill_(5);
  g.replay();
  CHECK(out.sum().item<float>() == 8 * (2 * 5 + 1 + 3));
}

TEST_CASE("an exception in the scope leaves the graph uncaptured" * doctest::skip(testing::nothing_is_cached())) {
  CUDAGraph g;
  const Tensor x = ones({8}, on_gpu());
  const auto fail = [&] {
    const cuda::graph capture(g);
    x.add_(1);
    throw ValueError("stop");
  };
  CHECK_THROWS_WITH_AS(fail(), "stop", ValueError);
  CHECK_FALSE(cuda::is_current_stream_capturing());
  CHECK_THROWS_AS(g.replay(), Error);
  CHECK(x.sum().item<float>() == 8);
  {
    const cuda::graph capture(g);
    x.add_(1);
  }
  g.replay();
  CHECK(x.sum().item<float>() == 16);
}

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

template <class Kind, class Options>
void check_graphed(const Options& options) {
  const Run eager = hundred_steps(with<Kind>(Options(options).capturable(true)), false);
  const Run graphed = hundred_steps(with<Kind>(Options(options).capturable(true)), true);
  check_equal_lists(graphed.losses, eager.losses);
  check_equal_lists(graphed.params, eager.params);
  CHECK(eager.losses.back() < eager.losses.front());
  // The same steps by the host's numbers, up to the rounding of the corrections.
  const Run usual = hundred_steps(with<Kind>(options), false);
  for (size_t i = 0; i < usual.params.size(); ++i) CHECK(allclose(graphed.params[i], usual.params[i], 1e-5, 1e-6));
}

}  // namespace

TEST_CASE("a hundred steps of capturable optimisers in a graph are those outside" *
          doctest::skip(testing::nothing_is_cached())) {
  using namespace optim;
  check_graphed<SGD>(SGDOptions(0.1));
  check_graphed<SGD>(SGDOptions(0.05).momentum(0.9).dampening(0.3).weight_decay(0.01));
  check_graphed<SGD>(SGDOptions(0.05).momentum(0.9).nesterov(true));
  check_graphed<Adam>(AdamOptions(0.02).weight_decay(0.01));
  check_graphed<Adam>(AdamOptions(0.02).amsgrad(true));
  check_graphed<AdamW>(AdamWOptions(0.02));
  check_graphed<Adadelta>(AdadeltaOptions(1.0).weight_decay(0.01));
}

TEST_CASE("a learning rate that is set between replays counts" * doctest::skip(testing::nothing_is_cached())) {
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

TEST_CASE("an optimiser that cannot be captured, or has no state yet, says so" *
          doctest::skip(testing::nothing_is_cached())) {
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

TEST_CASE("a capturable optimiser and a usual one go on with each other's states" *
          doctest::skip(testing::nothing_is_cached())) {
  const auto steps = [](bool first_capturable, bool then_capturable) {
    const std::vector<Tensor> params = some_params();
    const auto options = [](bool capturable) { return optim::AdamOptions(0.1).capturable(capturable); };
    const auto take = [&](optim::Adam& optimizer) {
      for (int i = 0; i < 3; ++i) {
        for (const Tensor& p : params) p.mutable_grad() = p.detach() * 0.5;
        optimizer.step();
      }
    };
    optim::Adam first(params, options(first_capturable)), then(params, options(then_capturable));
    take(first);
    then.load_state_dict(first.state_dict());
    take(then);
    CHECK(then.state_dict()["state.0.step"].item<int64_t>() == 6);
    return params;
  };
  const std::vector<Tensor> expected = steps(false, false);
  for (const auto& [first, then] : {std::pair(true, false), std::pair(false, true), std::pair(true, true)}) {
    const std::vector<Tensor> got = steps(first, then);
    for (size_t i = 0; i < got.size(); ++i) CHECK(allclose(got[i], expected[i], 1e-5, 1e-6));
  }
}

TEST_CASE("a gradient scaler in a graph skips the steps that it skips outside" *
          doctest::skip(testing::nothing_is_cached())) {
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

TEST_CASE("training as a graph gives the losses and weights of training without" *
          doctest::skip(testing::nothing_is_cached())) {
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
          doctest::skip(testing::nothing_is_cached())) {
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

TEST_CASE("a step that waits for the device is refused when it is captured" *
          doctest::skip(testing::nothing_is_cached())) {
  const Tensor w = ones({8}, on_gpu());
  cuda::GraphedStep step([&](const Tensor& x) { return w * x.sum().item<double>(); }, {.warmup = 1});
  CHECK(step(ones({8}, on_gpu()))[0].item<float>() == 8);
  check_refused([&] { step(ones({8}, on_gpu())); }, {"CUDA graph", "aten::_to_copy"});
  CHECK(step.captured() == 0);
  CHECK((w + 1).sum().item<float>() == 16);
}

TEST_CASE("graphed callables have the results and gradients of what they were made of" *
          doctest::skip(testing::nothing_is_cached())) {
  manual_seed(2);
  nn::Sequential net(nn::Linear(12, 32), nn::Tanh(), nn::Linear(32, 4)),
      twin(nn::Linear(12, 32), nn::Tanh(), nn::Linear(32, 4));
  net->to(kCUDA);
  twin->to(kCUDA);
  load_state_dict(*twin, state_dict(*net));
  const Tensor sample = randn({6, 12}, on_gpu()).requires_grad_();
  const cuda::GraphedCallable graphed = cuda::make_graphed_callables(net, sample);
  for (const Tensor& p : net->parameters()) CHECK_FALSE(p.grad().defined());
  for (int i = 0; i < 3; ++i) {
    const Tensor x = randn({6, 12}, on_gpu()).requires_grad_(), same = x.detach().clone().requires_grad_();
    const Tensor y = graphed(x), expected = twin->forward(same);
    CHECK(equal(y, expected));
    y.square().sum().backward();
    expected.square().sum().backward();
    CHECK(equal(x.grad(), same.grad()));
    for (size_t p = 0; p < net->parameters().size(); ++p) {  // summed over the rounds
      CHECK(equal(net->parameters()[p].grad(), twin->parameters()[p].grad()));
    }
  }
  // Where no gradient is asked for there is none.
  {
    const NoGradGuard no_grad;
    CHECK_FALSE(graphed(sample).requires_grad());
  }
  const Tensor first = graphed(sample);
  const Tensor second = graphed(sample);
  CHECK_THROWS_AS(first.sum().backward(), Error);
  second.sum().backward();
  CHECK_THROWS_AS(graphed(randn({5, 12}, on_gpu())), ValueError);
  CHECK_THROWS_AS(graphed.forward({sample, sample}), ValueError);
  CHECK_THROWS_AS(cuda::make_graphed_callables(net, randn({6, 12})), ValueError);
}

TEST_CASE("graphed callables of several tensors" * doctest::skip(testing::nothing_is_cached())) {
  const auto function = [](const std::vector<Tensor>& t) {
    return std::vector<Tensor>{t[0] * t[1], (t[0] > 0).to(kFloat32), t[1].exp()};
  };
  const auto leaf = [](double value) { return full({4}, value, on_gpu()).requires_grad_(); };
  const cuda::GraphedCallable graphed = cuda::make_graphed_callables(function, {leaf(1), leaf(2)});
  const Tensor a = leaf(3), b = leaf(0.5);
  const std::vector<Tensor> out = graphed.forward({a, b});
  CHECK_FALSE(out[1].requires_grad());
  // Of one output only: the other's gradient is zero.
  out[0].sum().backward();
  CHECK(a.grad()[0].item<float>() == 0.5);
  CHECK(b.grad()[0].item<float>() == 3);
  const std::vector<Tensor> again = graphed.forward({a, b});
  (again[0].sum() + again[2].sum()).backward();
  CHECK(b.grad()[0].item<double>() == doctest::Approx(6 + std::exp(0.5)));
}
