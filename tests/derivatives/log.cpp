#include "tests/derivatives/log.h"

#include <filesystem>
#include <fstream>
#include <set>

#include "autograd/debug/anomaly.h"
#include "autograd/debug/gradcheck.h"
#include "core/str.h"

using namespace rush;

namespace {

std::ofstream& log_file() {
  static std::ofstream file;
  return file;
}

// Lines of the file so far, so that each is written once.
std::set<std::string>& logged() {
  static std::set<std::string> lines;
  return lines;
}

void log_node(const Node& node, int order) {
  // Custom functions are no operators.
  if (!node.forward_call() || node.forward_call()->what.find("::") == std::string::npos) return;
  std::string line = str(node.forward_call()->what, ' ', order, ' ', IntArrayRef(node.output_metadata(0).sizes), " <");
  for (const Edge& edge : node.next_edges()) {
    if (edge.valid()) line += str(' ', IntArrayRef(edge.node->output_metadata(edge.slot).sizes));
  }
  if (logged().insert(line).second) log_file() << line << std::endl;
}

// Anomaly mode lets each node remember the operator that made it.
void log_function(const autograd::TensorFunction& fn, const Tensors& inputs, int order) {
  const autograd::DetectAnomalyGuard remember;
  std::vector<intrusive_ptr<Node>> pending;
  std::set<const Node*> seen;
  const Tensors outputs = fn(inputs);
  for (const Tensor& output : outputs) {
    if (output.defined() && output.grad_fn()) pending.push_back(output.grad_fn());
  }
  while (!pending.empty()) {
    const intrusive_ptr<Node> node = pending.back();
    pending.pop_back();
    if (!seen.insert(node.get()).second) continue;
    log_node(*node, order);
    for (const Edge& edge : node->next_edges()) {
      if (edge.valid()) pending.push_back(edge.node);
    }
  }
}

}  // namespace

void log_checked_derivatives(const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  log_file().open(path, std::ios::trunc);
  autograd::gradcheck_observer = log_function;
}
