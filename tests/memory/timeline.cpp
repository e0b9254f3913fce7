// A profile's samples of what memory is used for.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "core/profiler/profiler.h"
#include "rushlight.h"
#include "tests/temporary_folder.h"

namespace {

using namespace rush;

void train(nn::Linear& net, optim::Optimizer& optimizer) {
  optimizer.zero_grad();
  net->forward(ones({512, 256})).sin().square().mean().backward();
  optimizer.step();
}

TEST_CASE("a profile knows when most memory was in use, and draws what for") {
  nn::Linear net(256, 256);
  optim::Adam adam(net->parameters(), 1e-3);
  const testing::TemporaryFolder folder;
  profiler::Profile profile({.profile_memory = true, .with_devices = false});
  for (int step = 0; step < 2; ++step) train(net, adam);
  profile.stop();

  const profiler::MemoryPeak peak = profile.memory_peak();
  CHECK(peak.device == Device(kCPU));
  CHECK_FALSE(peak.op.empty());
  CHECK(profile.key_averages().find(peak.op));
  CHECK(peak.uses[MemoryUse::Parameter] >= 256 * 256 * 4);
  CHECK(peak.uses[MemoryUse::OptimizerState] >= 2 * 256 * 256 * 4);
  CHECK(peak.uses[MemoryUse::Activation] >= 2 * 512 * 256 * 4);
  CHECK(peak.text().find("activations") != std::string::npos);

  profile.export_chrome_trace(folder / "trace.json");
  int64_t most = 0, samples = 0, last = 0;
  const auto trace = nlohmann::json::parse(testing::file_content(folder / "trace.json"));
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "C") continue;
    CHECK(event["name"] == "memory of cpu");
    int64_t sum = 0;
    for (const auto& [use, bytes] : event["args"].items()) sum += bytes.get<int64_t>();
    most = std::max(most, sum);
    CHECK(sum != last);  // what has not changed is not written again
    last = sum;
    ++samples;
  }
  CHECK(samples >= 10);
  CHECK(most == peak.uses.sum());
}

TEST_CASE("without profile_memory nothing is sampled, and samples count as events") {
  nn::Linear net(256, 256);
  optim::SGD sgd(net->parameters(), 0.1);
  {
    profiler::Profile profile;
    train(net, sgd);
    CHECK(profile.memory_peak().op.empty());
  }
  profiler::Profile profile({.profile_memory = true, .max_events = 3});
  train(net, sgd);
  profile.stop();
  CHECK_FALSE(profile.memory_peak().op.empty());
  CHECK(profile.dropped_events() > 0);
}

}  // namespace
