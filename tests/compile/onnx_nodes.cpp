// Nodes of ONNX that other exporters write: what load_model reads computes what ONNX says, and all else is refused.
// tests/onnx_cases.py has it run ONNX's own cases, which lie in $RUSH_ONNX_CASES.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "autograd/compile/onnx/onnx.h"
#include "core/io/npy.h"
#include "core/io/proto_message.h"
#include "rushlight.h"
#include "tests/temporary_folder.h"

using namespace rush;
using io::ProtoMessage;
using rush::testing::TemporaryFolder;

namespace {

// Attributes.
ProtoMessage named(const char* name) { return ProtoMessage().text(1, name); }
ProtoMessage number(const char* name, int64_t value) { return named(name).integer(3, value); }
ProtoMessage word(const char* name, const char* value) { return named(name).text(4, value); }
ProtoMessage list(const char* name, const std::vector<int64_t>& values) {
  ProtoMessage attribute = named(name);
  for (const int64_t value : values) attribute.integer(8, value);
  return attribute;
}

// A node; its inputs are those of the model, but for undefined ones.
struct OnnxNode {
  const char* op;
  std::vector<ProtoMessage> attributes;
  const char* domain = "";
};
std::string model_of(const OnnxNode& node, const Tensors& inputs, size_t outputs) {
  ProtoMessage message, graph;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = inputs[i].defined() ? "x" + std::to_string(i) : "";
    message.text(1, name);
    if (inputs[i].defined()) graph.message(11, named(name.c_str()));
  }
  for (size_t i = 0; i < outputs; ++i) message.text(2, "y" + std::to_string(i));
  message.text(4, node.op).text(7, node.domain);
  for (const ProtoMessage& attribute : node.attributes) message.message(5, attribute);
  graph.message(1, message);
  for (size_t i = 0; i < outputs; ++i) graph.message(12, named(("y" + std::to_string(i)).c_str()));
  return ProtoMessage().message(8, ProtoMessage().integer(2, 21)).message(7, graph).bytes();
}
Tensors run(const OnnxNode& node, const Tensors& inputs, size_t outputs = 1) {
  const TemporaryFolder folder;
  const LoadedGraph graph =
      onnx::load_model(folder.write("made.onnx", model_of(node, inputs, outputs)), get_default_device());
  Tensors defined;
  for (const Tensor& input : inputs) {
    if (input.defined()) defined.push_back(input);
  }
  return graph(defined);
}

Tensor ints(const std::vector<int64_t>& values) { return tensor(values, TensorOptions(kInt64)); }

}  // namespace

TEST_CASE("nodes as other exporters write them") {
  const NoGradGuard no_grad;
  const Tensor x = randn({2, 3, 8}), image = randn({2, 3, 6, 5}), volume = randn({1, 2, 4, 5, 6});
  const Tensor weight = randn({4, 3, 3});
  const Tensor row = arange(1, 8, TensorOptions(kFloat32)), none;
  const auto scales = [](const std::vector<float>& of) { return tensor(of, TensorOptions(kFloat32)); };
  struct Case {
    OnnxNode node;
    Tensors inputs, expected;
  };
  const ProtoMessage axis_0 = number("axis", 0);
  const Case cases[] = {
      {{"ArgMax", {number("axis", 1), number("select_last_index", 0)}}, {x}, {x.argmax(1, true)}},
      {{"CumSum", {}}, {ints({1, 2, 3}).to(kInt32), ints({0})}, {ints({1, 3, 6}).to(kInt32)}},
      {{"CumSum", {number("reverse", 1), number("exclusive", 1)}},
       {ints({1, 2, 3, 4}), ints({0})},
       {ints({9, 7, 4, 0})}},
      {{"Slice", {}}, {row, ints({5}), ints({0}), ints({0}), ints({-2})}, {scales({6, 4, 2})}},
      {{"Slice", {}}, {row, ints({-1}), ints({-100}), ints({0}), ints({-3})}, {scales({7, 4, 1})}},
      {{"Slice", {}}, {row, ints({2}), ints({4}), ints({0}), ints({-1})}, {scales({})}},
      {{"Split", {axis_0, number("num_outputs", 2)}}, {row}, {row.slice(0, 0, 4), row.slice(0, 4, 7)}},
      {{"MaxPool", {list("kernel_shape", {3}), list("strides", {2})}},
       {x},
       {ops::max_pool1d(x, {3}, {2}, {0}, {1}, false)}},
      {{"MaxPool", {list("kernel_shape", {2, 3, 2}), word("auto_pad", "VALID")}},
       {volume},
       {ops::max_pool3d(volume, {2, 3, 2}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, false)}},
      {{"MaxPool", {list("kernel_shape", {2, 2}), word("auto_pad", "SAME_LOWER")}},
       {image},
       {ops::max_pool2d(constant_pad_nd(image, {1, 0, 1, 0}, -1e9), {2, 2}, {1, 1}, {0, 0}, {1, 1}, false)}},
      {{"Conv", {list("pads", {0, 2})}}, {x, weight}, {conv1d(constant_pad_nd(x, {0, 2}, 0), weight)}},
      {{"Conv", {word("auto_pad", "SAME_UPPER"), list("strides", {3})}},
       {x, weight},
       {conv1d(constant_pad_nd(x, {0, 1}, 0), weight, {}, 3)}},
      {{"AveragePool", {list("kernel_shape", {4}), list("pads", {1, 1})}},
       {x},
       {ops::avg_pool1d(x, {4}, {1}, {1}, false, false)}},
      {{"GatherElements", {axis_0}}, {row, ints({-1, 0, -7})}, {scales({7, 1, 1})}},
      {{"Max", {}}, {row, row * 0 + 3, row * 0 - 1}, {row.clamp(3, 7)}},
      {{"Sum", {}}, {row}, {row}},
      {{"Clip", {}}, {row}, {row}},
      {{"Range", {}}, {full({}, 1.5), full({}, 3.0), full({}, 0.5)}, {scales({1.5f, 2, 2.5f})}},
      {{"Pow", {}}, {ints({2, 3}), scales({2.5f, 2})}, {ints({5, 9})}},
      {{"Flatten", {number("axis", -1)}}, {x}, {x.reshape({6, 8})}},
      {{"Flatten", {axis_0}}, {x}, {x.reshape({1, 48})}},
      {{"HardSigmoid", {}}, {x}, {clamp(x * 0.2 + 0.5, 0, 1)}},
      {{"InstanceNormalization", {}},
       {image, row.slice(0, 0, 3), row.slice(0, 1, 4)},
       {instance_norm(image, row.slice(0, 0, 3), row.slice(0, 1, 4), {}, {}, true, 0, 1e-5)}},
      {{"Mod", {}}, {ints({-7, 7}), ints({2, -2})}, {ints({1, -1})}},
      {{"TopK", {number("axis", 0)}}, {row, ints({2})}, {scales({7, 6}), ints({6, 5})}},
      {{"Dropout", {}}, {x}, {x}},
      {{"Dropout", {}}, {x}, {x, ones({2, 3, 8}, TensorOptions(kBool))}},
      {{"ReduceSum", {number("keepdims", 0)}}, {ints({1, 2, 3}).to(kInt32)}, {tensor(6, TensorOptions(kInt32))}},
      {{"Resize", {word("coordinate_transformation_mode", "asymmetric"), word("nearest_mode", "floor")}},
       {image, none, scales({1, 1, 1.5f, 2.3f})},
       {ops::upsample_nearest2d(image, {9, 11}, 1.5, 2.3f)}},
      {{"Resize", {word("mode", "linear")}},
       {x, none, none, ints({2, 3, 5})},
       {ops::upsample_linear1d(x, {5}, false, {})}},
      {{"Resize", {word("mode", "cubic"), word("coordinate_transformation_mode", "align_corners")}},
       {image, none, none, ints({2, 3, 9, 4})},
       {ops::upsample_bicubic2d(image, {9, 4}, true, {}, {})}},
      {{"Constant", {list("value_ints", {4, -5})}}, {}, {ints({4, -5})}},
      {{"Constant", {named("value_float").float32(2, 0.25f)}}, {}, {full({}, 0.25f)}},
      {{"Constant", {named("value_floats").float32(7, 1.5f).float32(7, -2)}}, {}, {scales({1.5f, -2})}},
  };
  for (const Case& each : cases) {
    CAPTURE(each.node.op);
    const Tensors got = run(each.node, each.inputs, each.expected.size());
    REQUIRE(got.size() == each.expected.size());
    for (size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].scalar_type() == each.expected[i].scalar_type());
      CHECK(got[i].to(each.expected[i].device()).equal(each.expected[i]));
    }
  }
  const Tensors norm = run({"LayerNormalization", {}}, {x, ones({8})}, 3);
  CHECK(norm[1].allclose(x.mean({-1}, true), 1e-4, 1e-6));
  CHECK(norm[2].allclose((x.var({-1}, false, true) + 1e-5).rsqrt(), 1e-4, 1e-6));
}

TEST_CASE("a node that asks for what is not read is refused") {
  const Tensor x = randn({2, 3, 8}), image = randn({2, 3, 6, 5}), w = randn({3, 2, 3}), none;
  struct Case {
    OnnxNode node;
    Tensors inputs;
    const char* named;
  };
  const ProtoMessage kernel = list("kernel_shape", {2});
  const Case cases[] = {
      {{"ArgMax", {number("select_last_index", 1)}}, {x}, "'select_last_index'"},
      {{"MaxPool", {kernel, number("storage_order", 1)}}, {x}, "'storage_order'"},
      {{"AveragePool", {kernel, word("auto_pad", "SAME_UPPER")}}, {x}, "pads (0, 1)"},
      {{"ConvTranspose", {word("auto_pad", "SAME_LOWER")}}, {x, w}, "auto_pad"},
      {{"AveragePool", {kernel, list("dilations", {2})}}, {x}, "dilations (2)"},
      {{"ConvTranspose", {list("output_shape", {9})}}, {x, w}, "'output_shape'"},
      {{"BatchNormalization", {number("training_mode", 1)}}, {x, x, x, x, x}, "'training_mode'"},
      {{"Relu", {named("slope").float32(2, 0.5f)}}, {x}, "'slope'"},
      {{"Resize", {number("antialias", 1)}}, {image, none, none, ints({2, 3, 3, 3})}, "'antialias'"},
      {{"Resize", {}}, {image, none, none, ints({2, 3, 3, 3})}, "nearest, half_pixel"},
      {{"Resize", {word("mode", "linear")}}, {x, none, none, ints({2, 6, 8})}, "of dimension 1"},
      {{"Resize", {word("mode", "linear"), word("coordinate_transformation_mode", "align_corners")}},
       {x, none, tensor(std::vector<float>{1, 1, 0.8f})},
       "aligned corners"},
      {{"Dropout", {}}, {x, full({}, 0.5), full({}, true, kBool)}, "of training"},
      {{"Gelu", {}, "com.microsoft"}, {x}, "com.microsoft::Gelu"},
      {{"LRN", {number("size", 3)}}, {image}, "no row for the operator LRN"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.named);
    CHECK_THROWS_WITH_AS(run(each.node, each.inputs), doctest::Contains(each.named), NotImplementedError);
  }
}

TEST_CASE("hostile nodes are refused") {
  const Tensor x = randn({2, 3, 8}), none;
  const auto scale = [](float by) { return tensor(std::vector<float>{1, 1, by}, TensorOptions(kFloat32)); };
  CHECK(run({"Flatten", {number("axis", 1)}}, {zeros({0, 3, 2})})[0].sizes() == IntArrayRef({0, 6}));
  CHECK_THROWS_AS(run({"Flatten", {number("axis", 4)}}, {x}), ValueError);
  CHECK_THROWS_AS(run({"Flatten", {number("axis", -4)}}, {x}), ValueError);
  for (const float by :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -1.0f, 3e38f}) {
    CHECK_THROWS_AS(run({"Resize", {word("mode", "linear")}}, {x, none, scale(by)}), ValueError);
  }
  CHECK_THROWS_AS(run({"Resize", {}}, {x, none, none, ints({2, 3})}), ValueError);
  for (const ProtoMessage& attribute :
       {list("strides", {0}), list("dilations", {-1}), list("strides", {2, 2}), list("pads", {1})})
    CHECK_THROWS_AS(run({"Conv", {word("auto_pad", "SAME_UPPER"), attribute}}, {x, x}), ValueError);
  CHECK_THROWS_AS(run({"Conv", {}}, {x, ones({3})}), ValueError);
  const auto no_outputs = ProtoMessage().text(1, "x0").text(4, "Split");
  const auto graph = ProtoMessage().message(11, named("x0")).message(1, no_outputs).message(12, named("x0"));
  const auto file = ProtoMessage().message(8, ProtoMessage().integer(2, 21)).message(7, graph);
  const TemporaryFolder folder;
  CHECK_THROWS_AS(onnx::load_model(folder.write("made.onnx", file.bytes()))({x.cpu()}), ValueError);
}

TEST_CASE("an output without a name is none for the nodes after it") {
  const TemporaryFolder folder;
  const auto split = ProtoMessage().text(1, "x").text(2, "").text(2, "b").text(4, "Split");
  const auto clip = ProtoMessage().text(1, "b").text(1, "").text(1, "most").text(2, "y").text(4, "Clip");
  const ProtoMessage most = ProtoMessage().integer(2, 1).text(8, "most").text(9, {"\0\0\0\x40", 4});
  const auto graph = ProtoMessage().message(11, named("x")).message(5, most).message(1, split).message(1, clip);
  const auto file =
      ProtoMessage().message(8, ProtoMessage().integer(2, 13)).message(7, ProtoMessage(graph).message(12, named("y")));
  const LoadedGraph loaded = onnx::load_model(folder.write("made.onnx", file.bytes()), get_default_device());
  CHECK(loaded(tensor({9.0f, 9.0f, 1.0f, 3.0f}))[0].equal(tensor({1.0f, 2.0f})));
}

TEST_CASE("weights lie as bytes or as numbers") {
  const TemporaryFolder folder;
  const auto loaded = [&](int64_t data_type, const ProtoMessage& values) {
    const ProtoMessage weight = ProtoMessage(values).integer(1, 2).integer(2, data_type).text(8, "w");
    const auto node = ProtoMessage().text(1, "w").text(2, "y").text(4, "Identity");
    const auto graph = ProtoMessage().message(5, weight).message(1, node).message(12, named("y"));
    const auto file = ProtoMessage().message(8, ProtoMessage().integer(2, 21)).message(7, graph);
    return onnx::load_model(folder.write("made.onnx", file.bytes()))({})[0];
  };
  const auto in = [](ScalarType dtype) { return TensorOptions(dtype).device(kCPU); };
  const auto numbers = [](uint32_t field, int64_t a, int64_t b) {
    return ProtoMessage().integer(field, a).integer(field, b);
  };
  CHECK(loaded(6, numbers(5, -3, 1 << 20)).equal(tensor({-3, 1 << 20}, in(kInt32))));
  CHECK(loaded(3, numbers(5, -3, 7)).equal(tensor({-3, 7}, in(kInt8))));
  CHECK(loaded(9, numbers(5, 1, 0)).equal(tensor({true, false}, in(kBool))));
  CHECK(loaded(10, numbers(5, 0x3c00, 0xc000)).equal(tensor({1.0, -2.0}, in(kHalf))));
  CHECK(loaded(7, numbers(7, -3, int64_t{1} << 40)).equal(tensor({int64_t{-3}, int64_t{1} << 40}, in(kInt64))));
  CHECK(loaded(11, ProtoMessage().float64s(10, {0.1, -2})).equal(tensor({0.1, -2.0}, in(kFloat64))));
  CHECK_THROWS_AS(loaded(9, numbers(5, 1, 2)), IOError);  // no bool
}

TEST_CASE("weights lie in a file beside the model") {
  const TemporaryFolder folder;
  const auto loaded = [&](const char* location, const char* offset) {
    const auto entry = [](const char* key, const char* value) { return named(key).text(2, value); };
    const auto weight = ProtoMessage().text(8, "w").integer(1, 2).integer(2, 6).integer(14, 1);
    const auto values =
        ProtoMessage(weight).message(13, entry("location", location)).message(13, entry("offset", offset));
    const auto node = ProtoMessage().text(1, "w").text(2, "y").text(4, "Identity");
    const auto graph = ProtoMessage().message(5, values).message(1, node).message(12, named("y"));
    const auto file = ProtoMessage().message(8, ProtoMessage().integer(2, 21)).message(7, graph);
    return onnx::load_model(folder.write("made.onnx", file.bytes()))({})[0];
  };
  folder.write("made.data", {"\1\0\0\0\2\0\0\0\3\0\0\0", 12});
  CHECK(loaded("made.data", "4").equal(tensor({2, 3}, TensorOptions(kInt32).device(kCPU))));
  CHECK_THROWS_WITH_AS(loaded("made.data", "8"), doctest::Contains("12 bytes, too few"), IOError);
  for (const char* offset : {"-4", "", "4x", "99999999999999999999"})
    CHECK_THROWS_AS(loaded("made.data", offset), IOError);
  CHECK_THROWS_AS(loaded("other.data", "0"), IOError);
  for (const std::string& outside : {folder / "made.data", std::string("../made.data"), std::string()})
    CHECK_THROWS_WITH_AS(loaded(outside.c_str(), "0"), doctest::Contains("outside of the model's folder"), IOError);
}

TEST_CASE("ONNX's own cases give ONNX's results, or are refused" * doctest::skip(!std::getenv("RUSH_ONNX_CASES"))) {
  const NoGradGuard no_grad;
  const auto arrays = [](const std::filesystem::path& folder, const char* kind) {
    Tensors all;
    for (;;) {
      const std::filesystem::path file = folder / (kind + std::to_string(all.size()) + ".npy");
      if (!std::filesystem::exists(file)) return all;
      all.push_back(io::load_npy(file));
    }
  };
  int same = 0, refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::getenv("RUSH_ONNX_CASES"))) {
    const std::string name = entry.path().filename();
    CAPTURE(name);
    try {
      const Tensors expected = arrays(entry, "output");
      const Tensors got = onnx::load_model(entry.path() / "model.onnx")(arrays(entry, "input"));
      REQUIRE(got.size() == expected.size());
      for (size_t i = 0; i < got.size(); ++i) {
        CHECK(got[i].scalar_type() == expected[i].scalar_type());
        CHECK(got[i].sizes() == expected[i].sizes());
        CHECK(got[i].to(kFloat64).allclose(expected[i].to(kFloat64), 1e-3, 1e-5, true));
      }
      ++same;
    } catch (const Error& error) {  // in words; a wrong result is none
      ++refused;
      CHECK(std::string(error.what()).size() > 10);
    }
  }
  std::cout << same << " of ONNX's cases are read, " << refused << " refused\n";
  CHECK(same > 500);
}
