// `./rush gcn`: trains a graph convolutional net on a random graph of communities, and draws what it learned.
#include <cstdio>

#include "examples/check_loss.h"
#include "examples/gcn/gcn.h"
#include "examples/option_checks.h"
#include "examples/options.h"
#include "examples/run_folder.h"
#include "examples/run_log.h"
#include "examples/run_program.h"
#include "rushlight.h"

namespace examples {
namespace {

struct Settings {
  std::string device = "cpu", out_dir = "out/gcn";
  int64_t seed = 1;
  BlockGraphOptions graph;
  GCNTrainingOptions training;
  LogOptions log;

  void parse(int argc, char** argv) {
    Options options("gcn", "Trains a graph convolutional net to tell the communities of a random graph apart.");
    options.add("--nodes", &graph.nodes, "of the graph, a multiple of the classes", 8, 1 << 24);
    options.add("--num_classes,--classes", &graph.classes, "communities of nodes", 2, 1 << 10);
    options.add("--features", &graph.features, "numbers that are known of a node", 1, 1 << 12);
    options.add("--degree", &graph.degree, "neighbours of a node, on average", 0.1, 1e4);
    options.add("--inside", &graph.inside, "share of them that are of its own community", 0, 1);
    options.add("--train_share", &graph.train_share, "of the nodes whose community is known", 0, 0.9);
    options.add("--hidden", &training.hidden, "width of the hidden layer", 2, 1 << 12);
    options.add("--epochs", &training.epochs, "steps, each on the whole graph", 1, 1 << 20);
    options.add("--learning_rate,--lr", &training.learning_rate, "Adam's", 1e-9, 1e3);
    options.add("--device", &device, "cpu or cuda");
    options.add("--seed", &seed, "of the graph and of the weights", 0);
    options.add("--out_dir", &out_dir, "where picture and report go");
    log.add_to(options);
    options.parse_or_exit(argc, argv, [this] {
      check_device(device);
      graph.check();
    });
    log.settings = options.values();
  }
};

void run(Settings settings) {
  make_folder(settings.out_dir);
  settings.training.device = rush::Device(settings.device);
  rush::manual_seed(static_cast<uint64_t>(settings.seed));
  const BlockGraph graph = draw_block_graph(settings.graph);
  std::printf("%lld nodes in %lld communities, %lld edges; %lld nodes to train on\n",
              static_cast<long long>(graph.nodes()), static_cast<long long>(settings.graph.classes),
              static_cast<long long>(graph.edges._nnz() / 2), static_cast<long long>(graph.train.numel()));
  RunLog log("gcn", settings.log, settings.out_dir, settings.training.device);
  const GCNTraining training(graph, settings.training, log);
  check_loss(training.train_loss.back(), rush::str("epoch ", training.train_loss.size()));
  std::printf("loss %.4f in the first epoch, %.4f in the last; accuracy on the other nodes %.2f %%\n",
              training.train_loss.front(), training.train_loss.back(), training.accuracy * 100);
  const std::string picture = gcn_picture(graph, training);
  write_picture(settings.out_dir + "/embedding.svg", picture);
  log.report.headline = percent(training.accuracy, 1);
  log.report.summary = "of the nodes that the net was not trained on are put into their community.";
  log.report.sections = {{"What it learned", "", picture_html("image/svg+xml", picture, "the graph's nodes")}};
  log.finish();
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  examples::Settings settings;
  settings.parse(argc, argv);
  return examples::run_program("gcn", [&] { examples::run(settings); });
}
