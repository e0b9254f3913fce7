// `./rush spectrogram`: learns to tell generated sounds apart by their mel spectrograms, and draws one of each kind.
#include <cstdio>

#include "examples/option_checks.h"
#include "examples/options.h"
#include "examples/run_folder.h"
#include "examples/run_log.h"
#include "examples/run_program.h"
#include "examples/spectrogram/classifier.h"
#include "examples/train_and_report.h"

namespace examples {
namespace {

struct Settings {
  std::string device = "cpu", out_dir = "out/spectrogram";
  int64_t steps = 150, sounds = 16, test_sounds = 200, seed = 1;
  double learning_rate = 1e-2;
  LogOptions log;

  void parse(int argc, char** argv) {
    Options options("spectrogram", "Learns to tell generated sounds apart by their spectrograms, and draws these.");
    options.add("--max_iters,--steps", &steps, "steps to train", 1, 1 << 20);
    options.add("--sounds", &sounds, "of each kind in a step", 1, 1 << 12);
    options.add("--test_sounds", &test_sounds, "of each kind to test with", 1, 1 << 12);
    options.add("--learning_rate,--lr", &learning_rate, "the highest of the one cycle", 1e-9, 1e3);
    options.add("--device", &device, "cpu or cuda");
    options.add("--seed", &seed, "of weights and sounds", 0);
    options.add("--out_dir", &out_dir, "folder for picture and report; empty: none");
    log.add_to(options);
    options.parse_or_exit(argc, argv, [this] { check_device(device); });
    log.settings = options.values();
  }
};

// One sound of each kind, as a PNG file.
std::string draw_sounds(const SoundClassifier& classifier, const Settings& s) {
  const Sounds one_each = make_sounds(1, rush::Device(s.device));
  return draw(classifier.spectrogram()(one_each.signals), kSoundNames, kSampleRate);
}

void run(const Settings& s) {
  if (!s.out_dir.empty()) make_folder(s.out_dir);
  rush::manual_seed(static_cast<uint64_t>(s.seed));
  RunLog log("spectrogram", s.log, s.out_dir, rush::Device(s.device));
  SoundClassifier classifier(rush::Device(s.device), s.learning_rate, s.steps);
  const auto in_a_step = static_cast<double>(s.sounds) * kSoundNames.size();
  train_and_report(
      s.steps, log,
      [&] {
        return TrainingStep{classifier.learning_rate(), "sounds", in_a_step};
      },
      [&] { return classifier.step(s.sounds); });
  const rush::Tensor confusion = classifier.confusion(s.test_sounds);
  for (size_t kind = 0; kind < kSoundNames.size(); ++kind) {
    const auto k = static_cast<int64_t>(kind);
    std::printf("%-8s %5.1f %% right\n", kSoundNames[kind], 100 * confusion[k][k].item<double>());
  }
  const double accuracy = confusion.diagonal().mean().item<double>();
  std::printf("accuracy %.4f\n", accuracy);
  const std::string picture = draw_sounds(classifier, s);
  if (!s.out_dir.empty()) write_picture(s.out_dir + "/sounds.png", picture);
  log.report.headline = percent(accuracy, 1);
  log.report.summary = "of new sounds are told apart by their mel spectrograms.";
  log.report.sections = {{"Sounds", "One of each kind.", picture_html("image/png", picture, "spectrograms")}};
  log.finish();
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  examples::Settings settings;
  settings.parse(argc, argv);
  return examples::run_program("spectrogram", [&] { examples::run(settings); });
}
