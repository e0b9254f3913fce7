// `./rush submanifold`: learns to tell generated shapes in space apart with an operator of its own on sparse tensors.
#include <cstdio>

#include "core/dispatch/registry.h"
#include "core/io/atomic_file.h"
#include "examples/option_checks.h"
#include "examples/options.h"
#include "examples/run_folder.h"
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

  void parse(int argc, char** argv) {
    Options options("submanifold", "Learns to tell shapes in space apart by sparse convolutions, and draws some.");
    options.add("--max_iters,--steps", &steps, "steps to train", 1, 1 << 20);
    options.add("--shapes", &shapes, "of each kind in a step", 1, 1 << 12);
    options.add("--test_shapes", &test_shapes, "of each kind to test with", 1, 1 << 12);
    options.add("--learning_rate,--lr", &learning_rate, "the highest of the one cycle", 1e-9, 1e3);
    options.add("--device", &device, "cpu or cuda");
    options.add("--seed", &seed, "of weights and shapes", 0);
    options.add("--out_dir", &out_dir, "folder for the picture; empty: none");
    options.parse_or_exit(argc, argv, [this] { check_device(device); });
  }
};

// How much there is to compute beside a dense convolution of 3 x 3 x 3.
void describe(const Shapes& shapes) {
  const RuleBook rules(shapes.sites, {3, 3, 3});
  const auto places = static_cast<double>(shapes.labels.numel() * kShapeGrid * kShapeGrid * kShapeGrid);
  const auto sites = static_cast<double>(rules.sites), pairs = static_cast<double>(rules.pairs.size(1));
  std::printf("sites: %.2f %% of the grid; pairs: %.1f of 27 a site\n", 100 * sites / places, pairs / sites);
}

void write_picture(const Shapes& shapes, const Settings& s) {
  const std::string path = s.out_dir + "/shapes.png";
  rush::io::write_file_atomically(path, draw_shapes(shapes, std::min<int64_t>(s.test_shapes, 8)));
  std::printf("picture: %s\n", path.c_str());
}

void run(const Settings& s) {
  if (!s.out_dir.empty()) make_folder(s.out_dir);
  register_submanifold_conv(rush::registry());
  rush::manual_seed(static_cast<uint64_t>(s.seed));
  const rush::Device device(s.device);
  const Shapes test = make_shapes(s.test_shapes, device);
  describe(test);
  ShapeClassifier classifier(device, s.learning_rate, s.steps);
  train_and_report(s.steps, [&] { return classifier.step(s.shapes); });
  const rush::Tensor right = classifier.guess(test).eq(test.labels).to(rush::kFloat64).cpu();
  const rush::Tensor by_kind = right.view({static_cast<int64_t>(kShapeNames.size()), -1}).mean({1});
  for (size_t kind = 0; kind < kShapeNames.size(); ++kind) {
    std::printf("%-7s %5.1f %% right\n", kShapeNames[kind], 100 * by_kind[static_cast<int64_t>(kind)].item<double>());
  }
  std::printf("accuracy %.4f\n", right.mean().item<double>());
  if (!s.out_dir.empty()) write_picture(test, s);
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  examples::Settings settings;
  settings.parse(argc, argv);
  return examples::run_program("submanifold", [&] { examples::run(settings); });
}
