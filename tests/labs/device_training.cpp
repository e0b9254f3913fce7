// The training run of labs 11 and 15: the demo's net on the emulated accelerator. Batches are copied ahead on a stream
// of their own, and a step is a graph. It fails when the race detector finds something.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "core/io/atomic_file.h"
#include "examples/mnist/digit_sets.h"
#include "examples/mnist/net.h"
#include "examples/options.h"
#include "examples/run_program.h"
#include "rushlight.h"
#include "tests/labs/device/accelerator.h"

namespace {

using namespace rush;
namespace F = nn::functional;

struct Settings {
  std::string out_dir, json_file;
  int64_t digits = 2400, epochs = 2, batch_size = 32;
};

Settings parse(int argc, char** argv) {
  Settings settings;
  examples::Options options("device_training", "Trains the demo's net on the emulated accelerator.");
  options.add("--digits", &settings.digits, "how many to train on", 1, 60000);
  options.add("--epochs", &settings.epochs, "how often every digit is shown", 1, 100);
  options.add("--batch_size", &settings.batch_size, "digits per step", 2, 10000);
  options.add("--out_dir", &settings.out_dir, "where the weights go");
  options.add("--json", &settings.json_file, "write the results to this file");
  options.parse_or_exit(argc, argv, [] {});
  return settings;
}

void train(examples::Net& net, const examples::DigitSet& digits, const Settings& settings) {
  auto loader = data::make_data_loader<data::samplers::RandomSampler>(
      data::datasets::TensorPairDataset(digits.images, digits.targets)
          .map(data::transforms::Stack<>())
          .map(data::transforms::PinMemory<>()),
      data::DataLoaderOptions(static_cast<size_t>(settings.batch_size)).workers(1));
  data::DevicePrefetcher batches(*loader, labs::emulated());
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(8e-3).capturable(true));
  const int64_t steps = settings.epochs * ((digits.size() + settings.batch_size - 1) / settings.batch_size);
  optim::OneCycleLR schedule(optimizer, 8e-3, steps);
  graphs::GraphedStep step([&](const Tensor& images, const Tensor& targets) {
    optimizer.zero_grad();
    const Tensor loss = F::cross_entropy(net(images), targets);
    loss.backward();
    optimizer.step();
    return loss;
  });
  for (int64_t epoch = 0; epoch < settings.epochs; ++epoch) {
    for (const auto& batch : batches) {
      step(batch.data, batch.target);
      schedule.step();
    }
    labs::streams().synchronize();
  }
}

// The mean loss, and the share of the digits that are read correctly.
std::pair<double, double> evaluate(examples::Net& net, const examples::DigitSet& digits) {
  const NoGradGuard no_grad;
  net->eval();
  const Tensor scores = net(digits.images.to(labs::emulated())).cpu();
  return {F::cross_entropy(scores, digits.targets).item<double>(),
          scores.argmax(1).eq(digits.targets).to(kFloat64).mean().item<double>()};
}

void run(const Settings& settings) {
  manual_seed(1);
  const auto test_digits = static_cast<size_t>(std::max<int64_t>(settings.digits / 6, 1));
  const examples::DigitSets digits = examples::load_digits("", 1, static_cast<size_t>(settings.digits), test_digits);
  examples::Net net;
  net->to(labs::emulated());
  train(net, digits.train, settings);
  const std::string race = labs::races().take().text;
  RUSH_CHECK(race.empty(), "a race: ", race);
  const auto [loss, accuracy] = evaluate(net, digits.test);
  std::filesystem::create_directories(settings.out_dir);
  save(net, settings.out_dir + "/net.safetensors");
  const nlohmann::json results = {{"test_loss", loss}, {"test_accuracy", accuracy}};
  io::write_file_atomically(settings.json_file, results.dump(1) + "\n");
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = parse(argc, argv);
  return examples::run_program("device_training", [&] { run(settings); });
}
