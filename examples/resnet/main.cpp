// Trains ResNet-18, 34 or 50 on images of noise and says how many it takes a second.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "examples/check_loss.h"
#include "examples/lap_clock.h"
#include "examples/memory_options.h"
#include "examples/option_checks.h"
#include "examples/options.h"
#include "examples/parameter_count.h"
#include "examples/resnet/training.h"
#include "examples/run_folder.h"
#include "examples/run_log.h"
#include "examples/run_program.h"

namespace examples {
namespace {

struct Settings {
  std::string arch = "resnet18", device = "cpu", out_dir;
  int64_t steps = 20, warmup_steps = 5, seed = 0;
  ResNetTrainingOptions training;
  MemoryOptions memory;
  LogOptions log;

  void parse(int argc, char** argv) {
    Options options("resnet", "Trains a residual network on images of noise and says how many it takes a second.");
    options.add("--arch", &arch, "the network", ResNetConfig::names());
    options.add("--batch_size", &training.batch_size, "images in a step", 2, 1 << 20);
    options.add("--image_size", &training.image_size, "pixels to a side", 32, 1 << 12);
    options.add("--num_classes", &training.model.num_classes, "that the images are told apart into", 1, 1 << 20);
    options.add("--max_iters,--steps", &steps, "steps to time", 1, 1 << 20);
    options.add("--untimed_iters,--warmup_steps", &warmup_steps, "steps before them", 1, 1 << 20);
    options.add("--learning_rate,--lr", &training.learning_rate, "SGD's", 0, 1e3);
    options.add("--momentum", &training.momentum, "SGD's", 0, 1);
    options.add("--weight_decay", &training.weight_decay, "SGD's", 0, 1e3);
    options.add("--channels_last", &training.channels_last, "lay images and weights out with their channels innermost");
    options.add("--dtype", &training.dtype, "the precision: float32, or autocast to 16 bits", Precision::names());
    options.add("--device", &device, "cpu or cuda");
    options.add("--seed", &seed, "of weights, images and labels", 0);
    options.add("--out_dir", &out_dir, "folder for the report; empty: none");
    memory.add_to(options, /*has_blocks=*/false);
    log.add_to(options);
    options.parse_or_exit(argc, argv, [this] { check_device(device); });
    log.settings = options.values();
    const int64_t classes = training.model.num_classes;
    training.model = ResNetConfig::of(arch);
    training.model.num_classes = classes;
  }
};

void print_estimate(const Settings& settings) {
  print_memory_estimate(
      rush::Device(settings.device), settings.training.batch_size,
      [&](int64_t batch_size) {
        ResNetTrainingOptions options = settings.training;
        options.device = rush::kMeta;
        options.batch_size = batch_size;
        ResNetTraining training(options);
        training.step();
        training.step();
      },
      /*least=*/2);  // batch normalisation takes no fewer
}

void run(Settings settings) {
  ResNetTrainingOptions& options = settings.training;
  if (settings.memory.estimate) return print_estimate(settings);
  options.device = rush::Device(settings.device);
  if (!settings.out_dir.empty()) make_folder(settings.out_dir);
  RunLog log("resnet", settings.log, settings.out_dir, options.device);
  rush::manual_seed(static_cast<uint64_t>(settings.seed));
  // All steps have the same shapes: timing cuDNN's algorithms in the first one pays.
  rush::globalContext().setBenchmarkCuDNN(true);
  ResNetTraining training(options);
  std::printf("%s: %.2f million parameters, %lld images of %lld x %lld in a step, %s%s\n", settings.arch.c_str(),
              static_cast<double>(parameter_count(*training.model())) / 1e6, static_cast<long long>(options.batch_size),
              static_cast<long long>(options.image_size), static_cast<long long>(options.image_size),
              options.dtype.c_str(), options.channels_last ? ", channels last" : "");
  std::fflush(stdout);

  const rush::Tensor first = training.step();
  for (int64_t i = 1; i < settings.warmup_steps; ++i) training.step();
  LapClock clock(options.device);
  clock.mark();
  std::vector<rush::Tensor> losses;  // read afterwards: nothing waits for the device meanwhile
  for (int64_t i = 0; i < settings.steps; ++i) {
    losses.push_back(training.step());
    clock.mark();
  }
  const std::vector<double> laps = clock.laps();
  const auto [least, most] = std::minmax_element(laps.begin(), laps.end());
  const double step = median(laps), rate = static_cast<double>(options.batch_size) / step;
  double loss = 0;
  for (size_t i = 0; i < laps.size(); ++i) {
    const int64_t number = settings.warmup_steps + static_cast<int64_t>(i) + 1;
    loss = losses[i].item<double>();
    check_loss(loss, rush::str("step ", number));
    log.add(number, "loss/train", loss);
    log.add_step(number, options.learning_rate, "images", static_cast<double>(options.batch_size), laps[i]);
  }
  std::printf("loss %.4f at the first step, %.4f at the last\n", first.item<double>(), loss);
  std::printf("%.0f images/s, %.2f ms a step (%.2f to %.2f), %.2f GiB at most\n", rate, step * 1e3, *least * 1e3,
              *most * 1e3, static_cast<double>(rush::allocator(options.device.type).stats().max_allocated) / (1 << 30));
  log.report.headline = rush::str(std::lround(rate), " images/s");
  log.report.summary = rush::str(settings.arch, " learns in steps of ", options.batch_size, " images of noise.");
  log.finish();
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  examples::Settings settings;
  settings.parse(argc, argv);
  return examples::run_program("resnet", [&] { examples::run(settings); });
}
