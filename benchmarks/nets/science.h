// Nets of graphs and of fields, from plain modules.
#pragma once
#include "rushlight.h"

namespace plain {

using namespace rush;

// Linear layers of these widths, with an activation between them.
template <class Activation>
nn::Sequential perceptron(const std::vector<int64_t>& widths) {
  nn::Sequential net;
  for (size_t i = 1; i < widths.size(); ++i) {
    if (i > 1) net->push_back(Activation());
    net->push_back(nn::Linear(widths[i - 1], widths[i]));
  }
  return net;
}

// Kipf and Welling, "Semi-supervised classification with graph convolutional networks" (2017), on a graph of random
// edges, each a pair of numbers of nodes, and one from each node to itself.
struct GcnImpl : nn::Module {
  GcnImpl(int64_t nodes, int64_t edges, int64_t features, int64_t hidden, int64_t classes)
      : first(register_module("first", nn::Linear(features, hidden))),
        second(register_module("second", nn::Linear(hidden, classes))),
        drop(register_module("drop", nn::Dropout(0.5))) {
    const auto ends = [&] { return cat({randint(0, nodes, {edges}, kInt64), arange(nodes, kInt64)}); };
    sources = register_buffer("sources", ends());
    targets = register_buffer("targets", ends());
    const Tensor scale = zeros({nodes}).index_add(0, targets, ones(targets.sizes())).rsqrt();
    weights =
        register_buffer("weights", (scale.index_select(0, sources) * scale.index_select(0, targets)).unsqueeze(1));
  }

  Tensor propagate(const Tensor& x) {  // averages over neighbours, (N, F)
    return zeros_like(x).index_add(0, targets, x.index_select(0, sources) * weights);
  }
  Tensor forward(const Tensor& x) {  // (N, F) -> scores of the classes, (N, classes)
    return propagate(second(drop(relu(propagate(first(drop(x)))))));
  }

  nn::Linear first, second;
  nn::Dropout drop;
  Tensor sources, targets, weights;
};
RUSH_MODULE(Gcn);

// What an equation with many terms asks of a field u(x, t): each of five derivatives by each of six factors.
// Points are (N, 2), `medium` is (N, 1).
inline Tensor physics_loss(const nn::Sequential& field, const Tensor& given, const Tensor& medium) {
  const Tensor points = given.detach().requires_grad_();
  const auto gradient = [&](const Tensor& y) {
    return autograd::grad({y.sum()}, {points}, {}, true, /*create_graph=*/true)[0].split(1, 1);
  };
  const Tensor u = field->forward(points);
  const std::vector<Tensor> x_t = points.split(1, 1), first = gradient(u), of_x = gradient(first[0]),
                            of_t = gradient(first[1]);
  Tensor loss = zeros({}, u.options());
  for (const Tensor& derivative : {first[0], first[1], of_x[0], of_x[1], of_t[1]}) {
    for (const Tensor& factor : {x_t[0], x_t[1], medium, u, u * u, u.sin()})
      loss = loss + (derivative * factor).pow(2).mean();
  }
  return loss;
}

}  // namespace plain
