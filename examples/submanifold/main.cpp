// `./rush submanifold`: learns to tell generated shapes in space apart with an operator of its own on sparse tensors.
#include <cstdio>

#include "core/dispatch/registry.h"
#include "examples/option_checks.h"
#include "examples/options.h"
#include "examples/run_folder.h"
#include "examples/run_log.h"
#include "examples/run_program.h"
#include "examples/submanifold/classifier.h"
#include "examples/train_and_report.h"
#include "rushlight.h"

namespace examples {
namespace {

struct Settings {
  std::string device = "cpu", out_dir = "out/submanifold";
  int64_t steps = 100, shapes = 8, test_shapes = 50, seed = 1;
  double learning_rate = 1e-2;
  LogOptions log;

  void parse(int argc, char** argv) {
    Options options("submanifold", "Learns to tell shapes in space apart by sparse convolutions, and draws some.");
    options.add("--max_iters,--steps", &steps, "steps to train", 1, 1 << 20);
    options.add("--shapes", &shapes, "of each kind in a step", 1, 1 << 12);
    options.add("--test_shapes", &test_shapes, "of each kind to test with", 1, 1 << 12);
    options.add("--learning_rate,--lr", &learning_rate, "the highest of the one cycle", 1e-9, 1e3);
    options.add("--device", &device, "cpu or cuda");
    options.add("--seed", &seed, "of weights and shapes", 0);
    options.add("--out_dir", &out_dir, "folder for picture and report; empty: none");
    log.add_to(options);
    options.parse_or_exit(argc, argv, [this] { check_device(device); });
    log.settings = options.values();
  }
};

// How much there is to compute beside a dense convolution of 3 x 3 x 3.
void describe(const Shapes& shapes) {
  const RuleBook rules(shapes.sites, {3, 3, 3});
  const auto places = static_cast<double>(shapes.labels.numel() * kShapeGrid * kShapeGrid * kShapeGrid);
  const auto sites = static_cast<double>(rules.sites), pairs = static_cast<double>(rules.pairs.size(1));
  std::printf("sites: %.2f %% of the grid; pairs: %.1f of 27 a site\n", 100 * sites / places, pairs / sites);
}

void run(const Settings& s) {
  if (!s.out_dir.empty()) make_folder(s.out_dir);
  register_submanifold_conv(rush::registry());
  rush::manual_seed(static_cast<uint64_t>(s.seed));
  const rush::Device device(s.device);
  const Shapes test = make_shapes(s.test_shapes, device);
  describe(test);
  RunLog log("submanifold", s.log, s.out_dir, device);
  ShapeClassifier classifier(device, s.learning_rate, s.steps);
  const auto in_a_step = static_cast<double>(s.shapes) * kShapeNames.size();
  train_and_report(
      s.steps, log,
      [&] {
        return TrainingStep{classifier.learning_rate(), "shapes", in_a_step};
      },
      [&] { return classifier.step(s.shapes); });
  const rush::Tensor right = classifier.guess(test).eq(test.labels).to(rush::kFloat64).cpu();
  const rush::Tensor by_kind = right.view({static_cast<int64_t>(kShapeNames.size()), -1}).mean({1});
  for (size_t kind = 0; kind < kShapeNames.size(); ++kind) {
    std::printf("%-7s %5.1f %% right\n", kShapeNames[kind], 100 * by_kind[static_cast<int64_t>(kind)].item<double>());
  }
  const double accuracy = right.mean().item<double>();
  std::printf("accuracy %.4f\n", accuracy);
  const std::string picture = draw_shapes(test, std::min<int64_t>(s.test_shapes, 8));
  if (!s.out_dir.empty()) write_picture(s.out_dir + "/shapes.png", picture);
  log.report.headline = percent(accuracy, 1);
  log.report.summary = "of new shapes are told apart by sparse convolutions.";
  log.report.sections = {
      {"Shapes", "Some of each kind: what is near is bright.", picture_html("image/png", picture, "shapes")}};
  log.finish();
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  examples::Settings settings;
  settings.parse(argc, argv);
  return examples::run_program("submanifold", [&] { examples::run(settings); });
}
