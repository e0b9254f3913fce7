#include "autograd/debug/graphviz.h"

#include <unordered_map>

#include "autograd/accumulate_grad.h"
#include "autograd/saved.h"

namespace rush::autograd {

namespace {

std::string shape_of(const Tensor& t) { return str(t.scalar_type(), " ", t.sizes()); }

// The lines about what a node saved.
class SavedLines final : public SavedVisitor {
 public:
  std::string text;
  bool stale = false;

  void visit(const char* name, Saved& saved) override {
    if (!saved.defined()) return;
    text += str("\\n", name, ": ");
    if (saved.is_packed()) {
      text += "packed by hooks";
      return;
    }
    const Tensor& tensor = saved.peek();
    text += str(shape_of(tensor), " v", saved.saved_version());
    if (tensor._version() == static_cast<int64_t>(saved.saved_version())) return;
    text += str(", now v", tensor._version());
    stale = true;
  }
};

// `text` within double quotes; the line breaks that we put in, "\n", stay.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '\\';
    out += c;
  }
  return out + '"';
}

class Drawing {
 public:
  std::string draw(TensorList outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Tensor& output = outputs[i];
      RUSH_CHECK_VALUE(output.requires_grad(), "to_dot: output ", i, " does not require a gradient");
      const std::string name = str("output", i);
      box(name, str(name, "\\n", shape_of(output)), "ellipse", "palegreen");
      edge(name, gradient_edge(output));
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {  // grows as edges lead to more
      Node& node = *nodes_[i];
      describe(node);
      for (const Edge& next : node.next_edges()) {
        if (next.valid()) edge(numbered(node), next);
      }
    }
    return "digraph backward {\n  node [fontname=\"monospace\"];\n" + text_ + "}\n";
  }

 private:
  std::string numbered(Node& node) {
    const auto [at, added] = numbers_.try_emplace(&node, nodes_.size());
    if (added) nodes_.push_back(intrusive_ptr<Node>::share(&node));
    return str("node", at->second);
  }

  void describe(Node& node) {
    if (const auto* leaf = dynamic_cast<const AccumulateGrad*>(&node)) {
      const Tensor& tensor = leaf->variable;
      box(numbered(node), str("leaf\\n", shape_of(tensor), " v", tensor._version()), "ellipse", "lightblue");
      return;
    }
    SavedLines saved;
    node.visit_saved(saved);
    box(numbered(node), str(node.name(), " #", node.sequence_nr(), saved.text), "box",
        saved.stale ? "salmon" : "white");
  }

  void box(const std::string& name, const std::string& label, const char* shape, const char* colour) {
    text_ +=
        str("  ", name, " [label=", quoted(label), ", shape=", shape, ", style=filled, fillcolor=", colour, "];\n");
  }
  void edge(const std::string& from, const Edge& to) {
    text_ += str("  ", from, " -> ", numbered(*to.node));
    if (to.slot > 0) text_ += str(" [label=", to.slot, "]");
    text_ += ";\n";
  }

  std::string text_;
  std::vector<intrusive_ptr<Node>> nodes_;
  std::unordered_map<Node*, size_t> numbers_;
};

}  // namespace

std::string to_dot(TensorList outputs) { return Drawing().draw(outputs); }

}  // namespace rush::autograd
