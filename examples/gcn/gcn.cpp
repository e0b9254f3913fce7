#include "examples/gcn/gcn.h"

#include <cmath>

#include "rushlight.h"

namespace examples {

using namespace rush;

GCNImpl::GCNImpl(int64_t features, int64_t hidden, int64_t classes, double dropout) : dropout_(dropout) {
  first = register_module("first", nn::Linear(features, hidden));
  second = register_module("second", nn::Linear(hidden, classes));
}

Tensor GCNImpl::embed(const Tensor& adjacency, const Tensor& features) {
  // (N, N) sparse x (N, F) -> (N, F) -> (N, H)
  const Tensor hidden = relu(first(sparse::mm(adjacency, features)));
  return sparse::mm(adjacency, rush::dropout(hidden, dropout_, is_training()));
}

Tensor GCNImpl::forward(const Tensor& adjacency, const Tensor& features) { return second(embed(adjacency, features)); }

namespace {

double accuracy_of(const Tensor& scores, const Tensor& labels, const Tensor& nodes) {
  const Tensor right = scores.argmax(1).eq(labels).index_select(0, nodes);
  return right.to(kFloat64).mean().item<double>();
}

}  // namespace

GCNTraining::GCNTraining(const BlockGraph& graph, const GCNTrainingOptions& o, RunLog& log) {
  const Tensor adjacency = normalized_adjacency(graph.edges).to(o.device);
  const Tensor features = graph.features.to(o.device), labels = graph.labels.to(o.device);
  const Tensor train = graph.train.to(o.device), test = graph.test.to(o.device);
  const Tensor train_labels = labels.index_select(0, train);
  GCN net(features.size(1), o.hidden, graph.labels.max().item<int64_t>() + 1, o.dropout);
  net->to(o.device);
  optim::Adam optimizer(net->parameters(), optim::AdamOptions(o.learning_rate).weight_decay(o.weight_decay));
  for (int64_t epoch = 0; epoch < o.epochs; ++epoch) {
    net->train();
    optimizer.zero_grad();
    const Tensor loss = nn::functional::cross_entropy(net(adjacency, features).index_select(0, train), train_labels);
    loss.backward();
    optimizer.step();
    train_loss.push_back(loss.item<double>());
    net->eval();
    const NoGradGuard no_grad;
    test_accuracy.push_back(accuracy_of(net(adjacency, features), labels, test));
    log.add(epoch + 1, "loss/train", train_loss.back());
    log.add(epoch + 1, "accuracy/test", test_accuracy.back());
    log.add_step(epoch + 1, o.learning_rate, "nodes", static_cast<double>(graph.nodes()));
  }
  const NoGradGuard no_grad;
  net->eval();
  accuracy = accuracy_of(net(adjacency, features), labels, test);
  embedding = net->embed(adjacency, features).cpu();
}

}  // namespace examples
