// rush_derivatives FOLDER...: reads what the tests logged (tests/derivatives/log.h) and names every operator with a
// derivative that no gradcheck or no gradgradcheck reached, or only with a single shape, or never broadcast although it
// can. Other strides than the caller's are gradcheck's own business (GradcheckOptions::any_layout).
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/dispatch/registry.h"
#include "core/dispatch/schema.h"
#include "core/ops/factory/factories.h"
#include "core/str.h"
#include "tests/derivatives/log.h"

using namespace rush;

namespace {

struct Checked {
  std::set<std::string> shapes[2];  // by the order of the derivative - 1: the operands' and the output's
  bool broadcast[2] = {};
};
using Log = std::map<std::string, Checked, std::less<>>;

// "aten::add.Tensor 2 (2, 3) < (2, 3) (3)"
void read_line(const std::string& line, Log& log) {
  std::istringstream words(line);
  std::string name;
  int order = 0;
  words >> name >> order;
  std::string shapes;
  std::getline(words, shapes);
  const size_t arrow = shapes.find(" <");
  const std::string output = shapes.substr(1, arrow - 1);
  Checked& checked = log[name];
  checked.shapes[order - 1].insert(shapes);
  for (size_t begin = arrow + 2; begin < shapes.size();) {
    const size_t end = shapes.find(')', begin) + 1;
    if (shapes.substr(begin + 1, end - begin - 1) != output) checked.broadcast[order - 1] = true;
    begin = end;
  }
}

Log read_logs(const char* folder) {
  Log log;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) read_line(line, log);
  }
  return log;
}

// A composite serves the Autograd key by the function that serves the CPU: it consists of calls that have derivatives.
bool has_derivative(const OpBase& op) {
  if (!op.has_kernel(DispatchKey::Autograd)) return false;
  const auto here = op.registered_at(DispatchKey::Autograd), there = op.registered_at(DispatchKey::Dense);
  return here.line() != there.line() || std::string_view(here.file_name()) != there.file_name();
}

// The sizes that the operator gives for tensors of these, taken in turn, and the number 1 wherever one is needed.
std::optional<DimVector> output_sizes(const OpBase& op, std::initializer_list<IntArrayRef> sizes) {
  const Schema schema = Schema::parse(op.schema());
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
  size_t tensors = 0;
  for (const Argument& argument : schema.arguments) {
    if (argument.type == "Tensor") {
      named.emplace_back(argument.name,
                         empty(sizes.begin()[tensors++ % sizes.size()],
                               TensorOptions(argument.name == "condition" ? kBool : kFloat32).device(kMeta)));
    } else if (!argument.default_value) {
      named.emplace_back(argument.name, Value(1));
    }
  }
  if (tensors < 2) return std::nullopt;
  try {
    Stack stack = schema.bind(std::move(positional), std::move(named));
    op.call_boxed(stack);
    if (!stack.back().is<Tensor>()) return std::nullopt;
    return DimVector(stack.back().as<Tensor>().sizes());
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool broadcasts(const OpBase& op) {
  const DimVector both = {2, 3};
  if (op.name().ends_with('_') || op.name().find("_.") != std::string_view::npos) {
    return output_sizes(op, {{2, 3}, {1, 3}}) == both && output_sizes(op, {{2, 3}, {3}}) == both;
  }
  return output_sizes(op, {{2, 1}, {1, 3}}) == both && output_sizes(op, {{3}, {2, 3}}) == both &&
         output_sizes(op, {{2, 1}, {2, 3}}) == both;
}

// Operators that exist to be called by derivatives: their own first derivative is the second one of what they belong
// to.
bool is_derivative(const OpBase& op) {
  return op.name().find("_backward") != std::string_view::npos || op.name() == "rush::strided_sum";
}

// PyTorch has no second derivative of it either.
bool is_differentiable_once(const OpBase& op) { return op.name().starts_with("aten::_ctc_loss"); }

// The gradients of draws are zero by definition, as in PyTorch, not by finite differences;
// tests/ops/inplace_derivatives.
bool is_drawn(const OpBase& op) { return op.name().starts_with("aten::normal."); }

// Only a GPU computes them: tests/cuda/rnn and tests/cuda/attention compare their gradients with those of the operators
// that they stand for. PyTorch has no second derivative of them either.
bool is_of_cuda(const OpBase& op) {
  return op.name().starts_with("aten::_cudnn_rnn") ||
         op.name().starts_with("aten::_scaled_dot_product_cudnn_attention") ||
         op.name().starts_with("aten::_scaled_dot_product_efficient_attention");
}

// They refuse to be differentiated; tests/autograd/missing, tests/ops/semi_structured.
bool has_no_gradient(const OpBase& op) {
  return derivative_is_missing(op) || op.name() == "aten::_cslt_compress" || op.name() == "rush::_cslt_decompress";
}

// What is missing for `op`; empty if nothing is.
std::string gaps(const OpBase& op, const Log& log) {
  if (is_differentiable_once(op) && is_derivative(op)) return "";
  const auto found = log.find(op.name());
  if (found == log.end()) return "no gradcheck";
  const Checked& checked = found->second;
  if (checked.shapes[0].empty()) return "no gradcheck";
  if (checked.shapes[1].empty() && !is_derivative(op) && !is_differentiable_once(op)) return "no gradgradcheck";
  if (checked.shapes[0].size() == 1) return "one shape only:" + *checked.shapes[0].begin();
  if (checked.shapes[1].size() == 1 && !is_derivative(op)) return "one shape only:" + *checked.shapes[1].begin();
  if (broadcasts(op) && !checked.broadcast[0]) return "never broadcast";
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: rush_derivatives FOLDER\n", stderr), 2;
  const Log log = read_logs(argv[1]);
  int total = 0, incomplete = 0, broadcasting = 0;
  for (const auto& [name, op] : registry().operators()) {
    if (!has_derivative(*op) || is_drawn(*op) || is_of_cuda(*op) || has_no_gradient(*op)) continue;
    ++total;
    broadcasting += broadcasts(*op);
    const std::string missing = gaps(*op, log);
    if (missing.empty()) continue;
    ++incomplete;
    std::printf("%s: %s\n", std::string(name).c_str(), missing.c_str());
  }
  std::printf("operators with derivatives %d (%d broadcast), not checked in full %d\n", total, broadcasting,
              incomplete);
  return incomplete == 0 && total > 0 ? 0 : 1;
}
