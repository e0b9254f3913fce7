// Calls of a graph that become fused operators, and casts that become lists: where they may, and where they must not.
#include "autograd/compile/fusion.h"
#include "autograd/compile/passes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rushlight.h"
#include "tests/compile/graph_calls.h"

using namespace rush;
using rush::testing::calls_of;

namespace {

// A GPU's fused operators round 16-bit numbers once where the others round them twice.
bool alike(const Tensor& a, const Tensor& b, bool has_16_bits = false) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  const double tolerance = has_16_bits || a.scalar_type() == kBFloat16 ? 2e-2 : 1e-4;
  return a.scalar_type() == b.scalar_type() && allclose(a.to(kFloat32), b.to(kFloat32), tolerance, tolerance);
}

// A block of a transformer without its attention, in the words of plain modules.
struct BlockImpl : nn::Module {
  BlockImpl(int64_t width, double p)
      : drop(register_module("drop", nn::Dropout(p))),
        norm(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({width})))),
        narrow(register_module("narrow", nn::Linear(width, width))),
        wide(register_module("wide", nn::Linear(width, 4 * width))),
        back(register_module("back", nn::Linear(4 * width, width))) {}
  Tensor forward(const Tensor& x) {
    const Tensor y = x + drop(narrow(x));
    return y + drop(back(gelu(wide(norm(y)), "tanh")));
  }
  nn::Dropout drop;
  nn::LayerNorm norm;
  nn::Linear narrow, wide, back;
};
RUSH_MODULE(Block);

struct BlockTraining {
  std::vector<Tensor> losses, weights;
  std::string graph;
};

BlockTraining train_blocks(bool is_compiled, bool autocasts, double p) {
  manual_seed(3);
  nn::Sequential net(Block(16, p), Block(16, p), nn::LayerNorm(nn::LayerNormOptions({16})));
  net->to(get_default_device());
  optim::SGD optimizer(net->parameters(), 0.1);
  const auto step = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const autocast::Autocast lower(x.device().type, kBFloat16, autocasts);
      loss = (net->forward(x) - y).square().mean();
    }
    loss.backward();
    const Tensor norm = nn::utils::get_total_norm(nn::utils::gradients_of(net->parameters()));
    nn::utils::clip_grads_with_norm_(net->parameters(), 0.05, norm);
    optimizer.step();
    return loss;
  };
  auto compiled = compile(step);
  BlockTraining trained;
  for (int i = 0; i < 6; ++i) {
    const Tensor x = randn({5, 3, 16}), y = randn({5, 3, 16});
    trained.losses.push_back((is_compiled ? compiled(x, y) : step(x, y)).detach());
  }
  CHECK(compiled.obstacle().empty());
  trained.weights = net->parameters();
  if (!is_compiled) return trained;
  const Graph& graph = compiled.graph();
  trained.graph = graph.print();
  CHECK(calls_of(graph, "rush::add_layer_norm") == (autocasts ? 2 : 3));  // nothing casts what the last one gives
  CHECK(calls_of(graph, "rush::add_layer_norm_backward") == 2);           // of the last no sum comes past
  // One of four sums has no norm, and one of the norms stays apart.
  CHECK(calls_of(graph, "aten::native_dropout") == (p == 0 ? 0 : autocasts ? 2 : 1));
  CHECK(calls_of(graph, "aten::native_dropout_backward") == (p > 0 && !autocasts ? 1 : 0));  // others are in loops
  CHECK(calls_of(graph, "rush::linear_parameter_gradients") == (p > 0 || autocasts ? 2 : 4));
  // Elsewhere it is taken apart: Note [Decompositions].
  CHECK(calls_of(graph, "aten::native_layer_norm") == (autocasts && get_default_device().is_cpu() ? 1 : 0));
  CHECK(calls_of(graph, "rush::linear_gelu") == 2);
  CHECK(calls_of(graph, "rush::gelu_bias_backward_") == 2);
  CHECK(calls_of(graph, "aten::gelu_backward") == 0);
  CHECK(calls_of(graph, "rush::foreach_to_copy") == (autocasts ? 2 : 0));
  CHECK(calls_of(graph, "rush::foreach_scale_") == 1);
  return trained;
}

}  // namespace

TEST_CASE("a net of plain modules gets fused operators, and trains as it does without") {
  for (const bool autocasts : {false, true}) {
    for (const double p : {0.0, 0.25}) {
      CAPTURE(autocasts);
      CAPTURE(p);
      const BlockTraining compiled = train_blocks(true, autocasts, p), plain = train_blocks(false, autocasts, p);
      CAPTURE(compiled.graph);
      for (size_t i = 0; i < plain.losses.size(); ++i) CHECK(alike(compiled.losses[i], plain.losses[i], autocasts));
      for (size_t i = 0; i < plain.weights.size(); ++i) CHECK(alike(compiled.weights[i], plain.weights[i], autocasts));
    }
  }
}

namespace {

// The third call of the function compiled gives what the function gives. Returns the graph.
template <class F>
Graph graph_of(const F& function, const std::vector<Tensor>& inputs) {
  const NoGradGuard no_grad;
  auto compiled = compile([&](const Tensor& a, const Tensor& b) { return function(a, b); });
  for (int i = 0; i < 3; ++i) {
    const std::vector<Tensor> got = compiled(inputs[0].clone(), inputs[1].clone());
    const std::vector<Tensor> expected = function(inputs[0].clone(), inputs[1].clone());
    REQUIRE(got.size() == expected.size());
    for (size_t r = 0; r < got.size(); ++r) {
      CAPTURE(r);
      CHECK(alike(got[r], expected[r]));
    }
  }
  REQUIRE(compiled.obstacle().empty());
  return compiled.graph();
}

}  // namespace

TEST_CASE("a sum and its norm are not one where something comes between them") {
  const Tensor a = randn({4, 8}), b = randn({4, 8}), w = rand({8}), bias = rand({8});
  const auto norm = [&](const Tensor& x) { return layer_norm(x, {8}, w, bias); };
  const auto fused = [](const Graph& graph) { return calls_of(graph, "rush::add_layer_norm"); };
  CHECK(fused(graph_of([&](const Tensor& x, const Tensor& y) { return std::vector{norm(x + y)}; }, {a, b})) == 1);
  const auto written = [&](const Tensor& x, const Tensor& y) {
    Tensor sum = x + y;
    sum.mul_(2);
    return std::vector{norm(sum), sum};
  };
  CHECK(fused(graph_of(written, {a, b})) == 0);
  const auto parameter_written = [&](const Tensor& x, const Tensor& y) {
    Tensor own = w.clone();
    const Tensor before = own * 2, sum = x + y;
    own.mul_(3);
    return std::vector{layer_norm(sum, {8}, own, bias), before};
  };
  CHECK(fused(graph_of(parameter_written, {a, b})) == 0);
  const auto scaled = [&](const Tensor& x, const Tensor& y) { return std::vector{norm(add(x, y, 2))}; };
  CHECK(fused(graph_of(scaled, {a, b})) == 0);
  const auto broadcast = [&](const Tensor& x, const Tensor& y) { return std::vector{norm(x + y[0])}; };
  CHECK(fused(graph_of(broadcast, {a, b})) == 0);
  const auto used_elsewhere = [&](const Tensor& x, const Tensor& y) {
    const Tensor sum = x + y, normed = norm(sum);
    return std::vector{normed, normed.to(kBFloat16), sum * 2, sum};
  };
  CHECK(fused(graph_of(used_elsewhere, {a, b})) == 1);
}

TEST_CASE("linear and GELU are not one where the linear's result is another") {
  const Tensor x = randn({4, 8}), weight = randn({6, 8}), bias = rand({6});
  const auto fused = [](const Graph& graph) { return calls_of(graph, "rush::linear_gelu"); };
  const auto both = [&](const Tensor& a, const Tensor& b) {
    const Tensor pre = nn::functional::linear(a, weight, b);
    return std::vector{gelu(pre, "tanh"), pre};
  };
  CHECK(fused(graph_of(both, {x, bias})) == 1);
  const auto exact = [&](const Tensor& a, const Tensor& b) {
    return std::vector{gelu(nn::functional::linear(a, weight, b))};
  };
  CHECK(fused(graph_of(exact, {x, bias})) == 0);
  const auto without_bias = [&](const Tensor& a, const Tensor&) {
    return std::vector{gelu(nn::functional::linear(a, weight), "tanh")};
  };
  CHECK(fused(graph_of(without_bias, {x, bias})) == 0);
  const auto written = [&](const Tensor& a, const Tensor& b) {
    Tensor pre = nn::functional::linear(a, weight, b);
    pre.add_(1);
    return std::vector{gelu(pre, "tanh")};
  };
  CHECK(fused(graph_of(written, {x, bias})) == 0);
}

TEST_CASE("the gradient of GELU is not written over what is returned or read again") {
  const Tensor x = randn({3, 2}), weight = randn({4, 2});
  const auto fused = [](const Graph& graph) { return calls_of(graph, "rush::gelu_bias_backward_"); };
  const auto gradients = [](const Tensor& a, const Tensor& w, const auto& results) {
    const Tensor pre = nn::functional::linear(a, w), incoming = pre.cumsum(0);
    const Tensor own = ops::gelu_backward(incoming, pre, "tanh");
    const auto [of_weight, of_bias] = ops::linear_parameter_gradients(own, a);
    return results(incoming, own, of_weight, of_bias);
  };
  const auto alone = [&](const Tensor& a, const Tensor& w) {
    return gradients(a, w, [](const Tensor&, const Tensor&, const Tensor& g, const Tensor& h) {
      return std::vector{g, h};
    });
  };
  CHECK(fused(graph_of(alone, {x, weight})) == 1);
  const auto returned = [&](const Tensor& a, const Tensor& w) {
    return gradients(a, w, [](const Tensor&, const Tensor& own, const Tensor& g, const Tensor& h) {
      return std::vector{g, h, own};
    });
  };
  CHECK(fused(graph_of(returned, {x, weight})) == 0);
  const auto read_again = [&](const Tensor& a, const Tensor& w) {
    return gradients(a, w, [](const Tensor& incoming, const Tensor&, const Tensor& g, const Tensor& h) {
      return std::vector{g, h, incoming.cumsum(1)};
    });
  };
  CHECK(fused(graph_of(read_again, {x, weight})) == 0);
}

TEST_CASE("casts become lists, and are done before their results are read and their sources written") {
  const Tensor a = randn({4, 8}), b = randn({8, 3}).t();
  const auto lists = [](const Graph& graph) { return calls_of(graph, "rush::foreach_to_copy"); };
  const auto inputs = [](const Tensor& x, const Tensor& y) {
    return std::vector{x.to(kFloat64), y.to(kFloat64), x.to(kBFloat16), y.to(kBFloat16)};
  };
  CHECK(lists(graph_of(inputs, {a, b})) == 2);
  const auto made = [](const Tensor& x, const Tensor& y) {
    const Tensor p = x.cumsum(0), q = y.cumsum(0), r = p.to(kFloat64), s = q.to(kFloat64);
    return std::vector{cat({r, s})};
  };
  CHECK(lists(graph_of(made, {a, b})) == 1);
  const auto written = [](const Tensor& x, const Tensor& y) {
    Tensor p = x.cumsum(0);
    const Tensor before = p.to(kFloat64);
    p.cumsum_(1);
    Tensor q = y;
    q.cumsum_(0);
    return std::vector{before, p, p.to(kFloat64), q.to(kFloat64)};
  };
  CHECK(lists(graph_of(written, {a, b})) == 1);
  const auto to_8_bits = [](const Tensor& x, const Tensor& y) {  // which no list takes
    return std::vector{x.to(kFloat8_e4m3fn), y.to(kFloat8_e4m3fn)};
  };
  CHECK(lists(graph_of(to_8_bits, {a, b})) == 0);
  const auto with_gaps = [](const Tensor& x, const Tensor& y) {
    return std::vector{x.narrow(1, 0, 3).to(kFloat64), y.narrow(0, 0, 2).to(kFloat64)};
  };
  CHECK(lists(graph_of(with_gaps, {a, b})) == 0);
}

TEST_CASE("a call that was made before is not made again, unless what it read was written") {
  const Tensor a = randn({4, 8}), b = randn({4, 8});
  const auto sums = [](const Graph& graph) { return calls_of(graph, "aten::cumsum"); };
  const auto twice = [](const Tensor& x, const Tensor& y) {
    return std::vector{x.cumsum(0) + y, x.cumsum(0) * y, x.cumsum(1) - y};
  };
  CHECK(sums(graph_of(twice, {a, b})) == 2);
  const auto written = [](const Tensor& x, const Tensor& y) {
    Tensor z = x.clone();
    const Tensor before = z.cumsum(0) + y;
    z.copy_(z.flip(0));
    return std::vector{before, z.cumsum(0) + y};
  };
  CHECK(sums(graph_of(written, {a, b})) == 2);
  const auto results_written = [](const Tensor& x, const Tensor& y) {
    Tensor z = x.cumsum(0);
    z.copy_(z.flip(0));
    return std::vector{z + y, x.cumsum(0) + y};
  };
  CHECK(sums(graph_of(results_written, {a, b})) == 2);
  const auto returned = [](const Tensor& x, const Tensor&) { return std::vector{x.cumsum(0), x.cumsum(0)}; };
  CHECK(sums(graph_of(returned, {a, b})) == 2);
  const auto random = [](const Tensor& x, const Tensor& y) {
    return std::vector{dropout(x, 0.5, true) - dropout(x, 0.5, true) + y};
  };
  const NoGradGuard no_grad;
  auto compiled = compile([&](const Tensor& x, const Tensor& y) { return random(x, y); });
  for (int i = 0; i < 3; ++i) CHECK_FALSE(compiled(a, b)[0].equal(b));
  CHECK(calls_of(compiled.graph(), "aten::native_dropout") == 2);
}

namespace {

// Two blocks of a residual network, and a norm whose ReLU is another's.
struct ResidualNetImpl : nn::Module {
  ResidualNetImpl() {
    for (const char* name : {"first", "second", "third"}) {
      convolutions.push_back(register_module(std::string(name) + "_convolution",
                                             nn::Conv2d(nn::Conv2dOptions(4, 4, 3).padding(1).bias(false))));
      norms.push_back(register_module(std::string(name) + "_norm", nn::BatchNorm2d(4)));
    }
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = relu(norms[0](convolutions[0](x)));
    const Tensor z = relu(y + norms[1](convolutions[1](y)));
    return norms[2](convolutions[2](z)).sigmoid();
  }
  std::vector<nn::Conv2d> convolutions;
  std::vector<nn::BatchNorm2d> norms;
};
RUSH_MODULE(ResidualNet);

struct NormedTraining {
  std::vector<Tensor> results;
  Graph graph;
};

NormedTraining train_residual_net(bool is_compiled, MemoryFormat format) {
  manual_seed(4);
  ResidualNet net;
  net->to(get_default_device());
  for (Tensor& parameter : net->parameters()) {
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(format));
  }
  optim::SGD optimizer(net->parameters(), 0.1);
  const auto step = [&](const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = net->forward(x).square().mean();
    loss.backward();
    optimizer.step();
    return loss;
  };
  auto compiled = compile(step);
  NormedTraining trained;
  for (int i = 0; i < 4; ++i) {
    const Tensor x = randn({2, 4, 5, 6}).contiguous(format);
    trained.results.push_back((is_compiled ? compiled(x) : step(x)).detach().clone());
  }
  for (const auto& tensors : {net->parameters(), net->buffers()})
    trained.results.insert(trained.results.end(), tensors.begin(), tensors.end());
  if (is_compiled) trained.graph = compiled.graph();
  return trained;
}

}  // namespace

TEST_CASE("batch norm, a sum and ReLU are one call where channels lie next to each other") {
  for (const MemoryFormat format : {MemoryFormat::ChannelsLast, MemoryFormat::Contiguous}) {
    const NormedTraining compiled = train_residual_net(true, format), plain = train_residual_net(false, format);
    CAPTURE(compiled.graph.print());
    const size_t expected = format == MemoryFormat::ChannelsLast ? 2 : 0;
    CHECK(calls_of(compiled.graph, "rush::native_batch_norm_relu") == expected);
    CHECK(calls_of(compiled.graph, "rush::native_batch_norm_relu_backward") == expected);
    CHECK(calls_of(compiled.graph, "aten::native_batch_norm") == 3 - expected);
    if (expected) CHECK(calls_of(compiled.graph, "aten::threshold_backward") == 0);
    REQUIRE(compiled.results.size() == plain.results.size());
    for (size_t i = 0; i < plain.results.size(); ++i) {
      CAPTURE(i);
      CHECK(alike(compiled.results[i], plain.results[i]));
    }
  }
}

TEST_CASE("batch norm and ReLU are not one where what lies between them is read, scaled or written") {
  const Tensor x = randn({3, 4, 2, 2}).contiguous(MemoryFormat::ChannelsLast), w = rand({4}), b = rand({4});
  const auto norm = [&](const Tensor& t) { return batch_norm(t, w, b, {}, {}, true, 0.1, 1e-5, true); };
  const auto fused = [&](const auto& function) {
    return calls_of(graph_of(function, {x, x}), "rush::native_batch_norm_relu");
  };
  CHECK(fused([&](const Tensor& a, const Tensor&) { return std::vector{relu(norm(a))}; }) == 1);
  CHECK(fused([&](const Tensor& a, const Tensor& r) { return std::vector{relu(r + norm(a))}; }) == 1);
  CHECK(fused([&](const Tensor& a, const Tensor& r) { return std::vector{relu(norm(a) + norm(r))}; }) == 1);
  CHECK(fused([&](const Tensor& a, const Tensor& r) { return std::vector{relu(norm(a) + r[0])}; }) == 0);
  CHECK(fused([&](const Tensor& a, const Tensor& r) { return std::vector{relu(add(norm(a), r, 2))}; }) == 0);
  CHECK(fused([&](const Tensor& a, const Tensor&) {
          const Tensor y = norm(a);
          return std::vector{relu(y), y};
        }) == 0);
  CHECK(fused([&](const Tensor& a, const Tensor& r) {
          const Tensor sum = norm(a) + r;
          return std::vector{relu(sum), sum};
        }) == 0);
  CHECK(fused([&](const Tensor& a, const Tensor&) {
          Tensor own = w.clone();
          const Tensor y = batch_norm(a, own, b, {}, {}, true, 0.1, 1e-5, true);
          own.mul_(2);
          return std::vector{relu(y), own};
        }) == 0);
}

// Of whole numbers, which are exact whatever a device multiplies with, and of which many are the same.
TEST_CASE("ReLU of a convolution comes after a max pool, and has the same gradients") {
  const auto whole = [](IntArrayRef sizes) { return randint(-3, 4, sizes).to(kFloat32); };
  const Tensor x = whole({2, 3, 9, 8}), w = whole({4, 3, 3, 3});
  const auto pool = [](const Tensor& t, int64_t stride) { return max_pool2d(t, {2, 2}, {stride, stride}); };
  // Which call makes what this one takes first.
  const auto before = [](const Graph& graph, std::string_view name) {
    const Graph::Id taken = std::ranges::find(graph.calls, name, &Graph::Call::name)->argument(0);
    const auto makes = [&](const Graph::Call& call) { return call.result() == taken; };
    return std::ranges::find_if(graph.calls, makes)->name;
  };
  for (const int64_t stride : {2, 1}) {  // windows that overlap, too
    const auto step = [&](const Tensor& a, const Tensor& gradient) {
      const AutoGradMode differentiates(true);
      const Tensor leaf = a.detach().requires_grad_(), weight = w.detach().requires_grad_();
      const Tensor pooled = pool(relu(conv2d(leaf, weight)), stride);
      return autograd::grad({pooled}, {leaf, weight}, {gradient * pooled.detach()});
    };
    const Tensor gradient = whole(pool(conv2d(x, w), stride).sizes());
    const Graph graph = graph_of(step, {x, gradient});
    CHECK(before(graph, "aten::max_pool2d_with_indices") == "aten::convolution");
    CHECK(before(graph, "aten::convolution_backward") == "aten::max_pool2d_with_indices_backward");
  }
  for (const bool sees_relu : {true, false}) {  // or where the largest is
    const auto seen = [&](const Tensor& a, const Tensor&) {
      const Tensor y = relu(conv2d(a, w));
      const auto [largest, where] = max_pool2d_with_indices(y, {2, 2});
      return std::vector{largest, sees_relu ? y : where.to(kFloat32)};
    };
    CHECK(before(graph_of(seen, {x, x}), "aten::max_pool2d_with_indices") == "aten::relu");
  }
}

TEST_CASE("norms are taken apart into one loop that gives what they give") {
  const Tensor w = rand({4}), b = rand({4}), mean = randn({4}), var = rand({4}) + 0.5;
  const auto check = [](const auto& function, const Tensor& x) {
    const NoGradGuard no_grad;
    Graph graph = make_fx([&](const std::vector<Tensor>& in) { return std::vector{function(in[0])}; }, {x});
    for (size_t i = graph.calls.size(); i-- > 0;) compiler::decompose(graph, i);
    compiler::fuse_element_wise_calls(graph, 2);
    CAPTURE(graph.print());
    const auto loops = std::ranges::count_if(graph.calls, [](const Graph::Call& call) { return bool{call.fused}; });
    CHECK(loops == 1);
    CHECK(std::ranges::all_of(graph.calls, [](const Graph::Call& call) { return call.fused || call.op->is_view(); }));
    CHECK(alike(GraphModule(graph)({x})[0], function(x)));
  };
  for (const ScalarType dtype : {kFloat32, kFloat64, kBFloat16}) {
    CAPTURE(dtype);
    const Tensor x = randn({2, 4, 3, 5}).to(dtype), r = randn({2, 4, 3, 5}).to(dtype);
    const ScalarType of_channels = dtype == kFloat64 ? dtype : kFloat32;
    const Tensor gain4 = w.to(of_channels), shift = b.to(of_channels), m = mean.to(of_channels),
                 v = var.to(of_channels);
    const auto inference = [&](const Tensor& t) {
      return relu(batch_norm(t, gain4, shift, m, v, false, 0.1, 1e-5, true) + r);
    };
    check(inference, x);
    check(inference, x.contiguous(MemoryFormat::ChannelsLast));
    check([&](const Tensor& t) { return relu(batch_norm(t, {}, {}, m, v, false, 0, 0.1, true)); }, x);
    const Tensor many = randn({3, 4, 23, 19}).to(dtype).contiguous(MemoryFormat::ChannelsLast);  // positions
    check([&](const Tensor& t) { return batch_norm(t, gain4, shift, m, v, false, 0, 0.1, true) * 2; }, many);
    const Tensor gain = rand({64}).to(dtype), rows = randn({3, 2, 64}).to(dtype), past = randn({3, 2, 64}).to(dtype);
    check([&](const Tensor& t) { return rms_norm(t + past, {64}, gain) * 2; }, rows);
    check([&](const Tensor& t) { return rms_norm(t * past, {64}); }, rows);
    check([&](const Tensor& t) { return layer_norm(t + past, {64}, gain, gain) * 2; }, rows);
    check([&](const Tensor& t) { return layer_norm(t + 5, {64}); }, rows);
  }
}

TEST_CASE("norms stay whole where no decomposition of them is known or another result is read") {
  const NoGradGuard no_grad;
  const Tensor x = randn({3, 4, 2, 2}), mean = randn({4}), var = rand({4});
  const auto is_decomposed = [&](const auto& function) {
    Graph graph = make_fx([&](const std::vector<Tensor>& in) { return function(in[0]); }, {x});
    bool any = false;
    for (size_t i = graph.calls.size(); i-- > 0;) any |= compiler::decompose(graph, i);
    return any;
  };
  const auto norm = [&](const Tensor& t, bool trains) {
    return batch_norm(t, {}, {}, mean, var, trains, 0.1, 1e-5, true);
  };
  CHECK(is_decomposed([&](const Tensor& t) { return std::vector{norm(t, false)}; }));
  CHECK_FALSE(is_decomposed([&](const Tensor& t) { return std::vector{norm(t, true)}; }));
  CHECK_FALSE(is_decomposed([&](const Tensor& t) { return std::vector{rms_norm(t, {2})}; }));  // too short a row
  CHECK_FALSE(is_decomposed([&](const Tensor& t) { return std::vector{rms_norm(t, {2, 2})}; }));
  CHECK_FALSE(is_decomposed([&](const Tensor& t) { return std::vector{rms_norm(t.transpose(2, 3), {2})}; }));
  CHECK_FALSE(is_decomposed([&](const Tensor& t) {
    const auto [y, none, also_none] = ops::native_batch_norm(t, {}, {}, mean, var, false, 0.1, 1e-5);
    return std::vector{y, none + 1};
  }));
}

namespace {

// A language model's head and a layer before it, in the words of plain modules: RMS norms, long rows of scores.
struct HeadImpl : nn::Module {
  explicit HeadImpl(int64_t classes)
      : first(register_module("first", nn::RMSNorm(nn::RMSNormOptions({32})))),
        second(register_module("second", nn::RMSNorm(nn::RMSNormOptions({32})))),
        hidden(register_module("hidden", nn::Linear(32, 32))),
        scores(register_module("scores", nn::Linear(32, classes))) {}
  Tensor forward(const Tensor& x) {
    const Tensor y = x + hidden(first(x));
    return scores(y + hidden(second(y)));
  }
  nn::RMSNorm first, second;
  nn::Linear hidden, scores;
};
RUSH_MODULE(Head);

using Loss = std::function<Tensor(const Tensor& scores, const Tensor& target)>;

NormedTraining train_head(bool is_compiled, bool autocasts, int64_t classes, const Loss& loss_of) {
  manual_seed(5);
  Head net(classes);
  net->to(get_default_device());
  optim::SGD optimizer(net->parameters(), 0.1);
  const auto step = [&](const Tensor& x, const Tensor& target) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const autocast::Autocast lower(x.device().type, kBFloat16, autocasts);
      loss = loss_of(net->forward(x), target);
    }
    loss.backward();
    optimizer.step();
    return loss;
  };
  auto compiled = compile(step);
  NormedTraining trained;
  for (int i = 0; i < 4; ++i) {
    const Tensor x = randn({6, 32}), target = randint(0, classes, {6}, kInt64);
    target[1].fill_(-100);
    trained.results.push_back((is_compiled ? compiled(x, target) : step(x, target)).detach().clone());
  }
  CHECK(compiled.obstacle().empty());
  for (const Tensor& parameter : net->parameters()) trained.results.push_back(parameter.detach());
  if (is_compiled) trained.graph = compiled.graph();
  return trained;
}

// How often the compiled training has the operator; both trainings give the same.
size_t calls_in_training(std::string_view name, const Loss& loss, int64_t classes = 1024, bool autocasts = false) {
  const NormedTraining compiled = train_head(true, autocasts, classes, loss);
  const NormedTraining plain = train_head(false, autocasts, classes, loss);
  CAPTURE(compiled.graph.print());
  for (size_t i = 0; i < plain.results.size(); ++i) CHECK(alike(compiled.results[i], plain.results[i], autocasts));
  return calls_of(compiled.graph, name);
}

}  // namespace

TEST_CASE("a loss of long rows and its gradient are one call, unless something else has use for the scores") {
  constexpr std::string_view kBoth = "rush::cross_entropy_gradient_";
  const Loss mean = [](const Tensor& x, const Tensor& y) { return cross_entropy_loss(x, y); };
  CHECK(calls_in_training(kBoth, mean) == 1);
  CHECK(calls_in_training("aten::ones_like", mean) == 0);
  CHECK(calls_in_training("rush::cross_entropy_backward", mean) == 0);
  CHECK(calls_in_training(kBoth, mean, 1030, /*autocasts=*/true) == 1);
  CHECK(calls_in_training(
            kBoth, [](const Tensor& x, const Tensor& y) { return cross_entropy_loss(x, y, {}, Reduction::Sum); }) == 1);
  CHECK(calls_in_training(kBoth, mean, 65, /*autocasts=*/true) == 1);
  CHECK(calls_in_training(kBoth, mean, 48) == 0);
  const Loss each = [](const Tensor& x, const Tensor& y) {
    return cross_entropy_loss(x, y, {}, Reduction::None).sum();
  };
  CHECK(calls_in_training(kBoth, each) == 0);
  CHECK(calls_in_training(kBoth, [](const Tensor& x, const Tensor& y) {
          return cross_entropy_loss(x, y, {}, Reduction::Mean, -100, 0.1);
        }) == 0);
  CHECK(calls_in_training(
            kBoth, [](const Tensor& x, const Tensor& y) { return cross_entropy_loss(x, y, ones({x.size(1)})); }) == 0);
  CHECK(calls_in_training(kBoth, [](const Tensor& x, const Tensor& y) { return cross_entropy_loss(x, y) * 2; }) == 0);
  CHECK(calls_in_training(kBoth, [](const Tensor& x, const Tensor& y) {
          return cross_entropy_loss(x, y) + 1e-3 * x.logsumexp(1).mean();
        }) == 0);
}

TEST_CASE("the gradient of an RMS norm, the sum past it and the cast for the product are one call") {
  const Loss loss = [](const Tensor& x, const Tensor&) { return x.to(kFloat32).square().mean(); };
  for (const bool autocasts : {false, true}) {
    CAPTURE(autocasts);
    CHECK(calls_in_training("rush::add_layer_norm_backward", loss, 16, autocasts) == 1);  // x has no gradient
  }
}

TEST_CASE("a bias before a norm of two dimensions gets a gradient of its own size") {
  const auto results = [](bool is_compiled) {
    manual_seed(8);
    nn::Linear layer(16, 16);
    nn::LayerNorm norm(nn::LayerNormOptions({3, 16}));
    layer->to(get_default_device());
    norm->to(get_default_device());
    const auto step = [&](const Tensor& x) {
      layer->zero_grad();
      const autocast::Autocast lower(x.device().type, kBFloat16);
      const Tensor stream = x + layer(x), y = stream + layer(norm(stream));
      const Tensor loss = (y * y).mean();
      loss.backward();
      return loss;
    };
    auto compiled = compile(step);
    for (int i = 0; i < 3; ++i) {
      const Tensor x = randn({4, 3, 16});
      is_compiled ? compiled(x) : step(x);
    }
    return std::vector{layer->weight.grad(), layer->bias.grad()};
  };
  const std::vector<Tensor> got = results(true), expected = results(false);
  for (const size_t i : {0, 1}) {
    REQUIRE(got[i].sizes() == expected[i].sizes());
    CHECK(alike(got[i], expected[i], /*has_16_bits=*/true));
  }
}

TEST_CASE("loops go on past casts of weights and calls of other sizes, and casts alone stay lists") {
  const Tensor a = randn({64, 32}), w = randn({32, 16});
  const auto cast_between = [](const Tensor& x, const Tensor& weight) {
    const Tensor y = (x * 2).tanh(), low = weight.to(kBFloat16), z = (y + 1).to(kBFloat16);
    return std::vector{z.matmul(low)};
  };
  const Graph graph = graph_of(cast_between, {a, w});
  CAPTURE(graph.print());
  CHECK(std::ranges::count_if(graph.calls, [](const Graph::Call& call) { return call.fused != nullptr; }) == 1);
  CHECK(calls_of(graph, "aten::_to_copy") == 1);
}
