#include "nn/summary/graph.h"

#include <algorithm>
#include <span>
#include <unordered_map>

#include "autograd/accumulate_grad.h"

namespace rush::summary {
namespace {

class GraphDef {
 public:
  explicit GraphDef(const nn::Module& model) {
    for (const auto& parameter : model.named_parameters()) {
      std::string name = parameter.key();
      std::replace(name.begin(), name.end(), '.', '/');  // which separates scopes
      parameters_.emplace(parameter->unsafeGetTensorImpl(), name);
    }
  }

  ProtoMessage describe(const Tensor& output) {
    const Edge root = gradient_edge(output);
    append("output", "Output", {&root, 1});
    for (size_t i = 0; i < nodes_.size(); ++i) {  // grows as edges lead to more
      Node& node = *nodes_[i];
      append(name_of(node), operator_of(node), {node.next_edges().begin(), node.next_edges().size()});
    }
    constexpr int64_t kProducer = 22;  // the version of GraphDef that has no features beyond those used here
    return graph_.message(4, ProtoMessage().integer(1, kProducer));
  }

 private:
  void append(const std::string& name, const std::string& op, std::span<const Edge> inputs) {
    ProtoMessage node;
    node.text(1, name).text(2, op);
    for (const Edge& input : inputs) {
      if (input.valid()) node.text(3, name_of(*input.node));
    }
    graph_.message(1, node);
  }

  const std::string* parameter_of(const Node& node) const {
    const auto* leaf = dynamic_cast<const AccumulateGrad*>(&node);
    const auto found = leaf ? parameters_.find(leaf->variable.unsafeGetTensorImpl()) : parameters_.end();
    return found == parameters_.end() ? nullptr : &found->second;
  }

  // "ConvolutionBackward" -> "Convolution"; a leaf's is "AccumulateGrad".
  static std::string operator_of(Node& node) {
    const std::string name = node.name();
    return name.substr(0, name.rfind("Backward"));
  }

  // "conv1/" for one that reads conv1's parameters.
  std::string scope_of(Node& node) const {
    for (const Edge& edge : node.next_edges()) {
      const std::string* parameter = edge.valid() ? parameter_of(*edge.node) : nullptr;
      if (parameter) return parameter->substr(0, parameter->rfind('/') + 1);
    }
    return "";
  }

  const std::string& name_of(Node& node) {
    const auto [at, added] = names_.try_emplace(&node);
    if (!added) return at->second;
    nodes_.push_back(intrusive_ptr<Node>::share(&node));
    const std::string* parameter = parameter_of(node);
    at->second = parameter ? *parameter : str(scope_of(node), operator_of(node), "_", nodes_.size());
    return at->second;
  }

  std::unordered_map<const TensorImpl*, std::string> parameters_;
  std::vector<intrusive_ptr<Node>> nodes_;
  std::unordered_map<Node*, std::string> names_;
  ProtoMessage graph_;
};

}  // namespace

ProtoMessage graph(const nn::Module& model, const Tensor& output) {
  RUSH_CHECK_VALUE(output.requires_grad(), "add_graph: the output does not require a gradient, so it has no graph");
  return GraphDef(model).describe(output);
}

}  // namespace rush::summary
