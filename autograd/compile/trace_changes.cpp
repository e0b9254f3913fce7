#include "autograd/compile/trace_changes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "autograd/compile/graph_dump.h"
#include "autograd/compile/pattern.h"
#include "core/print/bracketed.h"
#include "core/str.h"

namespace rush::compiler {

namespace {

std::string text_of_number(const Tensor& number) {
  if (is_complex(number.scalar_type())) return "a complex number";
  const double value = number.item().toDouble();
  return number.scalar_type() == kFloat64 ? str(value) : str(static_cast<float>(value));  // in as few digits
}

std::string another_number(const std::string& op, const std::string& then, const std::string& now) {
  return str("it gives ", op, " another number at each call, ", now, " after ", then, ": a tensor may change");
}

// Undefined where the graph makes it, or it is a gradient.
Tensor taken_from_elsewhere(const Graph& graph, Graph::Id id) {
  const auto found = std::ranges::find(graph.constants, id, &Graph::Constant::id);
  const bool is_gradient = std::ranges::count(graph.earlier_gradients, id, &Graph::Gradient::gradient) > 0;
  return found == graph.constants.end() || is_gradient ? Tensor() : found->tensor;
}

std::string change(const std::string& op, const Tensor& then, const Tensor& now) {
  if (!then.defined() || !now.defined() || !has_arithmetic(then.scalar_type())) return {};
  if (then.impl()->is_wrapped_number() && now.impl()->is_wrapped_number())
    return is_given_again(then, now) ? std::string() : another_number(op, text_of_number(then), text_of_number(now));
  if (is_taken_again(then, now)) return {};
  return str("it gives ", op, " another tensor from elsewhere at each call, which should be an input");
}

// Of one argument of the operator, in two graphs.
std::string change(const std::string& op, const Graph& before, const Graph::Argument& then, const Graph& after,
                   const Graph::Argument& now) {
  if (!is_given_again(then.value, now.value)) return another_number(op, text_of(then.value), text_of(now.value));
  const size_t tensors = std::min(then.tensors.size(), now.tensors.size());
  for (size_t i = 0; i < tensors; ++i) {
    std::string text =
        change(op, taken_from_elsewhere(before, then.tensors[i]), taken_from_elsewhere(after, now.tensors[i]));
    if (!text.empty()) return text;
  }
  return {};
}

// Of the sizes of what two calls with the same arguments make.
std::string change_of_sizes(const Graph& before, const Graph::Call& then, const Graph& after, const Graph::Call& now) {
  const std::vector<Graph::Id> a = Graph::tensors_of(then.results), b = Graph::tensors_of(now.results);
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const DimVector &was = before.info(a[i]).sizes, &is = after.info(b[i]).sizes;
    if (was != is)
      return str(now.name, " makes a tensor of other sizes at each call, ", bracketed(is), " after ", bracketed(was));
  }
  return {};
}

}  // namespace

bool is_given_again(const Value& then, const Value& now) {
  const auto is_nan = [](const Value& value) { return value.is<double>() && std::isnan(value.as<double>()); };
  return is_same(then, now) || (is_nan(then) && is_nan(now)) || (then.is<Generator>() && now.is<Generator>());
}

bool is_given_again(const Tensor& then, const Tensor& now) {
  if (!now.defined() || !now.impl()->is_wrapped_number()) return false;
  const bool are_here = then.device().is_cpu() && now.device().is_cpu();
  return !are_here || (then.scalar_type() == now.scalar_type() &&
                       std::memcmp(then.data_ptr(), now.data_ptr(), static_cast<size_t>(then.nbytes())) == 0);
}

bool is_taken_again(const Tensor& then, const Tensor& now) {
  if (then.is_same(now) || !has_arithmetic(then.scalar_type())) return true;
  const bool are_alike =
      then.scalar_type() == now.scalar_type() && then.device() == now.device() && then.sizes() == now.sizes();
  return are_alike && (then.equal(now) || (then.is_floating_point() && then.allclose(now, 0, 0, /*equal_nan=*/true)));
}

std::string change_between(const Graph& before, const Graph& now) {
  const size_t calls = std::min(before.calls.size(), now.calls.size());
  for (size_t i = 0; i < calls; ++i) {
    const Graph::Call &a = before.calls[i], &b = now.calls[i];
    if (a.name != b.name || a.arguments.size() != b.arguments.size()) break;
    for (size_t k = 0; k < a.arguments.size(); ++k) {
      std::string text = change(b.name, before, a.arguments[k], now, b.arguments[k]);
      if (!text.empty()) return text;
    }
    if (std::string text = change_of_sizes(before, a, now, b); !text.empty()) return text;
  }
  return {};
}

}  // namespace rush::compiler
