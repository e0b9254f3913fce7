#include "examples/gcn/gcn.h"

#include <doctest/doctest.h>

#include "rushlight.h"

using namespace rush;
using namespace examples;

namespace {

BlockGraph small_graph() {
  manual_seed(3);
  BlockGraphOptions options;
  options.nodes = 400;
  options.train_share = 0.1;
  return draw_block_graph(options);
}

}  // namespace

TEST_CASE("a block graph is symmetric, without loops, and has the neighbours that were asked for") {
  const BlockGraph graph = small_graph();
  const Tensor dense = graph.edges.to_dense();
  CHECK(equal(dense, dense.t()));
  CHECK(dense.diagonal().sum().item<double>() == 0);
  CHECK(dense.max().item<double>() == 1);
  const double degree = graph.edges.sum().item<double>() / 400;
  CHECK(degree > 7);
  CHECK(degree <= 8);
  const Tensor same = graph.labels.unsqueeze(0).eq(graph.labels.unsqueeze(1));
  const double inside = (dense * same.to(kFloat32)).sum().item<double>() / dense.sum().item<double>();
  CHECK(inside > 0.7);
  CHECK(inside < 0.8);
  const Tensor split = std::get<0>(cat({graph.train, graph.test}).sort());
  CHECK(equal(split, arange(400, kInt64)));
  BlockGraphOptions bad;
  bad.nodes = 401;
  CHECK_THROWS_AS(draw_block_graph(bad), ValueError);
}

TEST_CASE("the normalised adjacency is that of dense matrices") {
  const BlockGraph graph = small_graph();
  const Tensor closed = graph.edges.to_dense() + eye(400), scale = closed.sum(1).rsqrt();
  const Tensor sparse = normalized_adjacency(graph.edges);
  CHECK(sparse.is_sparse_csr());
  CHECK(allclose(sparse.to_dense(), closed * scale.unsqueeze(0) * scale.unsqueeze(1)));
}

TEST_CASE("a graph convolutional net learns the communities from a few nodes, and needs the graph for it") {
  BlockGraph graph = small_graph();
  GCNTrainingOptions options;
  options.epochs = 60;
  RunLog log;
  const GCNTraining training(graph, options, log);
  CHECK(log.curve("loss/train").size() == 60);
  CHECK(log.curve("learning rate").back().y == options.learning_rate);
  CHECK(training.accuracy > 0.8);
  CHECK(training.train_loss.back() < training.train_loss.front() / 2);
  CHECK(training.embedding.sizes() == IntArrayRef({400, 32}));
  const std::string picture = gcn_picture(graph, training);
  CHECK(picture.starts_with("<svg"));
  const auto count = [&](const std::string& part) {
    size_t found = 0;
    for (size_t at = 0; (at = picture.find(part, at)) != picture.npos; ++at) ++found;
    return found;
  };
  CHECK(count("<circle") >= 400);
  CHECK(count("<svg xmlns=") == 1);  // tests/pictures.py parses and draws all of it
  CHECK(count("<svg") == count("</svg>"));
  graph.edges = zeros_like(graph.edges);
  CHECK(GCNTraining(graph, options, log).accuracy < training.accuracy - 0.1);
}
