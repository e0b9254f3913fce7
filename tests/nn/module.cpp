#include "nn/module.h"

#include <doctest/doctest.h>

#include <sstream>

#include "rushlight.h"

namespace {

using namespace rush;
using namespace rush::nn;

// A net with parameters of its own, a buffer and two levels of submodules.
struct NetImpl : Cloneable<NetImpl> {
  Linear fc1{nullptr}, fc2{nullptr};
  Sequential body{nullptr};
  Tensor scale, steps;
  NetImpl() { reset(); }
  void reset() override {
    scale = register_parameter("scale", ones(1));
    steps = register_buffer("steps", zeros({}, kLong));
    fc1 = register_module("fc1", Linear(2, 3));
    body = register_module("body", Sequential(ReLU(), BatchNorm1d(3)));
    fc2 = register_module("fc2", Linear(LinearOptions(3, 1).bias(false)));
  }
  Tensor forward(const Tensor& x) { return fc2(body->forward(fc1(x))) * scale; }
};
RUSH_MODULE(Net);

using Names = std::vector<std::string>;

TEST_CASE("parameters, buffers and modules are listed by name, in the order of registration") {
  Net net;
  CHECK(net->named_parameters().keys() ==
        Names{"scale", "fc1.weight", "fc1.bias", "body.1.weight", "body.1.bias", "fc2.weight"});
  CHECK(net->named_parameters(/*recurse=*/false).keys() == Names{"scale"});
  CHECK(net->parameters().size() == 6);
  CHECK(net->parameters()[1].is_same(net->fc1->weight));
  CHECK(net->named_buffers().keys() ==
        Names{"steps", "body.1.running_mean", "body.1.running_var", "body.1.num_batches_tracked"});
  CHECK(net->named_children().keys() == Names{"fc1", "body", "fc2"});
  CHECK(net->named_modules().keys() == Names{"", "fc1", "body", "body.0", "body.1", "fc2"});
  CHECK(net->named_modules("net", /*include_self=*/false).keys() ==
        Names{"net.fc1", "net.body", "net.body.0", "net.body.1", "net.fc2"});
  CHECK(net->modules().size() == 6);
  CHECK(net->children().size() == 3);
  for (const Tensor& parameter : net->parameters()) CHECK(parameter.requires_grad());
  for (const Tensor& buffer : net->buffers()) CHECK(!buffer.requires_grad());
}

TEST_CASE("a tied weight is listed once") {
  Linear a(2, 2), b(2, 2);
  auto net = std::make_shared<NetImpl>();
  net->register_module("a", a);
  net->register_module("again", a);
  CHECK(net->named_parameters().contains("a.weight"));
  CHECK(!net->named_parameters().contains("again.weight"));
  CHECK(net->named_modules().size() == 7);
}

TEST_CASE("names must be new, not empty and without a dot") {
  Net net;
  CHECK_THROWS_AS(net->register_parameter("", ones(1)), ValueError);
  CHECK_THROWS_AS(net->register_parameter("a.b", ones(1)), ValueError);
  CHECK_THROWS_AS(net->register_parameter("scale", ones(1)), ValueError);
  CHECK_THROWS_AS(net->register_buffer("steps", ones(1)), ValueError);
  CHECK_THROWS_AS(net->register_module("fc1", Linear(1, 1)), ValueError);
  CHECK_THROWS_AS(net->register_module("none", std::shared_ptr<LinearImpl>()), ValueError);
  CHECK_THROWS_AS(net->register_parameter("made", net->scale * 2), ValueError);
  CHECK_THROWS_AS(net->register_parameter("integers", ones(1, kLong)), Error);
  CHECK(net->named_parameters(false).size() == 1);
  net->register_parameter("frozen", ones(1), /*requires_grad=*/false);
  CHECK(!net->named_parameters()["frozen"].requires_grad());
  CHECK(net->register_parameter("off", Tensor()).defined() == false);
  CHECK(!net->named_parameters().contains("off"));
}

TEST_CASE("a module is not below itself") {
  auto outer = std::make_shared<NetImpl>();
  CHECK_THROWS_AS(outer->register_module("self", outer), ValueError);
  auto inner = std::make_shared<NetImpl>();
  outer->register_module("inner", inner);
  CHECK_THROWS_AS(inner->register_module("outer", outer), ValueError);
  CHECK(outer->modules().size() == 2 * inner->modules().size());
}

TEST_CASE("submodules are replaced and unregistered") {
  Net net;
  net->fc2 = net->replace_module("fc2", Linear(3, 5));
  CHECK(net->named_parameters()["fc2.weight"].size(0) == 5);
  CHECK(net->named_parameters().contains("fc2.bias"));
  CHECK_THROWS_AS(net->replace_module("fc3", Linear(1, 1)), ValueError);
  net->unregister_module("body");
  CHECK(net->named_children().keys() == Names{"fc1", "fc2"});
  CHECK_THROWS_AS(net->unregister_module("body"), ValueError);
}

TEST_CASE("train and eval reach every module") {
  Net net;
  CHECK(net->is_training());
  net->eval();
  for (const auto& module : net->modules()) CHECK(!module->is_training());
  net->train();
  for (const auto& module : net->modules()) CHECK(module->is_training());
}

TEST_CASE("to converts floating point tensors in place, with their gradients") {
  Net net;
  const Tensor weight = net->fc1->weight;
  net->forward(ones({4, 2})).sum().backward();
  net->to(kFloat64);
  CHECK(net->fc1->weight.is_same(weight));
  CHECK(weight.scalar_type() == kFloat64);
  CHECK(weight.grad().scalar_type() == kFloat64);
  CHECK(weight.requires_grad());
  CHECK(weight.is_leaf());
  CHECK(net->steps.scalar_type() == kLong);
  CHECK_THROWS_WITH_AS(net->to(kLong), doctest::Contains("int64 cannot require gradients"), Error);
  CHECK(weight.scalar_type() == kFloat64);
  CHECK(net->named_buffers()["body.1.running_mean"].scalar_type() == kFloat64);
  CHECK(net->forward(ones({4, 2}, kFloat64)).scalar_type() == kFloat64);
  net->to(Device("meta"));
  CHECK(weight.is_meta());
  CHECK(net->steps.is_meta());
}

TEST_CASE("to converts a buffer that is a view, which is one of nothing then") {
  nn::Module module;
  const Tensor table = ones({4, 2});
  const Tensor buffer = module.register_buffer("table", table.unsqueeze(0));
  REQUIRE(buffer.is_view());
  module.to(kFloat64);
  CHECK(buffer.scalar_type() == kFloat64);
  CHECK_FALSE(buffer.is_view());
  buffer.zero_();
  CHECK(table.equal(ones({4, 2})));

  const Tensor weight = ones({4}).requires_grad_();
  CHECK_THROWS_WITH_AS(weight.view({2, 2}).set_data(ones({2, 2})), doctest::Contains("requires a gradient"), Error);
}

TEST_CASE("to converts sparse buffers, and those without elements") {
  struct Graph : Module {
    Graph() {
      register_buffer("adjacency", eye(3).to_sparse());
      register_buffer("rows", eye(3).to_sparse_csr());
      register_buffer("none", empty(0));
    }
  } graph;
  const Tensor rows = graph.named_buffers()["rows"];
  graph.to(kFloat64);
  for (const Tensor& buffer : graph.buffers()) CHECK(buffer.scalar_type() == kFloat64);
  CHECK(rows.to_dense().equal(eye(3, kFloat64)));
  graph.to(kCPU);
  CHECK(graph.buffers()[1].is_same(rows));
}

TEST_CASE("zero_grad drops gradients, or fills them") {
  Net net;
  net->forward(ones({4, 2})).sum().backward();
  net->zero_grad(/*set_to_none=*/false);
  for (const Tensor& parameter : net->parameters()) CHECK(parameter.grad().abs().sum().item<double>() == 0);
  net->zero_grad();
  for (const Tensor& parameter : net->parameters()) CHECK(!parameter.grad().defined());
}

TEST_CASE("apply visits this module, then those below") {
  Net net;
  Names names;
  net->apply([&](const std::string& name, Module&) { names.push_back(name); });
  CHECK(names == Names{"", "fc1", "body", "body.0", "body.1", "fc2"});
  int linears = 0;
  net->apply([&](Module& module) {
    if (auto* linear = module.as<Linear>()) {
      ++linears;
      init::constant_(linear->weight, 2);
    }
  });
  CHECK(linears == 2);
  CHECK(net->fc2->weight.sum().item<double>() == 6);
  names.clear();
  net->apply([&](const std::string& name, const std::shared_ptr<Module>& module) {
    if (module->as<LinearImpl>()) names.push_back(name);
  });
  CHECK(names == Names{"fc1", "fc2"});
  int count = 0;
  std::as_const(*net).apply([&](const Module&) { ++count; });
  CHECK(count == 6);
}

TEST_CASE("a module on the stack works, but cannot hand out a pointer to itself") {
  NetImpl net;
  CHECK(net.parameters().size() == 6);
  CHECK(net.modules(/*include_self=*/false).size() == 5);
  CHECK_THROWS_AS(net.modules(), Error);
}

TEST_CASE("a clone has values of its own, down to the last submodule") {
  manual_seed(0);
  Net net;
  net->eval();
  net->fc1->weight.set_requires_grad(false);
  const auto copy = std::dynamic_pointer_cast<NetImpl>(net->clone());
  REQUIRE(copy);
  const Tensor x = tensor({1., 2., 3., 4.}).view({2, 2});
  CHECK((copy->forward(x) - net->forward(x)).abs().sum().item<double>() == 0);
  CHECK(!copy->is_training());
  CHECK(!copy->fc1->weight.requires_grad());
  CHECK(copy->scale.requires_grad());
  CHECK(copy->named_parameters()["fc2.weight"].is_same(copy->fc2->weight));
  {
    const NoGradGuard no_grad;
    copy->scale.fill_(0);
  }
  CHECK(copy->forward(x).abs().sum().item<double>() == 0);
  CHECK(net->forward(x).abs().sum().item<double>() > 0);
}

struct Plain : Module {
  Linear fc{register_module("fc", Linear(1, 1))};
};

// Registers in its constructor what reset() does not.
struct HalfReset : Cloneable<HalfReset> {
  HalfReset() { register_parameter("p", ones(1)); }
  void reset() override {}
};

TEST_CASE("what cannot be cloned says what to do") {
  CHECK_THROWS_AS(Plain().clone(), NotImplementedError);
  CHECK_THROWS_AS(HalfReset().clone(), Error);
}

TEST_CASE("modules print as libtorch's do") {
  std::ostringstream text;
  text << *Net();
  CHECK(text.str() == R"((anonymous namespace)::NetImpl(
  (fc1): rush::nn::Linear(in_features=2, out_features=3, bias=true)
  (body): rush::nn::Sequential(
    (0): rush::nn::ReLU()
    (1): rush::nn::BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=true, track_running_stats=true)
  )
  (fc2): rush::nn::Linear(in_features=3, out_features=1, bias=false)
))");
  const auto printed = [](const auto& module) {
    std::ostringstream stream;
    stream << module;
    return stream.str();
  };
  CHECK(printed(Conv2d(Conv2dOptions(1, 2, 3).padding(kSame).groups(1).bias(false))) ==
        "rush::nn::Conv2d(1, 2, kernel_size=[3, 3], stride=[1, 1], padding='same', bias=false)");
  CHECK(printed(Dropout(0.1)) == "rush::nn::Dropout(p=0.1, inplace=false)");
  CHECK(printed(AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions({1, std::nullopt}))) ==
        "rush::nn::AdaptiveAvgPool2d(output_size=[1, None])");
  CHECK(Linear(1, 1)->name() == "rush::nn::LinearImpl");
  CHECK(Module("given").name() == "given");
}

TEST_CASE("holders: empty ones, conversion, calls") {
  Linear empty{nullptr};
  CHECK(!empty);
  CHECK(empty.is_empty());
  CHECK_THROWS_AS(empty->forward(ones(1)), Error);
  Linear full(2, 3);
  CHECK(full);
  const Linear same = full;
  CHECK(same.get() == full.get());
  const std::shared_ptr<LinearImpl> pointer = full;
  CHECK(Linear(pointer).get() == full.get());
  CHECK(full(ones({1, 2})).sizes() == IntArrayRef({1, 3}));
}

TEST_CASE("options that make no sense are refused") {
  CHECK_THROWS_AS(Linear(-1, 2), ValueError);
  CHECK_THROWS_AS(Conv2d(Conv2dOptions(3, 4, 3).groups(2)), ValueError);
  CHECK_THROWS_AS(Conv2d(Conv2dOptions(1, 1, 3).stride(2).padding(kSame)), ValueError);
  CHECK_THROWS_AS(Conv2dOptions(1, 1, {1, 2, 3}), ValueError);
  CHECK_THROWS_AS(GroupNorm(3, 4), ValueError);
  CHECK_THROWS_AS(Dropout(1.5), ValueError);
  CHECK_THROWS_AS(Embedding(EmbeddingOptions(3, 2).padding_idx(3)), ValueError);
  CHECK_THROWS_AS(LSTM(0, 2), ValueError);
  CHECK_THROWS_AS(BatchNorm2d(3)->forward(ones({2, 3})), ValueError);
  CHECK_THROWS_AS(BatchNorm2d(3)->forward_relu(ones({2, 3})), ValueError);
  CHECK_THROWS_AS(BatchNorm1d(3)->forward(ones({1, 3})), ValueError);
  CHECK_THROWS_AS(LSTM(3, 2)->forward(ones({2, 2, 4})), ValueError);
}

TEST_CASE("BatchNorm's forward_relu is relu behind it, and counts the batch too") {
  const Tensor x = arange(24., kFloat64).view({2, 3, 2, 2}).sin(), residual = x * 0.3;
  const BatchNorm2d norm(3), fused(3);
  norm->to(kFloat64);
  fused->to(kFloat64);
  for (const bool training : {true, false}) {
    norm->train(training);
    fused->train(training);
    CHECK(allclose(fused->forward_relu(x), relu(norm(x))));
    CHECK(allclose(fused->forward_relu(x, residual), relu(norm(x) + residual)));
    CHECK(allclose(fused->running_var, norm->running_var));
    CHECK(fused->num_batches_tracked.item<int64_t>() == 2);
  }
}

TEST_CASE("embeddings from a table that exists are frozen unless asked otherwise") {
  const Tensor table = tensor({1., 2., 3., 4.}).view({2, 2});
  const Embedding frozen = Embedding::from_pretrained(table);
  CHECK(!frozen->weight.requires_grad());
  CHECK(frozen(tensor({1}))[0][1].item<double>() == 4);
  CHECK(Embedding::from_pretrained(table, EmbeddingFromPretrainedOptions().freeze(false))->weight.requires_grad());
  CHECK_THROWS_AS(Embedding::from_pretrained(ones(3)), ValueError);
}

}  // namespace
