#include "autograd/engine.h"

#include <algorithm>

#include "autograd/backward_pass.h"
#include "autograd/ready_nodes.h"
#include "core/ops/pointwise/binary.h"

namespace rush {

namespace {

// Whether nobody else sees the tensor's memory, and no two of its elements share any, as an expanded one's do.
bool sole_owner(const Tensor& t) {
  return t.use_count() == 1 && t.storage().use_count() == 1 && !t.is_view() && t.is_non_overlapping_and_dense();
}

bool has_lower_number(const Node* a, const Node* b) { return a->sequence_nr() < b->sequence_nr(); }

}  // namespace

void accumulate(Tensor& total, Tensor grad) {
  if (!total.defined()) {
    total = std::move(grad);
  } else if (!GradMode::is_enabled() && sole_owner(total)) {
    total.add_(grad);
  } else {
    total = total + grad;
  }
}

void ReadyNodes::add(const Edge& edge, Tensor grad) {
  Node* node = edge.node.get();
  const auto [at, added] = entries.try_emplace(node);
  Entry& entry = at->second;
  if (added) {
    entry.node = edge.node;
    entry.grads.resize(node->num_outputs());
    heap.push_back(node);
    std::push_heap(heap.begin(), heap.end(), has_lower_number);
  }
  accumulate(entry.grads[edge.slot], std::move(grad));
}

ReadyNodes::Entry ReadyNodes::take() {
  std::pop_heap(heap.begin(), heap.end(), has_lower_number);
  const auto at = entries.find(heap.back());
  heap.pop_back();
  Entry entry = std::move(at->second);
  entries.erase(at);
  return entry;
}

std::unordered_set<Node*> nodes_leading_to(const std::vector<Edge>& roots, const std::vector<Edge>& inputs) {
  std::unordered_set<Node*> leading;
  for (const Edge& input : inputs) leading.insert(input.node.get());
  // All reachable nodes, then in ascending order of their numbers: producers are decided before their consumers.
  std::unordered_set<Node*> seen;
  std::vector<Node*> all;
  const auto visit = [&](const Edge& edge) {
    if (edge.valid() && seen.insert(edge.node.get()).second) all.push_back(edge.node.get());
  };
  for (const Edge& root : roots) visit(root);
  for (size_t i = 0; i < all.size(); ++i) {
    for (const Edge& edge : all[i]->next_edges()) visit(edge);
  }
  std::sort(all.begin(), all.end(), has_lower_number);
  for (Node* node : all) {
    for (const Edge& edge : node->next_edges()) {
      if (edge.valid() && leading.count(edge.node.get())) leading.insert(node);
    }
  }
  return leading;
}

Tensors run_backward(const std::vector<Edge>& roots, const Tensors& gradients, const std::vector<Edge>& inputs,
                     const BackwardOptions& options) {
  BackwardPass pass(inputs, options);
  std::unordered_set<Node*> leading;
  if (!inputs.empty()) leading = nodes_leading_to(roots, inputs);
  const auto wanted = [&](const Edge& edge) {
    return edge.valid() && (inputs.empty() || leading.count(edge.node.get()));
  };
  ReadyNodes ready;
  for (size_t i = 0; i < roots.size(); ++i) {
    if (wanted(roots[i])) pass.deliver(roots[i], gradients[i], nullptr, ready);
  }
  while (!ready.empty()) {
    auto [node, grads] = ready.take();
    Tensors results = pass.apply(*node, std::move(grads));
    const auto& edges = node->next_edges();
    for (size_t i = 0; i < edges.size() && i < results.size(); ++i) {
      if (results[i].defined() && wanted(edges[i])) pass.deliver(edges[i], std::move(results[i]), node.get(), ready);
    }
  }
  return pass.finish();
}

}  // namespace rush
