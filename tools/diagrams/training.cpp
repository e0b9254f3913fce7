// Graphs of backward passes, and a training step in the order of its calls.
#include <fstream>

#include "autograd/debug/graphviz.h"
#include "core/profiler/profiler.h"
#include "rushlight.h"
#include "tools/diagrams/facts.h"

namespace rush::diagrams {

namespace {

// Notes what a node is given.
class NoteGradient final : public NodeHook {
 public:
  NoteGradient(Json& gradients, std::string node) : gradients_(gradients), node_(std::move(node)) {}
  void operator()(Tensors& grads) override {
    const Tensor gradient = grads[0].contiguous();
    const auto* data = gradient.const_data_ptr<float>();
    gradients_.push_back({{"node", node_}, {"values", std::vector<float>(data, data + gradient.numel())}});
  }

 private:
  Json& gradients_;
  const std::string node_;
};

void note_gradients(Node& node, Json& gradients) {
  if (!node.pre_hooks().empty()) return;  // several edges lead to it
  const bool leaf = node.next_edges().empty();
  node.pre_hooks().push_back(
      std::make_unique<NoteGradient>(gradients, leaf ? "leaf" : str(node.name(), " #", node.sequence_nr())));
  for (const Edge& next : node.next_edges()) {
    if (next.valid()) note_gradients(*next.node, gradients);
  }
}

}  // namespace

Json graph_facts() {
  const Tensor w = full({3}, 2.0, requires_grad());
  const Tensor x = tensor({1.0, 2.0, 3.0}, kFloat32);
  const Tensor y = w * x;
  const Tensor loss = (y * y).sum();
  Json facts = {{"squares", autograd::to_dot(loss)}, {"gradients", Json::array()}};
  note_gradients(*gradient_edge(loss).node, facts["gradients"]);
  loss.backward();

  nn::Sequential net(nn::Linear(4, 8), nn::ReLU(), nn::Linear(nn::LinearOptions(8, 3).bias(false)));
  facts["net"] = autograd::to_dot(nn::functional::cross_entropy(net->forward(ones({5, 4})), zeros({5}, kInt64)));
  return facts;
}

Json step_facts(const std::string& folder) {
  nn::Linear net(4, 1);
  optim::SGD optimizer(net->parameters(), 0.1);
  const Tensor x = ones({5, 4}), target = zeros({5, 1});
  profiler::Profile profile({.with_devices = false});
  Tensor loss;
  {
    const record_function range("forward");
    loss = nn::functional::mse_loss(net(x), target);
  }
  {
    const record_function range("backward");
    loss.backward();
  }
  {
    const record_function range("optimizer");
    optimizer.step();
  }
  profile.stop();
  const std::string file = folder + "/trace.json";
  profile.export_chrome_trace(file);
  return Json::parse(std::ifstream(file)).at("traceEvents");
}

}  // namespace rush::diagrams
