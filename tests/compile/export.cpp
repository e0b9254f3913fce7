// rush::export_graph and load_graph: what is read computes what was written, and damaged files are refused.
#include "autograd/compile/export/export.h"

#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <vector>

#include "core/io/read_file.h"
#include "core/io/safetensors.h"
#include "rushlight.h"
#include "tests/temporary_folder.h"

using namespace rush;
using rush::testing::TemporaryFolder;

namespace {

nn::Sequential make_conv_net() {
  manual_seed(1);
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(1, 4, 3)), nn::BatchNorm2d(4), nn::ReLU(nn::ReLUOptions(true)),
                     nn::MaxPool2d(2), nn::Flatten(), nn::Linear(4 * 3 * 3, 16), nn::GELU(), nn::Dropout(0.3),
                     nn::Linear(16, 5));
  net->eval();
  return net;
}

// What a file says when `from` is replaced by `to` in its graph.
std::string with_graph(const std::string& path, const std::string& from, const std::string& to) {
  const io::SafetensorsFile file(path);
  std::string graph = file.metadata().at("graph");
  const size_t at = graph.find(from);
  REQUIRE(at != std::string::npos);
  graph.replace(at, from.size(), to);
  io::NamedTensors constants = io::load_safetensors(path);
  constants.pop_back();  // the checksum
  io::save_safetensors(path + ".changed", constants, {{"graph", graph}}, io::Checksum::Crc32);
  return path + ".changed";
}

}  // namespace

TEST_CASE("a net that is exported and loaded is the net, at any batch size") {
  const NoGradGuard no_grad;
  const TemporaryFolder folder;
  nn::Sequential net = make_conv_net();
  const auto forward = [&](const Tensor& x) { return net->forward(x); };
  export_graph(forward, {randn({3, 1, 8, 8})}, folder / "net.rush", {.dynamic = {{0, 0, "batch"}}});
  const LoadedGraph loaded = load_graph(folder / "net.rush", get_default_device());
  for (const int64_t n : {3, 1, 2, 17, 3}) {
    const Tensor x = randn({n, 1, 8, 8});
    CHECK(loaded(x)[0].equal(forward(x)));
    CHECK(loaded(x.permute({0, 1, 3, 2}))[0].equal(forward(x.permute({0, 1, 3, 2}).contiguous())));
  }
  auto compiled = compile(loaded, {.dynamic = true});
  for (const int64_t n : {4, 9, 6, 5}) {
    const Tensor x = randn({n, 1, 8, 8});
    CHECK(compiled(x)[0].equal(forward(x)));
  }
  CHECK(compiled.obstacle().empty());
}

TEST_CASE("images of any size, through strides and pools") {
  const NoGradGuard no_grad;
  const TemporaryFolder folder;
  nn::Sequential net(nn::Conv2d(nn::Conv2dOptions(3, 4, 3).stride(2).padding(1)), nn::ReLU(),
                     nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)), nn::Conv2d(4, 5, 1),
                     nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions({1, 1})), nn::Flatten(), nn::Linear(5, 2));
  const auto forward = [&](const Tensor& x) { return net->forward(x); };
  const std::vector<DynamicDim> dynamic = {{0, 2, "height"}, {0, 3, "width"}};
  export_graph(forward, {randn({2, 3, 20, 33})}, folder / "net.rush", {.dynamic = dynamic});
  const LoadedGraph loaded = load_graph(folder / "net.rush", get_default_device());
  for (const auto& [height, width] : {std::pair(20, 33), std::pair(1, 1), std::pair(64, 7), std::pair(19, 40)}) {
    const Tensor x = randn({2, 3, height, width});
    CHECK(loaded(x)[0].equal(forward(x)));
  }
  nn::ConvTranspose2d up(nn::ConvTranspose2dOptions(4, 3, 2).stride(2));
  const auto unet = [&](const Tensor& x) { return cat({up(net[0]->as<nn::Conv2d>()->forward(x)), x}, 1); };
  const std::vector<DynamicDim> even = {{0, 2, "height", 2}, {0, 3, "width", 2}}, odd = {{0, 2, "height", 3}};
  export_graph(unet, {randn({2, 3, 20, 6})}, folder / "unet.rush", {.dynamic = even});
  const Tensor image = randn({2, 3, 2, 34});
  CHECK(load_graph(folder / "unet.rush", get_default_device())(image)[0].equal(unet(image)));
  CHECK_THROWS_AS(export_graph(unet, {randn({2, 3, 20, 6})}, folder / "unet.rush", {.dynamic = dynamic}), ValueError);
  CHECK_THROWS_WITH_AS(export_graph(unet, {randn({2, 3, 20, 6})}, folder / "unet.rush", {.dynamic = odd}),
                       doctest::Contains("20 in the example, no multiple of 3"), ValueError);
  // What is cut by a size that was halved is none of them.
  const auto cuts = [&](const Tensor& x) { return x.slice(2, 0, x.size(2) / 2); };
  CHECK_THROWS_WITH_AS(export_graph(cuts, {randn({2, 3, 20, 33})}, folder / "cut.rush", {.dynamic = dynamic}),
                       doctest::Contains("does not do the same at all sizes"), ValueError);
}

TEST_CASE("a loaded graph is for inputs like its example") {
  const NoGradGuard no_grad;
  const TemporaryFolder folder;
  const auto multiply = [](const Tensor& x, const Tensor& y) { return std::tuple(x.matmul(y), x.sum()); };
  export_graph(multiply, {randn({2, 3}), randn({3, 2})}, folder / "product.rush");
  const LoadedGraph loaded = load_graph(folder / "product.rush", get_default_device());
  const Tensor x = randn({2, 3}), y = randn({3, 2});
  CHECK(loaded(x, y)[0].equal(x.matmul(y)));
  CHECK(loaded(x, y)[1].equal(x.sum()));
  CHECK_THROWS_AS(loaded(x), ValueError);
  CHECK_THROWS_AS(loaded(x, Tensor()), ValueError);
  CHECK_THROWS_AS(loaded(x, y.to(kFloat64)), ValueError);
  CHECK_THROWS_AS(loaded(x, y.unsqueeze(0)), ValueError);
  CHECK_THROWS_WITH_AS(loaded(x.repeat({2, 1}), y),
                       doctest::Contains("float32(2, 3) float32(3, 2), got float32(4, 3) float32(3, 2)"), ValueError);
}

TEST_CASE("inputs of the example may share memory, and are not changed") {
  const NoGradGuard no_grad;
  const TemporaryFolder folder;
  const Tensor x = ones({2, 3});
  const auto function = [](const Tensor& a, const Tensor& b) { return a.add_(1).view({-1}) * 10 + b.view({-1}); };
  export_graph(function, {x, x}, folder / "net.rush");
  CHECK(x.equal(ones({2, 3})));
  const Tensor a = randn({2, 3}), b = randn({2, 3}), expected = (a + 1).flatten() * 10 + b.flatten(), old = b.clone();
  CHECK(load_graph(folder / "net.rush", get_default_device())(a, b)[0].equal(expected));
  CHECK(b.equal(old));
}

TEST_CASE("a tensor that the function makes of its own numbers at each call is a constant at all sizes") {
  const NoGradGuard no_grad;
  const TemporaryFolder folder;
  const auto scale = [](const Tensor& x) { return (x - tensor({0.5f, 0.4f})) / tensor({0.2f, 0.3f}); };
  const ExportOptions dynamic{.dynamic = {{0, 0, "batch"}}};
  export_graph(scale, {randn({3, 2})}, folder / "net.rush", dynamic);
  const Tensor x = randn({7, 2});
  CHECK(load_graph(folder / "net.rush", get_default_device())(x)[0].equal(scale(x)));
  const auto depends = [](const Tensor& in) { return in * tensor({static_cast<float>(in.size(0))}); };
  CHECK_THROWS_AS(export_graph(depends, {randn({3, 2})}, folder / "net.rush", dynamic), ValueError);
}

TEST_CASE("recurrent layers and attention are whole in a file, with two dimensions that vary") {
  const NoGradGuard no_grad;
  const TemporaryFolder folder;
  manual_seed(2);
  nn::LSTM lstm(nn::LSTMOptions(6, 8).num_layers(2).bidirectional(true).batch_first(true));
  lstm->eval();
  const auto attend = [&](const Tensor& x) {
    const Tensor y = std::get<0>(lstm->forward(x)).view({x.size(0), x.size(1), 4, 4}).transpose(1, 2);
    const Tensor attended = scaled_dot_product_attention(y, y, y, {}, 0.0, /*is_causal=*/true);
    return attended.transpose(1, 2).contiguous().select(1, -1) / x.size(1);  // an offset of (time - 1) rows
  };
  export_graph(attend, {randn({3, 12, 6})}, folder / "net.rush", {.dynamic = {{0, 0, "batch"}, {0, 1, "time"}}});
  const LoadedGraph loaded = load_graph(folder / "net.rush", get_default_device());
  for (const auto& [batch, time] : {std::pair(3, 12), std::pair(1, 5), std::pair(7, 40), std::pair(4, 4)}) {
    const Tensor x = randn({batch, time, 6});
    CHECK(loaded(x)[0].allclose(attend(x), 1e-5, 1e-6));
  }
  const io::SafetensorsFile file(folder / "net.rush");
  for (const char* name : {"aten::lstm.input", "aten::scaled_dot_product_attention"})
    CHECK(file.metadata().at("graph").find(name) != std::string::npos);
}

TEST_CASE("functions that cannot be exported are refused") {
  const TemporaryFolder folder;
  const std::string path = folder / "net.rush";
  const Tensor x = ones({8, 2}), w = ones({2}).requires_grad_();
  const ExportOptions dynamic{.dynamic = {{0, 0, "batch"}}};
  CHECK_THROWS_WITH_AS(export_graph([](const Tensor& t) { return t * t.sum().item<float>(); }, {x}, path),
                       doctest::Contains("it reads a number from a tensor"), NotImplementedError);
  const auto depends_on_size = [](const Tensor& t) { return t.size(0) == 8 ? t * 2 : t + 1; };
  CHECK_THROWS_WITH_AS(export_graph(depends_on_size, {x}, path, dynamic),
                       doctest::Contains("does not do the same at all sizes"), ValueError);
  // Two traces agree with size(0) / 1 * 1 + 0, the third does not.
  const auto curved = [](const Tensor& t) { return t * std::max<int64_t>(t.size(0), 7); };
  CHECK_THROWS_AS(export_graph(curved, {x}, path, dynamic), ValueError);
  const auto plain = [](const Tensor& t) { return t * 2; };
  CHECK_THROWS_AS(export_graph(plain, {x}, path, {.dynamic = {{1, 0, "batch"}}}), ValueError);
  CHECK_THROWS_AS(export_graph(plain, {x}, path, {.dynamic = {{0, 2, "batch"}}}), IndexError);
  CHECK_THROWS_AS(export_graph(plain, {x}, path, {.dynamic = {{0, 0, "n"}, {0, 1, "n"}}}), ValueError);
  CHECK_THROWS_AS(export_graph(plain, {Tensor()}, path), ValueError);
  CHECK_THROWS_AS(export_graph([](const Tensor& t) { return std::tuple(t, Tensor()); }, {x}, path), ValueError);
  CHECK_THROWS_AS(export_graph(plain, {x}, folder / "nowhere/net.rush"), IOError);
  CHECK_NOTHROW(export_graph([&](const Tensor& t) { return t * w; }, {x}, path, dynamic));
}

TEST_CASE("damaged and hostile files are refused") {
  const NoGradGuard no_grad;
  const TemporaryFolder folder;
  const std::string path = folder / "net.rush";
  const Tensor w = randn({2});
  export_graph([&](const Tensor& x) { return (x.split(1, 0)[0] * w).sum(0); }, {randn({4, 2})}, path);
  const auto change = [&](const std::string& from, const std::string& to) { return with_graph(path, from, to); };
  REQUIRE(load_graph(change("aten::mul.Tensor", "aten::div.Tensor"), get_default_device())(randn({4, 2})).size() == 1);
  CHECK_THROWS_WITH_AS(load_graph(change("aten::mul.Tensor", "mine::mul")),
                       doctest::Contains("this program has no operator mine::mul"), IOError);

  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"{", ""},
           {"\"calls\":[", "\"calls\":[[],"},
           {"aten::mul.Tensor", "aten::launch"},
           {"aten::mul.Tensor", "aten::tanh"},  // another number of arguments
           {"\"outputs\":[", "\"outputs\":[99,"},
           {"\"inputs\":[0]", "\"inputs\":[-1]"},
           {"\"inputs\":[0]", "\"inputs\":[0.5]"},
           {"\"float32\"", "\"float33\""},
           {"\"Tensor\":[", "\"Tensor\":[0,"},
           {"{\"int\":", "{\"Generator\":"},
           {"\"expressions\":[]", "\"expressions\":[[0,5,-1,1,1,0]]"}}) {
    CAPTURE(from);
    CAPTURE(to);
    CHECK_THROWS_AS(load_graph(change(from, to)), IOError);
  }
  CHECK_THROWS_WITH_AS(load_graph(change("\"version\":1", "\"version\":2")),
                       doctest::Contains("version 2 of graph files"), IOError);
  // What is no graph of these operators is found when they are run.
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"{\"int\":0}", "{\"str\":\"0\"}"},
           {"{\"int\":1}", "{\"int\":3}"},
           {"{\"int\":1}", "{\"int\":-1}"},
           {"\"expressions\":[]", "\"expressions\":[[0,-1,-1,1,0,0]]"}}) {  // an input of unknown size
    CAPTURE(to);
    CHECK_THROWS_AS(load_graph(change(from, to), get_default_device())(randn({4, 2})), Error);
  }

  const std::vector<uint8_t> bytes = io::read_file(path);
  for (size_t i = 0; i < bytes.size(); i += 7) {
    std::string damaged(bytes.begin(), bytes.end());
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    folder.write("damaged.rush", damaged);
    CHECK_THROWS_AS(load_graph(folder / "damaged.rush"), Error);
    folder.write("damaged.rush", damaged.substr(0, i));
    CHECK_THROWS_AS(load_graph(folder / "damaged.rush"), Error);
  }
  io::save_safetensors(folder / "weights.safetensors", {{"w", w}}, {}, io::Checksum::Crc32);
  CHECK_THROWS_WITH_AS(load_graph(folder / "weights.safetensors"), doctest::Contains("has no graph"), IOError);
}
