// Graphs of the stochastic block model: Holland, Laskey, Leinhardt, "Stochastic blockmodels: first steps" (1983).
#pragma once
#include "core/tensor.h"

namespace examples {

struct BlockGraphOptions {
  int64_t nodes = 2000, classes = 4, features = 16;
  double degree = 8;          // how many neighbours a node has on average
  double inside = 0.75;       // share of them that are of its own class
  double signal = 0.3;        // how far apart the classes' features are, of noise of standard deviation 1
  double train_share = 0.05;  // of the nodes whose class is known to the training

  /// Throws rush::ValueError unless the nodes divide evenly into the classes and are enough for so many neighbours.
  void check() const;
};

struct BlockGraph {
  rush::Tensor edges;        // (N, N), CSR of float32: 1 between neighbours, in both directions
  rush::Tensor features;     // (N, F): noise around the mean of the node's class
  rush::Tensor labels;       // (N) of int64
  rush::Tensor train, test;  // numbers of nodes, disjoint

  int64_t nodes() const { return labels.size(0); }
};

/// Draws a graph with the CPU's random numbers. Throws rush::ValueError as BlockGraphOptions::check does.
BlockGraph draw_block_graph(const BlockGraphOptions& options);

/// D^-1/2 (A + I) D^-1/2 for a matrix A of edges, with the degrees D of A + I: what a layer of the net averages by.
/// CSR.
rush::Tensor normalized_adjacency(const rush::Tensor& edges);

}  // namespace examples
