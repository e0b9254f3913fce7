// rush::onnx: what is read back from a model computes what the function computes. tests/onnx_models.py has ONNX Runtime
// run the same files, which this writes to $RUSH_ONNX.
#include "autograd/compile/onnx/onnx.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "core/io/npy.h"
#include "core/io/proto_message.h"
#include "core/io/read_file.h"
#include "examples/gcn/gcn.h"
#include "examples/gpt/gpt.h"
#include "examples/mnist/net.h"
#include "examples/resnet/resnet.h"
#include "examples/spectrogram/classifier.h"
#include "rushlight.h"
#include "tests/temporary_folder.h"

using namespace rush;
using rush::testing::TemporaryFolder;

namespace {

struct Case {
  std::string name;
  compiler::Function function;
  Tensors inputs;
  std::vector<DynamicDim> dynamic = {{0, 0, "batch"}};
};

// A net of one input and one output.
template <class Net>
Case case_of(const std::string& name, Net net, const Tensor& input,
             std::vector<DynamicDim> dynamic = {{0, 0, "batch"}}) {
  net->eval();
  return {name, [net](const Tensors& in) mutable { return Tensors{net->forward(in[0])}; }, {input}, std::move(dynamic)};
}

// Statistics of a training, so that a batch norm in eval mode is not the identity.
template <class Net>
Net with_statistics(Net net, const Tensor& input) {
  net->train();
  net->forward(input);
  return net;
}

Tensor tokens(int64_t batch, int64_t time) { return randint(0, 65, {batch, time}, TensorOptions(kInt64)); }

std::vector<Case> examples_nets() {
  std::vector<Case> cases;
  const Tensor digits = randn({3, 1, 28, 28}), image = randn({2, 3, 64, 64}), sounds = randn({3, 32, 65});
  cases.push_back(case_of("mnist", with_statistics(examples::Net(), digits), digits));
  cases.push_back(
      case_of("resnet18", with_statistics(examples::ResNet(examples::ResNetConfig::of("resnet18")), image), image));
  examples::ResNetConfig bottlenecks = examples::ResNetConfig::of("resnet50");
  bottlenecks.depths = {1, 1, 1, 1};
  cases.push_back(case_of("resnet_of_bottlenecks", with_statistics(examples::ResNet(bottlenecks), image), image));
  cases.push_back(case_of("spectrogram", with_statistics(examples::SoundNet(), sounds), sounds));
  examples::GPTConfig config;
  config.vocab_size = 65;
  config.block_size = 32;
  config.n_layer = 2;
  config.n_head = 2;
  config.n_embd = 32;
  config.dropout = 0.1;
  config.vocab_padding = 3;
  examples::GPT gpt(config);
  gpt->eval();
  const auto logits = [gpt](const Tensors& in) mutable { return Tensors{gpt->forward(in[0])}; };
  cases.push_back({"gpt", logits, {tokens(3, 16)}, {{0, 0, "batch"}, {0, 1, "time"}}});
  const auto next = [gpt](const Tensors& in) mutable { return Tensors{gpt->forward(in[0]).select(1, -1).softmax(-1)}; };
  cases.push_back({"gpt_next", next, {tokens(3, 16)}});
  examples::GCN gcn(6, 5, 3, 0.5);
  gcn->eval();
  const auto scores = [gcn](const Tensors& in) mutable { return Tensors{gcn->forward(in[0], in[1])}; };
  cases.push_back({"gcn", scores, {rand({9, 9}), randn({9, 6})}, {{0, 0, "nodes"}, {0, 1, "nodes"}, {1, 0, "nodes"}}});
  return cases;
}

std::vector<Case> other_nets() {
  std::vector<Case> cases;
  nn::Sequential decoder(
      nn::Linear(8, 32), nn::Unflatten(1, std::vector<int64_t>{8, 2, 2}),
      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(8, 6, 3).stride(2).padding(1).output_padding(1).groups(2)),
      nn::GroupNorm(nn::GroupNormOptions(3, 6)), nn::SiLU(),
      nn::Upsample(nn::UpsampleOptions().scale_factor(std::vector<double>{2, 2}).mode(kNearest)),
      nn::Conv2d(nn::Conv2dOptions(6, 4, 3).padding(1).dilation(1)),
      nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
      nn::Upsample(nn::UpsampleOptions().size(std::vector<int64_t>{13, 11}).mode(kBilinear).align_corners(false)),
      nn::AvgPool2d(nn::AvgPool2dOptions(3).stride(2).padding(1)), nn::ELU(), nn::Tanh());
  cases.push_back(case_of("decoder", decoder, randn({3, 8})));
  using nn::functional::interpolate;
  const auto scaled = [](std::vector<double> by, auto mode) {
    return nn::functional::InterpolateFuncOptions().scale_factor(std::move(by)).mode(mode);
  };
  const auto doubles = [=](const Tensors& in) { return Tensors{interpolate(in[0], scaled({2, 3}, kNearest))}; };
  cases.push_back({"doubled_images", doubles, {randn({2, 3, 7, 9})}, {{0, 2, "height"}, {0, 3, "width"}}});
  const auto stretches = [=](const Tensors& in) {
    return Tensors{interpolate(in[0], scaled({0.5, 2}, kNearest)),
                   interpolate(in[0], scaled({1.5, 2.25}, kBilinear).align_corners(false)),
                   interpolate(in[0], scaled({1.7, 1.3}, kBilinear).align_corners(true))};
  };
  cases.push_back({"stretched_images", stretches, {randn({3, 2, 4, 8})}});
  nn::Sequential images(nn::Conv2d(nn::Conv2dOptions(3, 4, 3).stride(2).padding(1)), nn::BatchNorm2d(4), nn::ReLU(),
                        nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)),
                        nn::Conv2d(nn::Conv2dOptions(4, 5, 3).padding(1)),
                        nn::ConvTranspose2d(nn::ConvTranspose2dOptions(5, 5, 2).stride(2)));
  images->eval();
  const auto of_any_size = [images](const Tensors& in) mutable {
    const Tensor y = images->forward(in[0]);
    return Tensors{y, adaptive_avg_pool2d(y, {1, 1}).flatten(1).log_softmax(1)};
  };
  cases.push_back({"images_of_any_size", of_any_size, {randn({2, 3, 20, 33})}, {{0, 2, "height"}, {0, 3, "width"}}});
  nn::TransformerEncoderLayerOptions layer(16, 2);
  nn::TransformerEncoder encoder(nn::TransformerEncoderOptions(nn::TransformerEncoderLayer(layer), 2));
  encoder->eval();
  const auto encode = [encoder](const Tensors& in) mutable { return Tensors{encoder->forward(in[0])}; };
  cases.push_back({"transformer", encode, {randn({7, 3, 16})}, {{0, 0, "time"}, {0, 1, "batch"}}});
  return cases;
}

// Layers over x (T, N, 6), or (N, T, 6), and h (layers * directions, N, 5).
std::vector<Case> recurrent_nets() {
  std::vector<Case> cases;
  nn::LSTM lstm(nn::LSTMOptions(6, 5).num_layers(2).bidirectional(true).batch_first(true).dropout(0.5));
  lstm->eval();
  const auto run_lstm = [lstm](const Tensors& in) mutable {
    const auto [y, state] = lstm->forward(in[0]);
    return Tensors{y, std::get<0>(state), std::get<1>(state)};
  };
  cases.push_back({"lstm", run_lstm, {randn({3, 4, 6})}, {{0, 0, "batch"}, {0, 1, "time"}}});
  const auto with_state = [&](const std::string& name, auto net, const Tensor& h, std::vector<DynamicDim> dynamic) {
    net->eval();
    const auto run = [net](const Tensors& in) mutable {
      const auto [y, last] = net->forward(in[0], in[1]);
      return Tensors{y, last};
    };
    cases.push_back({name, run, {randn({4, 3, 6}), h}, std::move(dynamic)});
  };
  const std::vector<DynamicDim> both = {{0, 0, "time"}, {0, 1, "batch"}, {1, 1, "batch"}};
  with_state("gru", nn::GRU(nn::GRUOptions(6, 5).num_layers(2)), randn({2, 3, 5}), both);
  with_state("gru_both_ways", nn::GRU(nn::GRUOptions(6, 5).bidirectional(true).bias(false)), randn({2, 3, 5}), both);
  with_state("rnn", nn::RNN(nn::RNNOptions(6, 5)), randn({1, 3, 5}), both);
  nn::RNN relu(nn::RNNOptions(6, 5).bidirectional(true).nonlinearity(kReLU).batch_first(true));
  with_state("rnn_relu", relu, randn({2, 4, 5}), {{0, 0, "batch"}, {0, 1, "time"}, {1, 1, "batch"}});
  return cases;
}

// Functions of x (N, 4, 6) and y (4, 6).
std::vector<Case> operators() {
  using F = std::function<Tensor(const Tensor& x, const Tensor& y)>;
  const std::vector<std::pair<std::string, F>> functions = {
      {"arithmetic", [](auto& x, auto& y) { return (x + 2) * y.sub(x, 0.5) / (y.abs() + 1) - 1.5; }},
      {"powers", [](auto& x, auto& y) { return x.abs().pow(y).add(2).rsqrt() + y.pow(2) - x.square().exp().log(); }},
      {"integers", [](auto& x, auto& y) { return (x * 3).to(kInt64) * 2 + y.round().to(kInt64).clamp(-1, 1); }},
      {"mixed", [](auto& x, auto& y) { return x.to(kFloat64) * y + (x > 0.5).to(kFloat32) * 3; }},
      {"remainders",
       [](auto& x, auto& y) {
         const Tensor n = (x * 20).to(kInt64), m = (y.abs() * 5 + 1).to(kInt64);
         return n.remainder(-m) + n.fmod(m) * 2 + n.floor_divide(m) * 3 + n.div(-m, "trunc") +
                n.to(kInt32).div(3, "floor") + x.remainder(0.7) + x.fmod(y) + x.div(0.3, "floor");
       }},
      {"bits_of_masks", [](auto& x, auto& y) { return ((x > 0) & ~(y > 0)) | ((x > y) ^ (y < 1)); }},
      {"smooth_activations",
       [](auto& x, auto& y) {
         return softplus(x) + softplus(y, 2) + nn::functional::logsigmoid(x) + hardsigmoid(y) +
                prelu(x, full({4}, 0.3)) + x.matmul(ones({6})).unsqueeze(2) + y[0].dot(y[1]);
       }},
      {"filled",
       [](auto& x, auto& y) {
         return zeros_like(x).fill_(2) + ones_like(x) * y + full_like(y, 3) + eye(4, 6) + linspace(0, 1, 6) +
                scalar_tensor(2.5) + (x * 2).zero_() + x.argmax() + y.argmin();
       }},
      {"statistics",
       [](auto& x, auto& y) {
         return x.std(2, false, true) + y.var(0, true, true) + x.norm(1, 2, true) + linalg_vector_norm(y) +
                x.logsumexp({1, 2}, true);
       }},
      {"extremes_and_places",
       [](auto& x, auto& y) {
         const auto [most, at] = x.max(2);
         const auto [largest, places] = y.topk(3, 0);
         const auto [least, least_at] = x.topk(6, -1, false);
         return most + at + std::get<0>(x.min(1, true)).sum(2) + largest.sum() + places.sum() +
                least.select(2, 1) * least_at.select(2, 0);
       }},
      {"norms_of_samples",
       [](auto& x, auto& y) {
         return instance_norm(x, y.select(1, 0), y.select(1, 1), {}, {}, true, 0.1, 1e-5) +
                rms_norm(x, {6}, y[0], 1e-4) + rms_norm(x, {4, 6}) + batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5);
       }},
      {"borders",
       [](auto& x, auto& y) {
         return pad(x, {2, 1}, "reflect") + pad(y.unsqueeze(0), {1, 2}, "replicate") +
                pad(x.unsqueeze(0), {1, 2, 1, 0}, "reflect").squeeze(0).narrow(1, 0, 4);
       }},
      {"volumes",
       [](auto& x, auto& y) {
         const Tensor volume = (x + y).view({x.size(0), 2, 2, 2, 3});
         return max_pool3d(volume, {1, 2, 2}) +
                avg_pool3d(volume, {2, 2, 3}, {1}, {1, 0, 0}).narrow(2, 0, 2).narrow(3, 0, 1);
       }},
      {"gates_and_classes",
       [](auto& x, auto& y) {
         const Tensor gates = glu(x), classes = one_hot((y.narrow(1, 0, 3).abs() * 3).to(kInt64).clamp_max(4), 5);
         return gates.sum() + gates + classes.sum(2) +
                addmm(y.narrow(1, 0, 3), y, y.narrow(1, 0, 3).t().matmul(y).t(), 0.5, 2);
       }},
      {"stretched_rows_and_volumes",
       [](auto& x, auto& y) {
         using nn::functional::interpolate, nn::functional::InterpolateFuncOptions;
         const auto to = [](std::vector<int64_t> size, auto mode) {
           return InterpolateFuncOptions().size(std::move(size)).mode(mode);
         };
         const Tensor volume = (x + y).view({x.size(0), 2, 2, 2, 3}), image = (x + y).unsqueeze(1);
         return interpolate(x, to({9}, kNearest)).sum() +
                interpolate(y.unsqueeze(0), to({9}, kLinear).align_corners(false)) +
                interpolate(volume, to({3, 4, 5}, kTrilinear).align_corners(true)).sum({1, 2, 3, 4}).view({-1, 1, 1}) +
                interpolate(image, to({4, 9}, kBicubic).align_corners(false)).squeeze(1) +
                interpolate(volume, to({4, 4, 3}, kNearest)).mean();
       }},
      {"small_integers",
       [](auto& x, auto& y) {
         const Tensor n = (x * 40).to(kInt8), m = (y * 40).to(kInt8), sum = (n + m - n * m).neg().pow(2);
         return stack({sum, where(y > 0, n, m)}, -1) + n.masked_fill(y < 0, 3).relu().matmul(m.t()).sum();
       }},
      {"truth_values",
       [](auto& x, auto& y) {
         const Tensor p = x > 0, q = y > 0, both = where(q, p + q, p * q);
         return both.masked_fill(p.maximum(q).logical_not(), true);
       }},
      {"mixed_arguments",
       [](auto& x, auto& y) {
         const Tensor n = (x * 3).to(kInt64);
         return cat({n, x, n.clamp(-0.5, 1.5)}, 1) + n.floor().add(90).rsqrt().mean() + y.mean();
       }},
      {"comparisons", [](auto& x, auto& y) { return where((x >= y).logical_or(x < -1), x, y).to(kFloat64); }},
      {"comparisons_in_place",
       [](auto& x, auto& y) {
         return x.clone().gt_(y) * 2 + x.clone().ne_(0.5) + y.clone().logical_not_() + (x > 0).logical_or_(y);
       }},
      {"masks", [](auto& x, auto& y) { return x.masked_fill(y > 0, -2).masked_fill(x.ne(x), 1).maximum(y).neg(); }},
      {"activations",
       [](auto& x, auto& y) { return elu(x, 0.7) + selu(y) + gelu(y) + silu(x) + x.sigmoid() * hardtanh(y); }},
      {"trigonometry", [](auto& x, auto& y) { return x.sin() * y.cos() + x.erf() + x.floor() + y.ceil() + x.sign(); }},
      {"softmax",
       [](auto& x, auto& y) {
         return x.softmax(1) + y.log_softmax(-1) + x.flatten(1).softmax(1).view({-1, 4, 6});
       }},
      {"reductions", [](auto& x, auto&) { return x.sum({1}) + x.mean({1}) + x.amax({1}) - x.amin({1}); }},
      {"mean_of_all", [](auto& x, auto& y) { return x.mean() + x.sum() / x.size(0) + x.max() - y.min(); }},
      {"places", [](auto& x, auto&) { return x.argmax(2) + x.argmin(2, true).squeeze(2); }},
      {"views",
       [](auto& x, auto& y) {
         return x.permute({2, 0, 1}).reshape({6, -1}).t().unsqueeze(1) + y.view({4, 1, 6})[0];
       }},
      {"slices",
       [](auto& x, auto& y) {
         return x.narrow(2, 1, 4).slice(1, 0, 4, 2) + y[1].slice(0, 2) + x.select(1, -1).slice(1, 0, -2).unsqueeze(1);
       }},
      {"sizes",
       [](auto& x, auto& y) {
         return x.view({x.size(0) * 2, 2, 6}).slice(0, 1, x.size(0) * 2 - 1) + y.slice(0, 0, 2);
       }},
      {"joins",
       [](auto& x, auto& y) {
         return cat({x, y.expand({x.size(0), -1, -1})}, 1) + stack({x, x * 2}, 2).flatten(1, 2);
       }},
      {"parts",
       [](auto& x, auto&) {
         const auto p = x.split(2, 2);
         const auto u = x.unbind(1);
         return p[0].sum(1) * p[2].sum(1) + u[1].narrow(1, 0, 2);
       }},
      {"products", [](auto& x, auto& y) { return x.matmul(y.t()).bmm(x) + y.mm(y.t()).matmul(x) + x.add(1, 2); }},
      {"attention",
       [](auto& x, auto& y) {
         return scaled_dot_product_attention(x, x, x, y.mm(y.t()) > -0.5) +
                scaled_dot_product_attention(x, x, x, {}, 0.0, true, 0.3);
       }},
      {"masked_rows",
       [](auto& x, auto& y) {
         return scaled_dot_product_attention(x, x, x, (y.mm(y.t()) > -0.5).logical_and(y.narrow(1, 0, 1) > 0));
       }},
      {"fused",
       [](auto& x, auto& y) {
         const Tensor bias = y.sum(0).narrow(0, 0, 4);
         const auto [normalised, sum] = add_layer_norm(x, x * 2, {6}, y[0], y[1]);
         return normalised + sum + gelu_perceptron(x, y, bias, y.t(), y[2]);
       }},
      {"all_and_any",
       [](auto& x, auto& y) {
         return x.gt(-1).all(1, true).to(kFloat32) + x.gt(2).any(2, true) + y.gt(0).any().to(kFloat32) + y.lt(9).all() +
                (y.abs() * 9).to(kUInt8).all(0);
       }},
      {"indices",
       [i = tensor({2, 0}, kInt64), from_end = tensor({{-1, 0}, {1, -2}}, kInt64)](auto& x, auto& y) {
         return x.index_select(1, i).gather(2,
                                            (y > 0).to(kInt64).unsqueeze(0).narrow(1, 0, 2).expand({x.size(0), 2, 6})) +
                y.index({i}) + y.index({from_end}).sum();
       }},
      {"made",
       [](auto& x, auto& y) {
         return x + arange(x.size(0)).to(x.device()).view({-1, 1, 1}) + ones({x.size(0), 1, 6}) + full({4, 6}, 0.5) * y;
       }},
      {"in_place", [](auto& x, auto& y) { return (x * 2).add_(y).relu_().mul_(3).clamp_(0, 2).sub_(1, 0.5); }},
      {"triangles",
       [](auto& x, auto& y) {
         return x.tril(1) + y.triu(-1) + x.flip({1, 2}) + x.cumsum(1);
       }},
      {"padding",
       [](auto& x, auto& y) {
         return nn::functional::pad(x, nn::functional::PadFuncOptions({1, 2, 0, 1}).value(3)) +
                nn::functional::pad(y, nn::functional::PadFuncOptions({1, 2, 0, 1}));
       }},
      {"norms",
       [](auto& x, auto& y) {
         return layer_norm(x, {6}) + layer_norm(x, {4, 6}, y, y);
       }},
  };
  std::vector<Case> cases;
  for (const auto& [name, function] : functions) {
    const auto run = [function = function](const Tensors& in) { return Tensors{function(in[0], in[1])}; };
    cases.push_back({name, run, {randn({3, 4, 6}), randn({4, 6})}});
  }
  return cases;
}

std::vector<Case> all_cases() {
  manual_seed(1);
  std::vector<Case> all = examples_nets();
  for (auto& more : {other_nets(), recurrent_nets(), operators()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

// The inputs of a case with `size` instead of the dynamic sizes.
Tensors inputs_of(const Case& each, int64_t size) {
  Tensors inputs = each.inputs;
  for (const DynamicDim& d : each.dynamic) {
    Tensor& input = inputs[d.input];
    input = input.index_select(d.dim, arange(size, TensorOptions(kInt64)) % input.size(d.dim));
  }
  return inputs;
}

}  // namespace

TEST_CASE("a model that is written and read back is the function, at any size") {
  const NoGradGuard no_grad;
  const TemporaryFolder temporary;
  const char* const asked = std::getenv("RUSH_ONNX");
  const std::string folder = asked ? std::string(asked) + "/" : temporary.path() + "/";
  for (const Case& each : all_cases()) {
    CAPTURE(each.name);
    const std::string path = folder + each.name;
    onnx::export_model(each.function, each.inputs, path + ".onnx", {.dynamic = each.dynamic});
    const LoadedGraph loaded = onnx::load_model(path + ".onnx", get_default_device());
    for (const int64_t size : {1, 2, 5, 11}) {
      CAPTURE(size);
      const Tensors inputs = inputs_of(each, size), expected = each.function(inputs), found = loaded(inputs);
      REQUIRE(found.size() == expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        CHECK(found[i].scalar_type() == expected[i].scalar_type());
        CHECK(found[i].allclose(expected[i], 1e-4, 1e-5));
        if (asked) io::save_npy(str(path, '.', size, ".output_", i, ".npy"), expected[i]);
      }
      for (size_t i = 0; asked && i < inputs.size(); ++i)
        io::save_npy(str(path, '.', size, ".input_", i, ".npy"), inputs[i]);
    }
  }
}

TEST_CASE("a model has the names that it is given, and its sizes") {
  const NoGradGuard no_grad;
  const TemporaryFolder folder;
  const auto function = [](const Tensor& x, const Tensor& y) { return std::tuple(x + y, x.sum(0)); };
  onnx::export_model(function, {ones({4, 3}), ones({3})}, folder / "sum.onnx",
                     {.dynamic = {{0, -2, "rows"}}, .input_names = {"left", "right"}, .output_names = {"both"}});
  const std::vector<uint8_t> bytes = io::read_file(folder / "sum.onnx");
  const std::string text(bytes.begin(), bytes.end());
  for (const char* name : {"left", "right", "both", "output_1", "rows"}) CHECK(text.find(name) != std::string::npos);
  CHECK(text.find("input_0") == std::string::npos);
  const LoadedGraph loaded = onnx::load_model(folder / "sum.onnx", get_default_device());
  auto compiled = compile(loaded, {.dynamic = true});
  for (const int64_t rows : {2, 5, 7, 6}) {
    const Tensor x = randn({rows, 3}), y = randn({3});
    CHECK(loaded(x, y)[0].equal(x + y));
    CHECK(compiled(x, y)[0].equal(x + y));
    CHECK(compiled(x, y)[1].allclose(x.sum(0)));
  }
  CHECK(compiled.obstacle().empty());
  CHECK_THROWS_AS(loaded(ones({2, 3})), ValueError);
  const auto exported = [&](const ExportOptions& options) {
    onnx::export_model(function, {ones({4, 3}), ones({3})}, folder / "named.onnx", options);
    return onnx::load_model(folder / "named.onnx", get_default_device())(ones({4, 3}), ones({3}));
  };
  CHECK(exported({.input_names = {"value_0", "constant_1"}})[0].equal(full({4, 3}, 2.0f)));
  CHECK_THROWS_WITH_AS(exported({.input_names = {"x"}, .output_names = {"x"}}), doctest::Contains("called 'x'"),
                       ValueError);
  CHECK_THROWS_WITH_AS(exported({.output_names = {"a", "b", "c"}}), doctest::Contains("3 output_names for 2 outputs"),
                       ValueError);
  CHECK_THROWS_WITH_AS(load_graph(folder / "sum.onnx"), doctest::Contains("onnx::load_model reads"), IOError);
}

TEST_CASE("what ONNX cannot say is refused where it is called") {
  const NoGradGuard no_grad;
  const TemporaryFolder folder;
  const auto message = [&](const compiler::Function& function, const Tensor& x, std::vector<DynamicDim> dynamic = {}) {
    try {
      onnx::export_model(function, {x}, folder / "net.onnx", {.dynamic = std::move(dynamic)});
    } catch (const NotImplementedError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  const Tensor x = rand({4, 2, 3, 3});
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(2, 2, 3).padding(1)), nn::Hardshrink());
  const auto forward = [&](const Tensors& in) { return Tensors{net->forward(in[0])}; };
  const std::string named = message(forward, x);
  CHECK(named.find("there is no row for aten::hardshrink") != std::string::npos);
  CHECK(named.find("in Sequential.1") != std::string::npos);

  nn::Sequential norm(nn::BatchNorm2d(2));
  const auto train = [&](const Tensors& in) { return Tensors{norm->forward(in[0])}; };
  CHECK(message(train, x).find("as modules in training mode do") != std::string::npos);
  const auto drops = [](const Tensors& in) {
    return Tensors{std::get<0>(add_layer_norm(in[0], in[0], {3}, {}, {}, 1e-5, {}, 0.5))};
  };
  CHECK(message(drops, x).find("is in training mode") != std::string::npos);

  nn::LSTM lstm(nn::LSTMOptions(3, 4).num_layers(2).dropout(0.5));
  const auto recur = [&](const Tensors& in) { return Tensors{std::get<0>(lstm->forward(in[0][0]))}; };
  CHECK(message(recur, x).find("aten::lstm.input, call") != std::string::npos);
  nn::LSTM projected(nn::LSTMOptions(3, 4).proj_size(2));
  const auto project = [&](const Tensors& in) { return Tensors{std::get<0>(projected->forward(in[0][0]))}; };
  CHECK(message(project, x).find("has projections") != std::string::npos);

  const Tensor total = zeros({4, 2, 3, 3});
  const auto keeps = [&](const Tensors& in) { return Tensors{total.add_(in[0])}; };
  CHECK(message(keeps, x).find("writes a tensor that the function keeps") != std::string::npos);
  const auto overwrites = [](const Tensors& in) {
    const Tensor y = in[0] * 2, row = y.select(0, 0);
    y.add_(1);
    return Tensors{row};
  };
  CHECK(message(overwrites, x).find("writes in place what a view reads later") != std::string::npos);
  const auto splits = [](const Tensors& in) { return Tensors{in[0].split_with_sizes({1, in[0].size(0) - 1}, 0)[1]}; };
  CHECK(message(splits, x, {{0, 0, "batch"}}).find("divides a dynamic dimension") != std::string::npos);
  const auto alone = [](const Tensors& in) { return Tensors{max_pool2d(in[0][0], {2})}; };
  CHECK(message(alone, x).find("has an input without a batch") != std::string::npos);
  const auto counts = [](const Tensors& in) { return Tensors{arange(0, in[0].size(0), 0.5)}; };
  CHECK(message(counts, x, {{0, 0, "batch"}}).find("number 2, that is no integer") != std::string::npos);
  const auto pools = [](const Tensors& in) { return Tensors{adaptive_avg_pool2d(in[0], {2, 3})}; };
  CHECK(message(pools, rand({1, 2, 6, 3}), {{0, 2, "height"}}).find("for each size of a dynamic dim") !=
        std::string::npos);
  const auto stretches = [](const Tensors& in) {
    const auto options = nn::functional::InterpolateFuncOptions().scale_factor(std::vector<double>{1.7, 1.3});
    return Tensors{nn::functional::interpolate(in[0], options)};
  };
  CHECK(message(stretches, x).find("a scale that ONNX rounds otherwise") != std::string::npos);
  const auto scales = [](const Tensors& in) { return Tensors{in[0].clamp(0, in[0].size(0))}; };
  CHECK(message(scales, x, {{0, 0, "batch"}}).find("depends on a dynamic dimension") != std::string::npos);
}

TEST_CASE("indices that are a mask, and an ELU of a scaled input, are refused") {
  const NoGradGuard no_grad;
  const TemporaryFolder folder;
  const Tensor x = rand({4, 3});
  const auto chosen = [](const Tensor& in) { return in.index({in.select(1, 0) > 0.5}); };
  CHECK_THROWS_WITH_AS(onnx::export_model(chosen, {x}, folder / "net.onnx"),
                       doctest::Contains("sizes depend on values, in aten::index.Tensor"), NotImplementedError);
  const auto scaled = [](const Tensor& in) { return ops::elu(in, 1, 1, 2); };
  CHECK_THROWS_WITH_AS(onnx::export_model(scaled, {x}, folder / "net.onnx"), doctest::Contains("scales its input"),
                       NotImplementedError);
}

TEST_CASE("recurrent layers that run backwards are read, and refused where they are no layer of PyTorch's") {
  using io::ProtoMessage;
  const NoGradGuard no_grad;
  const TemporaryFolder folder;
  const auto initializer = [](const char* name, const Tensor& values) {
    ProtoMessage message;
    for (const int64_t size : values.sizes()) message.integer(1, size);
    const auto bytes = static_cast<size_t>(values.nbytes());
    return message.integer(2, 1).text(8, name).text(9, {static_cast<const char*>(values.data_ptr()), bytes});
  };
  const TensorOptions on_cpu = TensorOptions(kFloat32).device(kCPU);
  const auto output = [&](const char* op, int64_t gates, const ProtoMessage& attribute, const Tensor& x) {
    const Tensor w = ones({1, gates * 5, 6}, on_cpu) / 8, r = ones({1, gates * 5, 5}, on_cpu) / 16;
    const auto node = ProtoMessage().text(1, "x").text(1, "w").text(1, "r").text(2, "y").text(4, op);
    const auto graph = ProtoMessage().message(11, ProtoMessage().text(1, "x")).message(5, initializer("w", w));
    const auto model =
        ProtoMessage(graph).message(5, initializer("r", r)).message(1, ProtoMessage(node).message(5, attribute));
    const auto with_output = ProtoMessage(model).message(12, ProtoMessage().text(1, "y"));
    const auto file = ProtoMessage().message(8, ProtoMessage().integer(2, 21)).message(7, with_output);
    return onnx::load_model(folder.write("made.onnx", file.bytes()), get_default_device())(x)[0];
  };
  const Tensor x = randn({4, 3, 6});
  const auto direction = [](const char* which) { return ProtoMessage().text(1, "direction").text(4, which); };
  for (const auto& [op, gates] : {std::pair("LSTM", 4), std::pair("RNN", 1)}) {
    const Tensor forward = output(op, gates, direction("forward"), x);
    CHECK(forward.sizes() == IntArrayRef({4, 1, 3, 5}));
    const Tensor reverse = output(op, gates, direction("reverse"), x.flip({0}));
    CHECK(reverse.flip({0}).equal(forward));
    CHECK(!reverse.equal(forward));
    const auto clip = ProtoMessage().text(1, "clip").float32(2, 3);
    CHECK_THROWS_WITH_AS(output(op, gates, clip, x), doctest::Contains("clip"), NotImplementedError);
    const auto activations = ProtoMessage().text(1, "activations").text(9, "Affine");
    CHECK_THROWS_WITH_AS(output(op, gates, activations, x), doctest::Contains("'Affine '"), NotImplementedError);
  }
  CHECK_THROWS_WITH_AS(output("GRU", 3, direction("forward"), x), doctest::Contains("GRU"), NotImplementedError);
  const auto reset = ProtoMessage().text(1, "linear_before_reset").integer(3, 1);
  CHECK(output("GRU", 3, reset, x).sizes() == IntArrayRef({4, 1, 3, 5}));
}

TEST_CASE("damaged and hostile models are refused") {
  const NoGradGuard no_grad;
  const TemporaryFolder folder;
  nn::Sequential net(nn::Linear(3, 4), nn::ReLU(), nn::Linear(4, 2));
  const Tensor x = randn({2, 3});
  onnx::export_model(
      [&](const Tensor& in) {
        return net->forward(in).softmax(1).reshape({4, -1});
      },
      {x}, folder / "net.onnx");
  const std::vector<uint8_t> bytes = io::read_file(folder / "net.onnx");
  const std::string model(bytes.begin(), bytes.end());
  size_t refused = 0;
  for (size_t i = 0; i < model.size(); ++i) {
    std::string damaged = model;
    damaged[i] = static_cast<char>(damaged[i] ^ 1 << i % 8);
    for (const std::string& each : {damaged, model.substr(0, i)}) {
      try {
        onnx::load_model(folder.write("damaged.onnx", each), get_default_device())(x);
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  CHECK(refused > model.size());  // all that are cut off, and most changes of what is no weight

  using io::ProtoMessage;
  const auto load = [&](const ProtoMessage& graph, int64_t opset) {
    const ProtoMessage file = ProtoMessage().message(8, ProtoMessage().integer(2, opset)).message(7, graph);
    return onnx::load_model(folder.write("made.onnx", file.bytes()), get_default_device());
  };
  const auto value = [](const char* name) { return ProtoMessage().text(1, name); };
  const auto node = [](const char* op, const std::vector<const char*>& inputs) {
    ProtoMessage message;
    for (const char* input : inputs) message.text(1, input);
    return message.text(2, "y").text(4, op);
  };
  const auto graph = [&](const ProtoMessage& with) {
    return ProtoMessage().message(11, value("x")).message(1, with).message(12, value("y"));
  };
  CHECK(load(graph(node("Relu", {"x"})), 21)(x)[0].equal(x.relu()));
  CHECK_THROWS_WITH_AS(load(graph(node("Relu", {"x"})), 12), doctest::Contains("opset 12"), NotImplementedError);
  const auto others = ProtoMessage().text(1, "ai.onnx.ml").integer(2, 21);
  const auto old = ProtoMessage().message(8, ProtoMessage().integer(2, 11)).message(8, others);
  const std::string path = folder.write("made.onnx", ProtoMessage(old).message(7, graph(node("Relu", {"x"}))).bytes());
  CHECK_THROWS_WITH_AS(onnx::load_model(path), doctest::Contains("opset 11"), NotImplementedError);
  CHECK_THROWS_WITH_AS(load(graph(node("Launch", {"x"})), 21), doctest::Contains("Launch"), NotImplementedError);
  CHECK_THROWS_WITH_AS(load(graph(node("Relu", {"z"})), 21), doctest::Contains("'z' is read before"), IOError);
  CHECK_THROWS_AS(load(graph(node("Relu", {"x", "x"})), 21), IOError);
  for (const char* op :
       {"Add", "Conv", "Gemm", "Reshape", "Slice", "Where", "MaxPool", "Cast", "Resize", "LSTM", "GRU", "RNN"}) {
    CAPTURE(op);
    CHECK_THROWS_AS(load(graph(node(op, {"x"})), 21)(x), Error);
    CHECK_THROWS_AS(load(graph(node(op, {"x", ""})), 21)(x), Error);
  }
  const ProtoMessage short_of_bytes = ProtoMessage().text(8, "w").integer(1, int64_t{1} << 62).integer(2, 1);
  CHECK_THROWS_AS(load(graph(node("Relu", {"x"})).message(5, short_of_bytes), 21), IOError);
  CHECK_THROWS_AS(onnx::load_model(folder / "nowhere.onnx"), IOError);
}
