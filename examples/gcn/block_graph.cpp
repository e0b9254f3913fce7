#include "examples/gcn/block_graph.h"

#include "rushlight.h"

namespace examples {

using namespace rush;

namespace {

// Edges (2, E) of `expected` pairs of nodes on average, drawn with replacement: the second of a pair is of the class
// of the first where `same_class`, of another one otherwise. Nodes of a class have its number modulo `classes`.
Tensor draw_pairs(const BlockGraphOptions& o, int64_t count, bool same_class) {
  const Tensor first = randint(0, o.nodes, count, kInt64);
  // Another class is one of classes - 1 steps on.
  const Tensor shift = same_class ? zeros(count, kInt64) : randint(1, std::max<int64_t>(o.classes, 2), count, kInt64);
  const int64_t per_class = o.nodes / o.classes;
  const Tensor second = randint(0, per_class, count, kInt64) * o.classes + (first + shift).remainder(o.classes);
  return stack({first, second});
}

}  // namespace

void BlockGraphOptions::check() const {
  RUSH_CHECK_VALUE(classes > 0 && nodes >= classes && nodes % classes == 0, "--nodes ", nodes,
                   " is no multiple of --num_classes ", classes);
  RUSH_CHECK_VALUE(degree <= static_cast<double>(nodes) / 4, "--nodes ", nodes, " are too few for --degree ", degree);
}

BlockGraph draw_block_graph(const BlockGraphOptions& o) {
  o.check();
  const double pairs = static_cast<double>(o.nodes) * o.degree / 2;
  const auto inside = static_cast<int64_t>(pairs * o.inside), outside = static_cast<int64_t>(pairs * (1 - o.inside));
  const Tensor drawn = cat({draw_pairs(o, inside, true), draw_pairs(o, outside, false)}, 1);
  const Tensor apart =
      drawn.index_select(1, (drawn[0] != drawn[1]).nonzero().squeeze(1));  // no edge from a node to itself
  const Tensor both = cat({apart, apart.flip(0)}, 1);
  const Tensor weighted = sparse_coo_tensor(both, ones(both.size(1)), {o.nodes, o.nodes}).coalesce();
  // A pair that was drawn twice is one edge.
  const Tensor edges = sparse_coo_tensor(weighted.indices(), ones(weighted._nnz()), weighted.sizes(), {}, true);

  BlockGraph graph;
  graph.edges = edges.to_sparse_csr();
  graph.labels = arange(o.nodes, kInt64).remainder(o.classes);
  const Tensor means = randn({o.classes, o.features}) * o.signal;
  graph.features = means.index_select(0, graph.labels) + randn({o.nodes, o.features});
  const Tensor order = randperm(o.nodes);
  const int64_t train =
      std::max<int64_t>(o.classes, static_cast<int64_t>(static_cast<double>(o.nodes) * o.train_share));
  graph.train = order.slice(0, 0, train).contiguous();
  graph.test = order.slice(0, train).contiguous();
  return graph;
}

Tensor normalized_adjacency(const Tensor& edges) {
  const int64_t nodes = edges.size(0);
  const Tensor each = arange(nodes, TensorOptions(kInt64).device(edges.device()));
  const Tensor loops =
      sparse_coo_tensor(stack({each, each}), ones(nodes, edges.options().layout(kStrided)), edges.sizes(), {}, true);
  const Tensor closed = (edges.to_sparse() + loops).coalesce();
  const Tensor scale = closed.sum(1).to_dense().rsqrt();
  const Tensor rows = closed.indices()[0], columns = closed.indices()[1];
  const Tensor values = closed.values() * scale.index_select(0, rows) * scale.index_select(0, columns);
  return sparse_coo_tensor(closed.indices(), values, edges.sizes(), {}, true).to_sparse_csr();
}

}  // namespace examples
