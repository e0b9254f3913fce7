// What a profile learns of a GPU: kernels, copies and waits, and whose they are.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "backends/cuda/cuda.h"
#include "core/error/warning.h"
#include "rushlight.h"
#include "tests/cuda/gpu.h"
#include "tests/temporary_folder.h"

using namespace rush;
using profiler::Average;
using profiler::EventKind;
using profiler::KeyAverages;
using profiler::Profile;
using rush::testing::file_content;
using rush::testing::no_gpu;
using rush::testing::TemporaryFolder;

namespace {

// Of the operators, and of the kernels and copies themselves: microseconds.
std::pair<double, double> device_times(const KeyAverages& averages) {
  double operators = 0, kernels = 0;
  for (const Average& average : averages) {
    (average.kind == EventKind::Device ? kernels : operators) += average.self_device_time_total;
  }
  return {operators, kernels};
}

bool takes_device_time(const KeyAverages& averages, std::string_view name) {
  const Average* average = averages.find(name);
  return average && average->self_device_time_total > 0;
}

// False where another tool holds CUPTI, such as a debugger or a checker of memory.
bool has_cupti() {
  const Tensor x = ones({4}, kCUDA);
  Profile profile;
  x.mul(x);
  profile.stop();
  return profile.key_averages().find("between events") == nullptr;
}

struct Training {
  nn::Sequential net{nn::Linear(256, 512), nn::ReLU(), nn::Linear(512, 10)};
  Tensor x = randn({512, 256}, TensorOptions(kCUDA));
  Tensor y = randint(0, 10, {512}, TensorOptions(kInt64)).to(kCUDA);
  optim::SGD optimizer;

  Training() : optimizer((net->to(kCUDA), net->parameters()), 0.1) {}
  void step() {
    optimizer.zero_grad();
    nn::functional::cross_entropy(net->forward(x), y).backward();
    optimizer.step();
  }
};

}  // namespace

TEST_CASE("every kernel belongs to an operator, forward, backward and in the optimizer" * doctest::skip(no_gpu())) {
  Training training;
  training.step();
  Profile profile;
  for (int i = 0; i < 5; ++i) training.step();
  profile.stop();
  const KeyAverages averages = profile.key_averages();
  const auto [operators, kernels] = device_times(averages);
  CHECK(kernels > 0);
  CHECK(operators == doctest::Approx(kernels).epsilon(1e-9));
  CHECK(takes_device_time(averages, "aten::linear"));
  CHECK(takes_device_time(averages, "aten::relu"));
  const Average* backward = averages.find("LinearBackward");
  REQUIRE(backward);
  CHECK(backward->device_time_total > 0);  // of the products within
  CHECK(averages.table().find("Self CUDA") != std::string::npos);
}

TEST_CASE("a wait for the GPU is told of the operator that waits" * doctest::skip(no_gpu())) {
  if (!has_cupti()) return;
  const Tensor x = randn({1 << 22}, TensorOptions(kCUDA));
  x.sum().item<float>();
  Profile profile;
  x.sum().item<float>();
  profile.stop();
  const KeyAverages averages = profile.key_averages();
  double waited = 0;
  for (const Average& average : averages) waited += average.self_wait_time_total;
  CHECK(waited > 0);
}

TEST_CASE("the kernels of a replayed graph belong to its replay" * doctest::skip(no_gpu())) {
  if (!has_cupti()) return;
  const Tensor x = ones({1 << 16}, kCUDA);
  const auto work = [&x] { return x.mul(2).add(1).exp(); };
  cuda::synchronize();
  {
    const StreamGuard on(cuda::capture_stream());
    work();
  }
  cuda::CUDAGraph graph;
  Tensor y;
  {
    const cuda::graph capture(graph);
    y = work();
  }
  graph.replay();
  Profile profile;
  for (int i = 0; i < 4; ++i) graph.replay();
  profile.stop();
  const KeyAverages averages = profile.key_averages();
  const Average* replay = averages.find("CUDAGraph::replay");
  REQUIRE(replay);
  CHECK(replay->count == 4);
  const auto [operators, kernels] = device_times(averages);
  CHECK(replay->self_device_time_total == doctest::Approx(kernels).epsilon(1e-9));
  int64_t runs = 0;
  for (const Average& average : averages) runs += average.kind == EventKind::Device ? average.count : 0;
  CHECK(runs == 4 * 3);
}

TEST_CASE("a trace holds kernels, the calls that launched them, and arrows between" * doctest::skip(no_gpu())) {
  if (!has_cupti()) return;
  const TemporaryFolder folder;
  Training training;
  training.step();
  Profile profile;
  training.step();
  const Tensor pageable = ones({1000}).to(kCUDA);
  profile.stop();
  profile.export_chrome_trace(folder / "trace.json");
  const nlohmann::json events = nlohmann::json::parse(file_content(folder / "trace.json"))["traceEvents"];
  std::map<std::string, int> categories;
  std::set<int64_t> launches, kernels, begun, ended;
  for (const auto& event : events) {
    const std::string category = event.value("cat", "");
    ++categories[category];
    if (category == "ac2g") (event["ph"] == "s" ? begun : ended).insert(event["id"].get<int64_t>());
    if (category == "cuda_runtime" || category == "cuda_driver")
      launches.insert(event["args"]["correlation"].get<int64_t>());
    if (category != "kernel") continue;
    kernels.insert(event["args"]["correlation"].get<int64_t>());
    CHECK(event["dur"].get<double>() > 0);
    CHECK(event["args"]["External id"].get<int64_t>() > 0);
    CHECK(event["args"]["grid"].size() == 3);
  }
  CHECK(categories["gpu_memcpy"] >= 1);
  CHECK(kernels.size() > 5);
  for (const int64_t kernel : kernels) {
    CHECK(launches.contains(kernel));
    CHECK(begun.contains(kernel));
    CHECK(ended.contains(kernel));
  }
}

TEST_CASE("a trace holds what the GPU's instruments show, over time" * doctest::skip(no_gpu())) {
  const TemporaryFolder folder;
  const Tensor x = randn({1024, 1024}, TensorOptions(kCUDA));
  Profile profile({.trace = folder / "trace.json"});
  std::this_thread::sleep_for(std::chrono::milliseconds(350));
  x.mm(x);
  profile.stop();
  std::map<std::string, std::vector<double>> counters;
  const nlohmann::json trace = nlohmann::json::parse(file_content(folder / "trace.json"));
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "C") counters[event["name"]].push_back(event["args"]["value"].get<double>());
  }
  for (const char* name : {"GPU 0 utilization (%)", "GPU 0 power (W)", "GPU 0 temperature (C)"}) {
    CAPTURE(std::string(name));
    REQUIRE(counters[name].size() >= 3);
    for (const double value : counters[name]) CHECK((value >= 0 && value < 2000));
  }
  CHECK(counters["GPU 0 power (W)"].front() > 1);
}

TEST_CASE("without CUPTI events stand in, and a warning says so" * doctest::skip(no_gpu())) {
  struct Counter final : WarningHandler {
    void process(const Warning& warning) override { text += warning.msg(); }
    std::string text;
  } counter;
  setenv("RUSH_CUPTI", "0", 1);
  Training training;
  training.step();
  KeyAverages averages;
  {
    const WarningUtils::WarningHandlerGuard guard(&counter);
    Profile profile;
    for (int i = 0; i < 3; ++i) training.step();
    profile.stop();
    averages = profile.key_averages();
  }
  unsetenv("RUSH_CUPTI");
  CHECK(counter.text.find("RUSH_CUPTI is 0") != std::string::npos);
  CHECK(takes_device_time(averages, "aten::linear"));
  const auto [operators, segments] = device_times(averages);
  CHECK(operators == doctest::Approx(segments).epsilon(1e-9));
}

TEST_CASE("ten threads are profiled at once on a GPU" * doctest::skip(no_gpu())) {
  const Tensor x = ones({1 << 12}, kCUDA);
  x.mul(x);
  Profile profile;
  std::vector<std::thread> threads;
  for (int t = 0; t < 10; ++t) {
    threads.emplace_back([&x] {
      for (int i = 0; i < 50; ++i) x.mul(x);
    });
  }
  for (std::thread& thread : threads) thread.join();
  profile.stop();
  const KeyAverages averages = profile.key_averages();
  const Average* mul = averages.find("aten::mul.Tensor");
  REQUIRE(mul);
  CHECK(mul->count == 500);
  const auto [operators, kernels] = device_times(averages);
  CHECK(operators == doctest::Approx(kernels).epsilon(1e-9));
  CHECK(takes_device_time(averages, "aten::mul.Tensor"));
}
