// Trains ResNet-18, 34 or 50 on images of noise and says how many it takes a second.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "examples/check_loss.h"
#include "examples/lap_clock.h"
#include "examples/option_checks.h"
#include "examples/options.h"
#include "examples/parameter_count.h"
#include "examples/resnet/training.h"
#include "examples/run_program.h"

namespace examples {
namespace {

struct Settings {
  std::string arch = "resnet18", device = "cpu";
  int64_t steps = 20, warmup_steps = 5, seed = 0;
  ResNetTrainingOptions training;

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
    options.parse_or_exit(argc, argv, [this] { check_device(device); });
    const int64_t classes = training.model.num_classes;
    training.model = ResNetConfig::of(arch);
    training.model.num_classes = classes;
  }
};

void run(Settings settings) {
  ResNetTrainingOptions& options = settings.training;
  options.device = rush::Device(settings.device);
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
  rush::Tensor last;
  for (int64_t i = 0; i < settings.steps; ++i) {
    last = training.step();
    clock.mark();
  }
  check_loss(last.item<double>(), rush::str("step ", settings.warmup_steps + settings.steps));
  const std::vector<double> laps = clock.laps();
  const auto [least, most] = std::minmax_element(laps.begin(), laps.end());
  const double step = median(laps);
  std::printf("loss %.4f at the first step, %.4f at the last\n", first.item<double>(), last.item<double>());
  std::printf("%.0f images/s, %.2f ms a step (%.2f to %.2f), %.2f GiB at most\n",
              static_cast<double>(options.batch_size) / step, step * 1e3, *least * 1e3, *most * 1e3,
              static_cast<double>(rush::allocator(options.device.type).stats().max_allocated) / (1 << 30));
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  examples::Settings settings;
  settings.parse(argc, argv);
  return examples::run_program("resnet", [&] { examples::run(settings); });
}
