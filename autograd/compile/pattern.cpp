#include "autograd/compile/pattern.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/dispatch/value_tensors.h"
#include "core/ops/factory/factories.h"

namespace rush::compiler {

namespace {

using Ints = std::vector<int64_t>;

bool is_number(const Graph& graph, const Graph::Constant& constant) {
  return graph.info(constant.id).is_wrapped_number && !is_complex(constant.tensor.scalar_type());
}

// Replaces the numbers of a graph one after another by what `replace` returns for them. An integer has the same place
// in the order as a double would have.
void replace_numbers(Graph& graph, const std::function<double(double)>& replace) {
  const auto replace_integer = [&](int64_t& number) {
    const double now = static_cast<double>(number), then = replace(now);
    if (then != now) number = std::llround(then);
  };
  for (Graph::TensorInfo& info : graph.tensors) {
    std::ranges::for_each(info.sizes, replace_integer);
    std::ranges::for_each(info.strides, replace_integer);
    replace_integer(info.storage_offset);
  }
  for (Graph::Constant& constant : graph.constants) {
    if (!is_number(graph, constant)) continue;  // one that the program wrote is a tensor of no dimensions
    const double now = constant.tensor.item().toDouble(), then = replace(now);
    if (then == now) continue;
    constant.tensor = full({}, then, constant.tensor.options());
    constant.tensor.impl()->set_wrapped_number(true);
  }
  for (Graph::Call& call : graph.calls) {
    for (Graph::Argument& argument : call.arguments) {
      Value& value = argument.value;
      if (value.is<double>()) value = replace(value.as<double>());
      if (!value.is<int64_t>() && !value.is<Ints>()) continue;
      Ints numbers = value.is<Ints>() ? value.as<Ints>() : Ints{value.as<int64_t>()};
      std::ranges::for_each(numbers, replace_integer);
      value = value.is<Ints>() ? Value(std::move(numbers)) : Value(numbers[0]);
    }
  }
}

std::vector<double> numbers_of(Graph graph) {
  std::vector<double> numbers;
  replace_numbers(graph, [&](double number) {
    numbers.push_back(number);
    return number;
  });
  return numbers;
}

// How many of these are sizes, strides and offsets of tensors: the first.
size_t numbers_of_tensors(const Graph& graph) {
  size_t count = 0;
  for (const Graph::TensorInfo& info : graph.tensors) count += 2 * info.sizes.size() + 1;
  return count;
}

Pattern::Expression unknown_size(size_t number) { return {number, -1, -1, 1, 0, 0}; }

// Whether both are of one of these types, and the same.
template <class... Ts>
bool are_same(const Value& a, const Value& b) {
  return ((a.is<Ts>() && b.is<Ts>() && a.as<Ts>() == b.as<Ts>()) || ...);
}
bool are_of_one_kind(const Value& a, const Value& b) { return std::string_view(a.kind()) == b.kind(); }
bool are_same_apart_from_numbers(const Value& a, const Value& b) {
  return are_same<bool, ScalarType, Layout, Device, MemoryFormat, std::string, std::vector<double>, std::vector<bool>>(
             a, b) ||
         (are_of_one_kind(a, b) && (a.is_none() || holds_tensors(a)));
}
// Whether they may differ in numbers alone.
bool same_kind(const Value& a, const Value& b) {
  if (a.is<Ints>() && b.is<Ints>()) return a.as<Ints>().size() == b.as<Ints>().size();
  const bool is_number = a.is<int64_t>() || a.is<double>() || a.is<complex<double>>() || a.is<Generator>();
  return is_number ? are_of_one_kind(a, b) : are_same_apart_from_numbers(a, b);
}

bool same_argument(const Graph::Argument& a, const Graph::Argument& b) {
  return a.tensors == b.tensors && same_kind(a.value, b.value);
}

bool same_call(const Graph::Call& a, const Graph::Call& b) {
  return a.op == b.op && a.name == b.name && a.written == b.written && a.is_random == b.is_random &&
         std::ranges::equal(a.arguments, b.arguments, same_argument) &&
         std::ranges::equal(a.results, b.results, same_argument);
}

bool same_tensor(const Graph::TensorInfo& a, const Graph::TensorInfo& b) {
  return a.sizes.size() == b.sizes.size() && a.dtype == b.dtype && a.device == b.device && a.memory == b.memory &&
         a.is_wrapped_number == b.is_wrapped_number;
}

// Two graphs that may differ in their numbers.
bool same_structure(const Graph& a, const Graph& b) {
  const auto same_constant = [&](const Graph::Constant& x, const Graph::Constant& y) {
    if (x.id != y.id || x.tensor.scalar_type() != y.tensor.scalar_type()) return false;
    return (is_number(a, x) && is_number(b, y)) || x.tensor.is_same(y.tensor) ||
           std::ranges::count(a.earlier_gradients, x.id, &Graph::Gradient::gradient) > 0;
  };
  return a.inputs == b.inputs && a.outputs == b.outputs && a.gradients == b.gradients &&
         a.earlier_gradients == b.earlier_gradients && a.backward == b.backward &&
         std::ranges::equal(a.tensors, b.tensors, same_tensor) &&
         std::ranges::equal(a.constants, b.constants, same_constant) && std::ranges::equal(a.calls, b.calls, same_call);
}

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

bool is_same(const Value& a, const Value& b) {
  return are_same<int64_t, double, complex<double>, Ints>(a, b) || are_same_apart_from_numbers(a, b);
}

bool is_same(const Graph& a, const Graph& b) {
  return same_structure(a, b) && std::ranges::equal(numbers_of(a), numbers_of(b), same_number);
}

std::optional<Pattern> Pattern::of(const Graph& a, const Graph& b, Unknown unknown) {
  if (!same_structure(a, b)) return std::nullopt;
  Pattern pattern(a, {});
  for (const Graph::Id input : a.inputs) {
    const DimVector &x = a.info(input).sizes, &y = b.info(input).sizes;
    for (size_t d = 0; d < x.size(); ++d) {
      if (x[d] == y[d]) continue;
      if (x[d] <= 1 || y[d] <= 1) return std::nullopt;
      const auto known = [&](const Variable& v) { return v.a == x[d] && v.b == y[d]; };
      if (std::ranges::none_of(pattern.variables_, known)) pattern.variables_.push_back({x[d], y[d]});
    }
  }
  const std::vector<double> of_a = numbers_of(a), of_b = numbers_of(b);
  for (size_t i = 0; i < of_a.size(); ++i) {
    if (same_number(of_a[i], of_b[i])) continue;
    const std::optional<Expression> found = pattern.expression(i, of_a[i], of_b[i]);
    if (!found && (unknown == Unknown::Refused || i >= numbers_of_tensors(a))) return std::nullopt;
    pattern.expressions_.push_back(found.value_or(unknown_size(i)));
  }
  return pattern;
}

// The simplest that gives a in the first trace and b in the second, exactly: that with the smallest offset, since an
// offset lets one size stand for another.
std::optional<Pattern::Expression> Pattern::expression(size_t number, double a, double b) const {
  const auto gives = [&](const Expression& e, double va, double vb) {
    const auto value = [&](double v) { return e.power > 0 ? e.scale * v + e.offset : e.scale / v + e.offset; };
    return value(va) == a && value(vb) == b;
  };
  std::optional<Expression> simplest;
  const auto count = static_cast<int>(variables_.size());
  for (int v = 0; v < count; ++v) {
    for (int w = -1; w <= v; ++w) {
      const auto at = [&](int64_t Variable::*trace) {
        const double first = static_cast<double>(variables_[static_cast<size_t>(v)].*trace);
        return w < 0 ? first : first * static_cast<double>(variables_[static_cast<size_t>(w)].*trace);
      };
      const double va = at(&Variable::a), vb = at(&Variable::b);
      const double slope = (b - a) / (vb - va);
      for (const Expression& e : {Expression{number, v, w, 1, a / va, 0}, Expression{number, v, w, -1, a * va, 0},
                                  Expression{number, v, w, 1, slope, a - slope * va}}) {
        if (e.offset != 0 && std::nearbyint(e.scale) != e.scale) continue;
        if (simplest && std::abs(simplest->offset) <= std::abs(e.offset)) continue;
        // 1 / v was rounded, and times v it need not be 1 again.
        const Expression rounded{e.number, e.v, e.w, e.power, std::nearbyint(e.scale), e.offset};
        if (std::abs(rounded.scale - e.scale) < 1e-9 && gives(rounded, va, vb)) {
          simplest = rounded;
        } else if (gives(e, va, vb)) {
          simplest = e;
        }
      }
    }
  }
  return simplest;
}

bool Pattern::find_values(const std::vector<Tensor>& inputs, int64_t least, std::vector<int64_t>& values) const {
  values.assign(variables_.size(), -1);
  const Graph all_places = places();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Graph::Id id = graph_.inputs[i];
    const DimVector &traced = graph_.info(id).sizes, &places = all_places.info(id).sizes;
    for (size_t d = 0; d < traced.size(); ++d) {
      const int64_t size = inputs[i].size(static_cast<int64_t>(d));
      if (places[d] < 0 && size != traced[d]) return false;
      if (places[d] < 0) continue;
      const int variable = expressions_[static_cast<size_t>(places[d])].v;
      if (variable < 0) return false;  // a file may say so, but an input's size is known
      int64_t& value = values[static_cast<size_t>(variable)];
      if (size < least || (value >= 0 && value != size)) return false;
      value = size;
    }
  }
  return std::ranges::none_of(values, [](int64_t value) { return value < 0; });
}

Graph Pattern::with_numbers(const std::function<double(double now, int expression)>& number_of) const {
  Graph graph = graph_;
  size_t number = 0, next = 0;
  replace_numbers(graph, [&](double now) {
    const bool is_found = next < expressions_.size() && expressions_[next].number == number++;
    return number_of(now, is_found ? static_cast<int>(next++) : -1);
  });
  return graph;
}

std::optional<Graph> Pattern::for_inputs(const std::vector<Tensor>& inputs, int64_t least, Unknown unknown) const {
  std::vector<int64_t> values;
  std::vector<double> wanted;
  if (!find_values(inputs, least, values)) return std::nullopt;
  const auto value = [&](const Expression& e) {
    double v = static_cast<double>(values[static_cast<size_t>(e.v)]);
    if (e.w >= 0) v *= static_cast<double>(values[static_cast<size_t>(e.w)]);
    return (e.power > 0 ? e.scale * v : e.scale / v) + e.offset;
  };
  Graph graph = with_numbers([&](double now, int expression) {
    const bool is_known = expression >= 0 && expressions_[static_cast<size_t>(expression)].v >= 0;
    wanted.push_back(is_known ? value(expressions_[static_cast<size_t>(expression)]) : now);
    return wanted.back();
  });
  // Half of an odd size may be what lies below or above it.
  const std::vector<double> found = numbers_of(graph);
  for (size_t i = unknown == Unknown::Refused ? 0 : numbers_of_tensors(graph_); i < found.size(); ++i) {
    if (std::abs(found[i] - wanted[i]) > 1e-6) return std::nullopt;
  }
  const bool fit = std::ranges::equal(
      inputs, graph.inputs, [&](const Tensor& input, Graph::Id id) { return graph.info(id).has_geometry_of(input); });
  return fit ? std::optional(std::move(graph)) : std::nullopt;
}

bool Pattern::check(const std::vector<Tensor>& inputs, const Graph& traced) {
  const std::optional<Graph> graph = for_inputs(inputs, 2, Unknown::LeftInTensors);
  if (!graph || !same_structure(*graph, traced)) return false;
  const std::vector<double> expected = numbers_of(*graph), found = numbers_of(traced);
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto at = std::ranges::lower_bound(expressions_, i, {}, &Expression::number);
    const bool is_known = at == expressions_.end() || at->number != i || at->v >= 0;
    if (!is_known || same_number(expected[i], found[i])) continue;
    if (i >= numbers_of_tensors(graph_)) return false;
    if (at != expressions_.end() && at->number == i) {
      *at = unknown_size(i);
    } else {
      expressions_.insert(at, unknown_size(i));
    }
  }
  return true;
}

bool Pattern::has_unknown() const {
  return std::ranges::any_of(expressions_, [](const Expression& e) { return e.v < 0; });
}

Graph Pattern::places() const {
  return with_numbers([](double /*now*/, int expression) { return expression; });
}

}  // namespace rush::compiler
