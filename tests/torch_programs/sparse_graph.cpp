// Sparse tensors: a graph's adjacency, its products, and a layer of a graph convolution.
#include "show.h"

#include <iostream>

int main() {
  const auto indices = torch::tensor({{0, 1, 1, 2, 3, 3}, {1, 0, 2, 1, 0, 0}});
  const auto values = torch::tensor({1., 1., 2., 2., 0.5, 0.25}, torch::kFloat64);
  auto graph = torch::sparse_coo_tensor(indices, values, {4, 4}, torch::dtype(torch::kFloat64));
  std::cout << graph.is_sparse() << graph.is_coalesced() << graph._nnz() << graph.layout() << graph.sizes()
            << graph.sparse_dim() << graph.dense_dim() << "\n";
  graph = graph.coalesce();
  std::cout << graph.is_coalesced() << graph._nnz() << "\n" << graph.indices() << "\n";
  show("values", graph.values());
  show("dense", graph.to_dense());
  const auto features = wave({4, 3}, 0.6);
  show("product", torch::mm(graph, features));
  show("at", graph.matmul(features) - graph.to_dense().matmul(features));
  show("vector", graph.mv(features.select(1, 0).contiguous()));
  show("addmm", torch::addmm(torch::ones({4, 3}, torch::kFloat64), graph, features, 1, 0.5));
  show("degrees", graph.mv(torch::ones({4}, torch::kFloat64)));
  show("sum", graph.sum());
  show("transposed", graph.t().to_dense());
  show("twice", (graph + graph).to_dense());
  show("scaled", (graph * 3).coalesce().values());
  show("square", torch::mm(graph, graph).to_dense());
  const auto back = (features.mm(features.t()) * graph.to_dense().ne(0)).to_sparse();
  std::cout << back._nnz() << " " << back.dtype() << "\n";

  const auto rows = graph.to_sparse_csr();
  std::cout << rows.layout() << rows.crow_indices() << rows.col_indices() << rows.is_sparse_csr() << "\n";
  show("rows", rows.matmul(features) - graph.matmul(features));

  // Gradients: of the dense factor, and of an embedding's rows.
  auto dense = features.clone().requires_grad_();
  torch::mm(graph, dense).square().sum().backward();
  show("of the features", dense.grad());
  torch::nn::Embedding table(torch::nn::EmbeddingOptions(6, 2).sparse(true));
  fill_parameters(*table);
  table(torch::tensor({1, 4, 1})).sum().backward();
  const auto grad = table->weight.grad();
  std::cout << grad.is_sparse() << grad.sizes() << grad.coalesce().indices() << "\n";
  torch::optim::SGD sgd(table->parameters(), 0.1);
  const auto before = table->weight.detach().clone();
  sgd.step();
  show("step", table->weight - before);

  // Two layers of a graph convolution, on a normalised adjacency.
  auto adjacency = graph.to_dense().gt(0).to(torch::kFloat64);
  adjacency = ((adjacency + adjacency.t()) > 0).to(torch::kFloat64) + torch::eye(4, torch::kFloat64);
  const auto scale = adjacency.sum(1).rsqrt();
  const auto normal = (scale.unsqueeze(1) * adjacency * scale).to_sparse();
  torch::nn::Linear first(3, 5), second(5, 2);
  fill_parameters(*first);
  fill_parameters(*second);
  std::vector<torch::Tensor> parameters = first->parameters();
  for (auto& p : second->parameters()) parameters.push_back(p);
  torch::optim::Adam adam(parameters, torch::optim::AdamOptions(0.05).weight_decay(5e-4));
  for (int epoch = 0; epoch < 5; ++epoch) {
    adam.zero_grad();
    auto hidden = torch::relu(torch::mm(normal, first(features)));
    auto output = torch::log_softmax(torch::mm(normal, second(hidden)), 1);
    auto loss = torch::nll_loss(output, torch::tensor({0, 1, 0, 1}));
    loss.backward();
    adam.step();
    show("loss", loss);
  }
  try {
    torch::ones({2}).indices();
    std::printf("nothing thrown\n");
  } catch (const c10::Error&) {
    std::printf("refused\n");
  }
  return 0;
}
