// A graph convolutional net: Kipf and Welling, "Semi-supervised classification with graph convolutional networks"
// (2017). A layer averages over a node's neighbours, by a product with the sparse adjacency matrix, and is linear.
#pragma once
#include "examples/gcn/block_graph.h"
#include "examples/run_log.h"
#include "nn/modules.h"

namespace examples {

class GCNImpl : public rush::nn::Module {
 public:
  GCNImpl(int64_t features, int64_t hidden, int64_t classes, double dropout = 0.5);

  /// Scores of the classes for each node. `adjacency` (N, N) is sparse: normalized_adjacency. (N, F) -> (N, C)
  rush::Tensor forward(const rush::Tensor& adjacency, const rush::Tensor& features);
  /// What the last layer sees, averaged over the neighbours: (N, F) -> (N, H)
  rush::Tensor embed(const rush::Tensor& adjacency, const rush::Tensor& features);

 private:
  rush::nn::Linear first{nullptr}, second{nullptr};
  double dropout_;
};
RUSH_MODULE(GCN);

struct GCNTrainingOptions {
  int64_t hidden = 32, epochs = 100;
  double learning_rate = 0.02, weight_decay = 5e-4, dropout = 0.5;
  rush::Device device;
};

struct GCNTraining {
  std::vector<double> train_loss, test_accuracy;  // an entry an epoch
  double accuracy = 0;                            // of the nodes that were not trained on, in the end
  rush::Tensor embedding;                         // (N, H), on the CPU

  /// Trains a net on the graph's `train` nodes, and logs both curves. The adjacency stays sparse, forward and backward.
  GCNTraining(const BlockGraph& graph, const GCNTrainingOptions& options, RunLog& log);
};

/// The graph as an SVG picture: nodes where the two principal components of the embedding put them, coloured by their
/// class, and edges between them; below it the curves of the training.
std::string gcn_picture(const BlockGraph& graph, const GCNTraining& training);

}  // namespace examples
