// The answers of docs/quiz.md that a program can show: a case for each such question, by its number.
// tests/quiz/citations.py holds the numbers to the page.
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "autograd/engine.h"
#include "core/dispatch/registry.h"
#include "core/dispatch/value.h"
#include "core/iterator/tensor_iterator.h"
#include "core/ops/linalg/matmul.h"
#include "core/ops/nn/linear.h"
#include "core/ops/nn/loss.h"
#include "rushlight.h"
#include "tests/num_threads_guard.h"
#include "tests/warnings.h"

using namespace rush;

namespace {

Tensor leaf(std::initializer_list<double> values) {
  return tensor(ArrayRef<double>(values), kFloat64).requires_grad_();
}

std::vector<double> list(const Tensor& t) {
  const Tensor flat = t.detach().to(kFloat64).contiguous().view({-1});
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

using List = std::vector<double>;

// The dimensions of the loop that an element-wise operator on the two runs.
int loop_dims(const Tensor& a, const Tensor& b) {
  return TensorIterator::pointwise("quiz", Tensor(), {&a, &b}, Promotion::Common).dim();
}

}  // namespace

// ---- tensors and storage --------------------------------------------------------------------------------------------

TEST_CASE("question 1: indexing gives a view, and a write to it shows in the base") {
  const Tensor a = zeros({2, 3});
  const Tensor row = a[1];
  row.fill_(5);
  CHECK(a.sum().item<float>() == 15);
}

TEST_CASE("question 2: a view keeps the whole storage") {
  Tensor big = zeros({1000, 1000});
  const Tensor row = big[0];
  big = Tensor();
  CHECK(row.nbytes() == 4000);
  CHECK(row.storage().nbytes() == 4000000);
  CHECK(row.clone().storage().nbytes() == 4000);
}

TEST_CASE("question 3: of these, clone alone always gives memory of its own") {
  const Tensor a = zeros({2, 3});
  CHECK(a.contiguous().is_same(a));
  CHECK(a.to(kFloat).is_same(a));
  CHECK(a.reshape({6}).is_alias_of(a));
  CHECK(a.detach().is_alias_of(a));
  CHECK_FALSE(a.clone().is_alias_of(a));
}

TEST_CASE("question 4: all writes to a storage count in one place") {
  const Tensor a = zeros({4});
  a.add_(1);
  a[0].fill_(2);
  a.data().mul_(2);
  CHECK(a._version() == 3);
  CHECK(a[1]._version() == 3);
}

// ---- views and strides ----------------------------------------------------------------------------------------------

TEST_CASE("question 5: a transpose swaps strides and moves nothing") {
  const Tensor x = zeros({2, 3});
  CHECK(x.t().strides() == IntArrayRef({1, 3}));
  CHECK(x.t().data_ptr() == x.data_ptr());
  CHECK_FALSE(x.t().is_contiguous());
  CHECK(x.t().t().is_contiguous());
}

TEST_CASE("question 6: view never copies, reshape does where it has to") {
  const Tensor t = zeros({2, 3}).t();
  CHECK_THROWS_AS(t.view({6}), ValueError);
  CHECK_FALSE(t.reshape({6}).is_alias_of(t));
  CHECK(zeros({2, 3}).reshape({6}).is_view());
}

TEST_CASE("question 7: an expanded dimension has stride 0 and no memory") {
  const Tensor row = ones({1, 3});
  const Tensor many = row.expand({1000, 3});
  CHECK(many.strides() == IntArrayRef({0, 1}));
  CHECK(many.storage().nbytes() == row.storage().nbytes());
  CHECK_THROWS_AS(many.add_(1), ValueError);
}

TEST_CASE("question 8: an element-wise result has its input's order of strides") {
  const Tensor t = zeros({2, 3}).t();
  CHECK((t + 1).strides() == IntArrayRef({1, 3}));
  CHECK(t.contiguous().strides() == IntArrayRef({2, 1}));
}

// ---- dtypes and promotion -------------------------------------------------------------------------------------------

TEST_CASE("question 9: a number with a point makes integers the default dtype") {
  CHECK((arange(3) + 1.5).scalar_type() == kFloat);
  CHECK((arange(3) + 1).scalar_type() == kLong);
  CHECK((arange(3) / 2).scalar_type() == kFloat);
}

TEST_CASE("question 10: a tensor without dimensions does not widen one with dimensions") {
  const Tensor half = ones({3}, kHalf);
  CHECK((half + scalar_tensor(2.0, kFloat)).scalar_type() == kHalf);
  CHECK((half + ones({1}, kFloat)).scalar_type() == kFloat);
}

TEST_CASE("question 11: integers wrap") {
  const Tensor a = full({1}, 200, kByte), b = full({1}, 100, kByte);
  CHECK((a + b).scalar_type() == kByte);
  CHECK((a + b).item<int>() == 44);
  CHECK(full({2}, 200, kByte).sum().item<int>() == 400);
}

TEST_CASE("question 12: an in-place operator keeps its target's dtype, or throws") {
  const Tensor i = arange(3);
  CHECK_THROWS_AS(i.add_(0.5), TypeError);
  CHECK(list(i) == List{0, 1, 2});
  CHECK(ones({3}).add_(ones({3}, kDouble)).scalar_type() == kFloat);
}

// ---- the dispatcher -------------------------------------------------------------------------------------------------

TEST_CASE("question 13: a call stops at Autograd, and then at the front") {
  const Tensor a = leaf({1}), b = ones({1}, kFloat64);
  const KeySet keys = a.impl()->keys() | b.impl()->keys();
  a + b;  // registers the operators
  CHECK(ops::add.served_by(keys) == DispatchKey::Autograd);
  CHECK(ops::add.served_by(keys.without(DispatchKey::Autograd)) == DispatchKey::Dense);
  CHECK(ops::add.served_by(b.impl()->keys()) == DispatchKey::Dense);
}

TEST_CASE("question 14: Autocast comes before Autograd, so that casts are recorded") {
  const Tensor weight = ones({2, 2}, requires_grad());
  const autocast::Autocast lower(kCPU, kBFloat16);
  const KeySet keys = weight.impl()->keys() | dispatch_state.included;
  const Tensor y = mm(weight, ones({2, 2}));
  CHECK(ops::mm.served_by(keys) == DispatchKey::Autocast);
  CHECK(ops::mm.served_by(keys.without(DispatchKey::Autocast)) == DispatchKey::Autograd);
  CHECK(y.scalar_type() == kBFloat16);
  y.sum().backward();
  CHECK(weight.grad().scalar_type() == kFloat);
}

TEST_CASE("question 15: devices are no dispatch keys") {
  CHECK(keys_on(kCPU).highest() == DispatchKey::Dense);
  CHECK(keys_on(kCUDA).highest() == DispatchKey::Dense);
  CHECK(keys_on(kCPU) != keys_on(kCUDA));
}

TEST_CASE("question 16: a composite operator has no derivative of its own") {
  const OpBase* loss = registry().find("aten::l1_loss");
  REQUIRE(loss);
  CHECK(loss->is_composite());
  const Tensor x = leaf({3, 5});
  l1_loss(x, zeros({2}, kFloat64)).backward();
  CHECK(list(x.grad()) == List{0.5, 0.5});
  CHECK_FALSE(registry().find("aten::mul.Tensor")->is_composite());
}

TEST_CASE("question 17: NoGradGuard holds for its thread alone") {
  const Tensor x = leaf({1, 2});
  const NoGradGuard no_grad;
  bool recorded_elsewhere = false;
  std::thread([&] { recorded_elsewhere = (x * 2).requires_grad(); }).join();
  CHECK(recorded_elsewhere);
  CHECK_FALSE((x * 2).requires_grad());
}

// ---- broadcasting and the iterator ----------------------------------------------------------------------------------

TEST_CASE("question 18: shapes broadcast from the last dimension") {
  CHECK((zeros({3, 1}) + zeros({4})).sizes() == IntArrayRef({3, 4}));
  CHECK((zeros({2, 3}) + zeros({3})).sizes() == IntArrayRef({2, 3}));
  CHECK((zeros({1}) + zeros({5, 5})).sizes() == IntArrayRef({5, 5}));
  CHECK_THROWS_AS(zeros({2, 3}) + zeros({2}), ValueError);
}

TEST_CASE("question 19: dimensions that are contiguous with each other become one loop") {
  const Tensor x = zeros({2, 3, 4});
  CHECK(loop_dims(x, zeros({2, 3, 4})) == 1);
  const Tensor t = x.transpose(0, 2);
  CHECK(loop_dims(t, t) == 1);
  CHECK(loop_dims(x, zeros({4})) == 2);
}

TEST_CASE("question 20: an operand that overlaps its target is read first") {
  const Tensor a = ones({4});
  a.slice(0, 1, 4).add_(a.slice(0, 0, 3));
  CHECK(list(a) == List{1, 2, 2, 2});
}

// ---- threads --------------------------------------------------------------------------------------------------------

TEST_CASE("question 21: a sum has the same bits with any number of threads") {
  manual_seed(1);
  const Tensor x = randn({1000003});
  std::optional<float> sum;
  for (int threads : {1, 2, 3, 7}) {
    const NumThreadsGuard guard(threads);
    const float now = x.sum().item<float>();
    CHECK(now == sum.value_or(now));
    sum = now;
  }
}

TEST_CASE("question 22: a loop within a loop runs in the thread that it is called in") {
  const NumThreadsGuard guard(4);
  std::atomic<int> outside{0};
  parallel_for(0, 8, 1, [&](int64_t, int64_t) {
    const auto thread = std::this_thread::get_id();
    parallel_for(0, 100, 1, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() != thread) ++outside;
    });
  });
  CHECK(outside == 0);
}

// ---- the allocator --------------------------------------------------------------------------------------------------

TEST_CASE("question 23: a freed block serves the next request of its size") {
  Tensor a = empty({1000});
  const void* memory = a.data_ptr();
  a = Tensor();
  const Tensor b = empty({1000});
  CHECK(b.data_ptr() == memory);
}

// ---- autograd -------------------------------------------------------------------------------------------------------

TEST_CASE("question 25: a node runs once, when all of its gradient is there") {
  const Tensor a = leaf({1});
  const Tensor b = a + a;
  const Tensor c = b + b;
  int runs = 0;
  double gradient = 0;
  b.register_hook([&](const Tensor& g) {
    ++runs;
    gradient = g.item<double>();
  });
  c.backward();
  CHECK(runs == 1);
  CHECK(gradient == 2);
  CHECK(a.grad().item<double>() == 4);
}

TEST_CASE("question 26: the first backward pass frees what the nodes saved") {
  const Tensor x = leaf({3});
  const Tensor y = x * x;
  y.backward({}, /*retain_graph=*/true);
  y.backward();
  CHECK(x.grad().item<double>() == 12);
  CHECK_THROWS_AS(y.backward(), Error);
}

TEST_CASE("question 27: a backward pass adds to the gradient") {
  const Tensor w = leaf({1});
  for (int step = 1; step <= 3; ++step) {
    (w * 2).backward();
    CHECK(w.grad().item<double>() == 2 * step);
  }
}

TEST_CASE("question 28: only what was saved must stay unwritten") {
  const Tensor x = leaf({1, 2});
  const Tensor doubled = x * 2;
  doubled.add_(1);
  CHECK_NOTHROW(doubled.sum().backward());
  const Tensor squared = x.pow(2);
  squared.add_(1);
  CHECK_NOTHROW(squared.sum().backward());
  const Tensor exponential = x.exp();
  exponential.add_(1);
  CHECK_THROWS_AS(exponential.sum().backward(), Error);
}

TEST_CASE("question 29: a leaf that requires a gradient is not written while recording") {
  const Tensor w = leaf({1});
  CHECK_THROWS_AS(w.add_(1), Error);
  {
    const NoGradGuard no_grad;
    w.add_(1);
  }
  CHECK(w.item<double>() == 2);
  CHECK(w.is_leaf());
  CHECK(w.requires_grad());
}

TEST_CASE("question 30: only leaves keep their gradient, unless they are asked to") {
  const Tensor w = leaf({1});
  const Tensor y = w * 3, z = y * 5;
  y.retain_grad();
  const Tensor loss = z * 7;
  loss.backward();
  const testing::Warnings warnings;
  CHECK_FALSE(z.grad().defined());
  CHECK(warnings.last().find("call retain_grad()") != std::string::npos);
  CHECK(y.grad().item<double>() == 35);
  CHECK(w.grad().item<double>() == 105);
}

TEST_CASE("question 31: nodes run in descending order of their numbers") {
  const Tensor x = leaf({1});
  const Tensor early = x * 2, late = x * 3;
  std::vector<char> order;
  early.register_hook([&](const Tensor&) { order.push_back('e'); });
  late.register_hook([&](const Tensor&) { order.push_back('l'); });
  CHECK(late.grad_fn()->sequence_nr() > early.grad_fn()->sequence_nr());
  (early + late).backward();
  CHECK(order == std::vector<char>{'l', 'e'});
}

TEST_CASE("question 32: the depth of a graph does not matter to the stack") {
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 200000; ++i) y = y + 1;
  y.backward();
  CHECK(x.grad().item<double>() == 1);
  y = Tensor();  // frees the graph
}

TEST_CASE("question 33: a write to a view changes its base's history") {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = x * 2;
  const Tensor first = y[0];
  first.mul_(10);
  CHECK(y.grad_fn()->name() == "CopySlices");
  y.sum().backward();
  CHECK(list(x.grad()) == List{20, 2, 2});
}

TEST_CASE("question 34: what detach returns shares memory and its version counter") {
  const Tensor x = leaf({1, 2});
  const Tensor y = x.exp();
  y.detach().fill_(0);
  CHECK(list(y) == List{0, 0});
  CHECK_THROWS_AS(y.sum().backward(), Error);
}

// ---- modules and state ----------------------------------------------------------------------------------------------

TEST_CASE("question 35: eval changes what modules compute, not what is recorded") {
  nn::Sequential net(nn::Linear(2, 2), nn::Dropout(0.5));
  net->eval();
  const Tensor x = ones({4, 2});
  CHECK(net->forward(x).requires_grad());
  CHECK(net->forward(x).equal(net->forward(x)));
  net->train();
  const NoGradGuard no_grad;
  CHECK((net->forward(x) == 0).any().item<bool>());
}

TEST_CASE("question 36: a module owns what it registered") {
  struct Net : nn::Module {
    Tensor scale, kept;
    nn::BatchNorm1d norm{nullptr};
    Net() {
      scale = ones({1}, requires_grad());
      kept = register_parameter("kept", ones({1}));
      norm = register_module("norm", nn::BatchNorm1d(3));
    }
  };
  const Net net;
  CHECK(net.named_parameters().keys() == std::vector<std::string>{"kept", "norm.weight", "norm.bias"});
  CHECK(net.named_buffers().contains("norm.running_mean"));
}

TEST_CASE("question 37: a tied weight is one parameter, whose gradient is the sum of its uses'") {
  struct Net : nn::Module {
    nn::Linear in{nullptr}, out{nullptr};
    Net() {
      in = register_module("in", nn::Linear(nn::LinearOptions(1, 1).bias(false)));
      out = register_module("out", in);
    }
  };
  const Net net;
  CHECK(net.named_parameters().keys() == std::vector<std::string>{"in.weight"});
  {
    const NoGradGuard no_grad;
    net.parameters()[0].fill_(3);
  }
  nn::Linear in = net.in, out = net.out;
  out(in(ones({1, 1}))).sum().backward();
  CHECK(net.parameters()[0].grad().item<float>() == 6);  // d(w * w) = 2w
}

// ---- optimisers -----------------------------------------------------------------------------------------------------

TEST_CASE("question 38: a parameter without a gradient is left out, one with a zero gradient decays") {
  const Tensor without = leaf({1}), with_zero = leaf({1});
  optim::SGD sgd({without, with_zero}, optim::SGDOptions(0.1).weight_decay(0.5));
  with_zero.mutable_grad() = zeros({1}, kFloat64);
  sgd.step();
  CHECK(without.item<double>() == 1);
  CHECK(with_zero.item<double>() == doctest::Approx(0.95));
}

TEST_CASE("question 39: Adam's first step is as long as the learning rate") {
  const Tensor w = leaf({1, 1, 1});
  optim::Adam adam({w}, optim::AdamOptions(0.01));
  w.mutable_grad() = tensor({1e-3, 1.0, 1e3}, kFloat64);
  adam.step();
  for (double weight : list(w)) CHECK(weight == doctest::Approx(0.99).epsilon(1e-6));
}

TEST_CASE("question 40: AdamW's weights decay by themselves, Adam's through the gradient") {
  const Tensor a = leaf({1}), w = leaf({1});
  optim::Adam adam({a}, optim::AdamOptions(0.01).weight_decay(0.1));
  optim::AdamW adamw({w}, optim::AdamWOptions(0.01).weight_decay(0.1));
  a.mutable_grad() = zeros({1}, kFloat64);
  w.mutable_grad() = zeros({1}, kFloat64);
  adam.step();
  adamw.step();
  CHECK(a.item<double>() == doctest::Approx(0.99));
  CHECK(w.item<double>() == doctest::Approx(0.999));
}

// ---- random numbers -------------------------------------------------------------------------------------------------

TEST_CASE("question 41: a seed gives the same numbers to any number of threads and any strides") {
  manual_seed(7);
  const Tensor expected = randn({300, 400});
  for (int threads : {1, 3}) {
    const NumThreadsGuard guard(threads);
    manual_seed(7);
    CHECK(randn({300, 400}).equal(expected));
    manual_seed(7);
    CHECK(empty({400, 300}).t().normal_().equal(expected));
  }
}

TEST_CASE("question 42: a checkpointed function draws again what it drew") {
  manual_seed(3);
  const Tensor x = ones({1000}, requires_grad());
  const Tensor y = autograd::checkpoint([](const Tensor& in) { return dropout(in, 0.5, true) * in; }, x);
  randn({10});  // others draw in between
  y.sum().backward();
  CHECK(x.grad().equal(y.detach() * 2));
}

// ---- data loading ---------------------------------------------------------------------------------------------------

TEST_CASE("question 43: workers do not change the order of batches") {
  struct Numbers : data::datasets::Dataset<Numbers, int> {
    int get(size_t index) override { return static_cast<int>(index); }
    std::optional<size_t> size() const override { return 10; }
  };
  const auto loader =
      data::make_data_loader<data::samplers::SequentialSampler>(Numbers(), data::DataLoaderOptions(4).workers(2));
  std::vector<std::vector<int>> batches;
  for (auto& batch : *loader) batches.push_back(batch);
  CHECK(batches == std::vector<std::vector<int>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}});
}

// ---- checkpoints ----------------------------------------------------------------------------------------------------

TEST_CASE("question 45: a training goes on with the same numbers only with the optimiser's state") {
  const auto step = [](const Tensor& w, optim::Optimizer& optimizer) {
    optimizer.zero_grad();
    w.pow(2).sum().backward();
    optimizer.step();
  };
  const optim::SGDOptions options = optim::SGDOptions(0.1).momentum(0.9);
  const Tensor w = leaf({1});
  optim::SGD sgd({w}, options);
  step(w, sgd);
  const Tensor resumed = w.detach().clone().requires_grad_(), forgetful = w.detach().clone().requires_grad_();
  optim::SGD with_state({resumed}, options), without_state({forgetful}, options);
  with_state.load_state_dict(sgd.state_dict());
  step(w, sgd);
  step(resumed, with_state);
  step(forgetful, without_state);
  CHECK(resumed.equal(w));
  CHECK_FALSE(forgetful.equal(w));
}

// ---- CUDA and mixed precision ---------------------------------------------------------------------------------------

TEST_CASE("question 50: float16 loses small gradients, bfloat16 has float32's range") {
  const Tensor small = full({1}, 1e-8);
  CHECK(small.to(kHalf).item<float>() == 0);
  CHECK((small * 65536).to(kHalf).item<float>() > 0);
  CHECK(small.to(kBFloat16).item<float>() > 0);
  CHECK(std::isinf(full({1}, 1e6).to(kHalf).item<float>()));
}
