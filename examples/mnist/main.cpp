// `./rush demo`: trains a convolutional net on handwritten digits, and leaves its weights and a report.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/io/atomic_file.h"
#include "examples/memory_options.h"
#include "examples/mnist/digit_sections.h"
#include "examples/mnist/digit_sets.h"
#include "examples/mnist/trainer.h"
#include "examples/option_checks.h"
#include "examples/options.h"
#include "examples/processes/processes.h"
#include "examples/run_folder.h"
#include "examples/run_log.h"
#include "examples/run_program.h"
#include "examples/stop_request.h"
#include "rushlight.h"

using namespace examples;

namespace {

struct Settings {
  std::string data, device = "cpu", dtype = "float32", out_dir = "out/mnist", json_file, resume_command;
  int64_t epochs = 2, batch_size = 128, seed = 1, digits = 0, checkpoint_interval = 100;
  bool graph = false, compile = false;
  Beginning beginning;
  MemoryOptions memory;
  LogOptions log;
  double lr = 8e-3;
};

Settings parse(int argc, char** argv) {
  Settings settings;
  Options options("demo", "Trains a convolutional net on handwritten digits.");
  options.add("--data", &settings.data,
              "folder with the MNIST files (default: data/mnist; without it the program draws digits)");
  options.add("--epochs", &settings.epochs, "how often every digit is shown", 1, 1000);
  options.add("--batch_size", &settings.batch_size, "digits per step", 2, 10000);
  options.add("--learning_rate,--lr", &settings.lr, "the highest of the one cycle", 1e-9, 1e3);
  options.add("--device", &settings.device, "cpu or cuda");
  options.add("--dtype", &settings.dtype, "the precision: float32, or autocast to 16 bits", Precision::names());
  options.add("--graph", &settings.graph, "take the steps as a CUDA graph");
  options.add("--compile", &settings.compile, "run the steps as rush::compile makes them");
  options.add("--seed", &settings.seed, "of all random numbers", 0);
  options.add("--digits", &settings.digits, "how many digits to train on, and a sixth of that to test with; 0: all", 0,
              1 << 24);
  settings.beginning.add_to(options);
  options.add("--checkpoint_interval", &settings.checkpoint_interval, "steps between checkpoints", 1, 1 << 30);
  options.add("--out_dir", &settings.out_dir, "where weights, checkpoint and report go");
  settings.memory.add_to(options, /*has_blocks=*/false);
  settings.log.add_to(options);
  options.add("--json", &settings.json_file, "write the results to this file");
  options.parse_or_exit(argc, argv, [&] {
    check_device(settings.device, settings.graph);
    check_json_file(settings.json_file);
    settings.beginning.check(settings.out_dir);
    RUSH_CHECK_VALUE(settings.digits == 0 || settings.digits >= settings.batch_size, "--digits ", settings.digits,
                     " make no batch of --batch_size ", settings.batch_size);
  });
  settings.log.settings = options.values();
  settings.resume_command = resume_command(argc, argv);
  return settings;
}

ReadDigits read_digits(const DigitSets& digits, const Evaluation& test) {
  ReadDigits read;
  const auto count = static_cast<size_t>(digits.test.size());
  const rush::Tensor pixels = digits.test.images.mul(255).round().to(rush::kUInt8);
  read.pixels.assign(pixels.data_ptr<uint8_t>(), pixels.data_ptr<uint8_t>() + pixels.numel());
  read.labels.assign(digits.test.targets.data_ptr<int64_t>(), digits.test.targets.data_ptr<int64_t>() + count);
  read.predicted.assign(test.predicted.data_ptr<int64_t>(), test.predicted.data_ptr<int64_t>() + count);
  read.confidence.assign(test.confidence.data_ptr<float>(), test.confidence.data_ptr<float>() + count);
  return read;
}

void describe(Report& report, const Settings& settings, const DigitSets& digits, const Trainer& trainer,
              const Evaluation& test) {
  const int64_t count = digits.test.size(), right = std::llround(test.accuracy * static_cast<double>(count));
  report.headline = percent(test.accuracy, 2);
  report.summary = rush::str("of ", count, " test digits are read correctly, ", count - right, " are not. ",
                             digits.description, ".");
  report.facts = {{"training time", rush::str(std::lround(trainer.seconds()), " s")},
                  {"epochs", rush::str(settings.epochs)},
                  {"weights", rush::str(trainer.parameter_count())},
                  {"device", settings.device},
                  {"precision", settings.dtype}};
  report.sections = digit_sections(read_digits(digits, test));
}

nlohmann::json to_json(const Settings& settings, const DigitSets& digits, const Trainer& trainer, const RunLog& log,
                       const Evaluation& test) {
  const std::vector<ChartPoint> losses = log.curve("loss/test"), accuracies = log.curve("accuracy/test");
  nlohmann::json out = {{"dataset", digits.description},
                        {"device", settings.device},
                        {"dtype", settings.dtype},
                        {"seed", settings.seed},
                        {"batch_size", settings.batch_size},
                        {"lr", settings.lr},
                        {"parameters", trainer.parameter_count()},
                        {"training_seconds", trainer.seconds()},
                        {"test_loss", test.loss},
                        {"test_accuracy", test.accuracy}};
  for (size_t i = 0; i < losses.size(); ++i) {
    out["epochs"].push_back({{"test_loss", losses[i].y}, {"test_accuracy", accuracies[i].y}});
  }
  return out;
}

DigitSets load(const Settings& settings) {
  const auto seed = static_cast<uint64_t>(settings.seed);
  if (settings.digits == 0) return load_digits(settings.data, seed);
  return load_digits(settings.data, seed, static_cast<size_t>(settings.digits),
                     static_cast<size_t>(std::max<int64_t>(settings.digits / 6, 1)));
}

void run(Settings settings) {
  if (settings.memory.estimate) {
    return print_memory_estimate(rush::Device(settings.device), settings.batch_size,
                                 [&](int64_t batch_size) { rehearse_training(batch_size, settings.dtype); });
  }
  rush::manual_seed(static_cast<uint64_t>(settings.seed));
  RUSH_CHECK_VALUE(!settings.out_dir.empty(), "--out_dir is empty: the report has to go somewhere");
  const Processes processes{rush::Device(settings.device)};
  const std::string out_dir = settings.out_dir;
  processes.leave_files_to_the_first(settings);
  RunFolder folder(out_dir, settings.beginning, processes.is_first());
  const DigitSets digits = load(settings);
  std::puts(digits.description.c_str());

  const rush::Device device(settings.device);
  RunLog log("demo", settings.log, settings.out_dir, device);
  Trainer trainer(digits,
                  {settings.epochs, settings.batch_size, settings.lr, device, folder.checkpoint(),
                   settings.checkpoint_interval, settings.seed, settings.dtype, settings.graph, settings.compile,
                   settings.resume_command, folder.changes(), &processes},
                  log);
  processes.begin([&] {
    if (!folder.begin([&] { trainer.resume(); }, [&] { trainer.save_checkpoint(); })) return;
    std::printf("going on from %s, epoch %lld, step %lld\n", folder.checkpoint().c_str(),
                static_cast<long long>(trainer.epoch() + 1), static_cast<long long>(trainer.step()));
  });
  while (trainer.epoch() < settings.epochs) trainer.run_epoch();

  const Evaluation test = trainer.evaluate();
  if (!processes.is_first()) return;
  const std::string weights = settings.out_dir + "/net.safetensors";
  trainer.save(weights);
  std::printf("weights: %s\n", weights.c_str());
  describe(log.report, settings, digits, trainer, test);
  log.finish();
  if (!settings.json_file.empty()) {
    rush::io::write_file_atomically(settings.json_file, to_json(settings, digits, trainer, log, test).dump(1) + "\n");
  }
  std::printf("test accuracy %.4f\n", test.accuracy);
  folder.remove_checkpoint();  // the rates of a finished run have come to their end: nothing goes on from it
}

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = parse(argc, argv);
  return examples::run_program("demo", [&] { run(settings); });
}
