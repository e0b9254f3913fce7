#include "examples/resnet/resnet.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "examples/lap_clock.h"
#include "examples/parameter_count.h"
#include "examples/resnet/training.h"
#include "rushlight.h"
#include "tests/fixtures.h"
#include "tests/temporary_folder.h"

namespace {

using namespace rush;
using namespace examples;
using nlohmann::json;

// The numbers of make_resnet_fixtures.py.
Tensor wave(IntArrayRef sizes, int64_t number) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return (arange(1, count + 1, TensorOptions(kFloat64)) * 0.37 + static_cast<double>(number)).sin().view(sizes);
}

double dot_with_wave(const Tensor& t) { return (t * wave(t.sizes(), 0)).sum().item<double>(); }

ResNet small_net(const std::array<int64_t, 4>& depths, bool bottleneck) {
  ResNet net(ResNetConfig{depths, bottleneck, /*num_classes=*/5, /*width=*/4});
  net->to(kFloat64);
  const NoGradGuard no_grad;
  int64_t number = 0;
  for (const auto& parameter : net->named_parameters()) {
    const int64_t size = parameter->size(0), dims = parameter->dim();
    const double scale =
        dims > 1 ? std::sqrt(2.0 * static_cast<double>(size) / static_cast<double>(parameter->numel())) : 0.1;
    const double shift = dims == 1 && parameter.key().ends_with("weight") ? 1 : 0;
    parameter->copy_(wave(parameter->sizes(), number++) * scale + shift);
  }
  return net;
}

bool is_near(double got, double expected, double tolerance = 1e-8) {
  return std::abs(got - expected) <= tolerance * (1 + std::abs(expected));
}

void check_numbers(const Tensor& got, const json& expected) {
  REQUIRE(got.numel() == static_cast<int64_t>(expected.size()));
  for (int64_t i = 0; i < got.numel(); ++i) {
    CAPTURE(i);
    CHECK(is_near(got.reshape(-1)[i].item<double>(), expected[static_cast<size_t>(i)]));
  }
}

void check_small_net(const char* name, const std::array<int64_t, 4>& depths, bool bottleneck, MemoryFormat format) {
  CAPTURE(name);
  const json fixture = read_fixtures("examples/resnet.json")[name];
  const ResNet net = small_net(depths, bottleneck);
  if (format == MemoryFormat::ChannelsLast) net->to(format);
  std::vector<std::string> state = net->named_parameters().keys(), buffers = net->named_buffers().keys();
  state.insert(state.end(), buffers.begin(), buffers.end());
  auto expected = fixture["state"].get<std::vector<std::string>>();
  std::sort(state.begin(), state.end());
  std::sort(expected.begin(), expected.end());
  CHECK(state == expected);

  const Tensor images = wave({2, 3, 64, 64}, 1).contiguous(format).requires_grad_();
  const Tensor logits = net(images);
  check_numbers(logits, fixture["logits"]);
  nn::functional::cross_entropy(logits, tensor({1, 3})).backward();
  CHECK(is_near(dot_with_wave(images.grad()), fixture["image_gradient"]));
  size_t number = 0;
  for (const auto& parameter : net->named_parameters()) {
    CAPTURE(parameter.key());
    CHECK(is_near(dot_with_wave(parameter->grad()), fixture["gradients"][number++]));
    CHECK(parameter->grad().strides() == parameter->strides());
  }
  net->eval();
  check_numbers(net(images), fixture["evaluated"]);
}

TEST_CASE("ResNet: parameters have torchvision's names, shapes and order") {
  for (const char* name : {"resnet18", "resnet50"}) {
    CAPTURE(name);
    const json expected = read_fixtures("examples/resnet.json")[name];
    const ResNet net(ResNetConfig::of(name));
    const auto parameters = net->named_parameters();
    REQUIRE(parameters.size() == expected.size());
    for (size_t i = 0; i < parameters.size(); ++i) {
      CHECK(parameters[i].key() == expected[i][0].get<std::string>());
      CHECK(parameters[i]->sizes() == IntArrayRef(expected[i][1].get<std::vector<int64_t>>()));
    }
  }
  CHECK(parameter_count(*ResNet(ResNetConfig::of("resnet18"))) == 11'689'512);
  CHECK(parameter_count(*ResNet(ResNetConfig::of("resnet34"))) == 21'797'672);
  CHECK(parameter_count(*ResNet(ResNetConfig::of("resnet50"))) == 25'557'032);
  CHECK_THROWS_AS(ResNetConfig::of("resnet19"), ValueError);
}

TEST_CASE("ResNet: small nets compute and derive what PyTorch's do, in both layouts") {
  for (const MemoryFormat format : {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast}) {
    check_small_net("basic blocks", {1, 2, 1, 1}, false, format);
    check_small_net("bottlenecks", {2, 1, 1, 1}, true, format);
  }
}

TEST_CASE("ResNet: convolutions begin with He's deviations, normalisations as the identity") {
  manual_seed(3);
  const ResNet net(ResNetConfig::of("resnet18"));
  const auto parameters = net->named_parameters();
  CHECK(parameters["layer3.0.conv1.weight"].std().item<double>() ==
        doctest::Approx(std::sqrt(2.0 / (256 * 9))).epsilon(0.02));
  CHECK(parameters["layer4.1.bn2.weight"].sum().item<double>() == 512);
  CHECK(parameters["bn1.bias"].abs().sum().item<double>() == 0);
}

TEST_CASE("ResNet: weights saved under torchvision's names load") {
  manual_seed(4);
  const rush::testing::TemporaryFolder folder;
  const ResNetConfig config{{1, 1, 1, 1}, true, 5, 4};
  ResNet saved(config), loaded(config);
  const Tensor images = randn({2, 3, 32, 32});
  saved(images);  // moves the running statistics
  saved->eval();
  loaded->eval();
  save(saved, folder / "net.safetensors");
  load(loaded, folder / "net.safetensors");
  CHECK((saved(images) - loaded(images)).abs().max().item<double>() == 0);
}

TEST_CASE("ResNet: training lowers the loss, in every precision and both layouts") {
  for (const std::string& dtype : Precision::names()) {
    for (const bool channels_last : {false, true}) {
      CAPTURE(dtype);
      CAPTURE(channels_last);
      manual_seed(5);
      ResNetTrainingOptions options;
      options.model = {{1, 1, 1, 1}, true, 10, 4};
      options.batch_size = 4;
      options.image_size = 32;
      options.learning_rate = 0.02;
      options.dtype = dtype;
      options.channels_last = channels_last;
      ResNetTraining training(options);
      const double first = training.step().item<double>();
      for (int i = 0; i < 15; ++i) training.step();
      CHECK(training.step().item<double>() < 0.5 * first);
    }
  }
}

TEST_CASE("LapClock counts laps, and the median is the middle one") {
  LapClock clock(kCPU);
  CHECK(clock.laps().empty());
  for (int i = 0; i < 4; ++i) clock.mark();
  CHECK(clock.laps().size() == 3);
  for (const double lap : clock.laps()) CHECK(lap >= 0);
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2);
  CHECK_THROWS_AS(median(std::vector<double>()), ValueError);
}

}  // namespace
