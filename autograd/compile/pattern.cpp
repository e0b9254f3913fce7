#include "autograd/compile/pattern.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/factory/factories.h"

namespace rush::compiler {

namespace {

// Replaces a number by what `visit` returns for it. An integer has the same place in the order as a double would have.
class NumberVisitor {
 public:
  virtual ~NumberVisitor() = default;
  virtual double visit(double number) = 0;

  void on(int64_t& number) {
    const double now = static_cast<double>(number), then = visit(now);
    if (then != now) number = std::llround(then);
  }
  void on(DimVector& numbers) {
    for (int64_t& number : numbers) on(number);
  }
  void on(Value& value) {
    if (value.is<int64_t>()) {
      int64_t number = value.as<int64_t>();
      on(number);
      value = number;
    } else if (value.is<double>()) {
      value = visit(value.as<double>());
    } else if (value.is<std::vector<int64_t>>()) {
      std::vector<int64_t> numbers = value.as<std::vector<int64_t>>();
      for (int64_t& number : numbers) on(number);
      value = std::move(numbers);
    }
  }
  // A number that the program wrote, which is a tensor of no dimensions.
  void on(Graph::Constant& constant) {
    const double now = constant.tensor.item().toDouble(), then = visit(now);
    if (then == now) return;
    constant.tensor = full({}, then, constant.tensor.options());
    constant.tensor.impl()->set_wrapped_number(true);
  }
};

bool is_number(const Graph& graph, const Graph::Constant& constant) {
  return graph.tensors[static_cast<size_t>(constant.id)].is_wrapped_number &&
         !is_complex(constant.tensor.scalar_type());
}

void visit_numbers(Graph& graph, NumberVisitor& visitor) {
  for (Graph::TensorInfo& info : graph.tensors) {
    visitor.on(info.sizes);
    visitor.on(info.strides);
    visitor.on(info.storage_offset);
  }
  for (Graph::Constant& constant : graph.constants) {
    if (is_number(graph, constant)) visitor.on(constant);
  }
  for (Graph::Call& call : graph.calls) {
    for (Graph::Argument& argument : call.arguments) visitor.on(argument.value);
  }
}

std::vector<double> numbers_of(Graph graph) {
  struct Collect final : NumberVisitor {
    std::vector<double> numbers;
    double visit(double number) override {
      numbers.push_back(number);
      return number;
    }
  } collect;
  visit_numbers(graph, collect);
  return std::move(collect.numbers);
}

template <class T>
bool both(const Value& a, const Value& b, bool& same) {
  if (!a.is<T>() || !b.is<T>()) return false;
  same = a.as<T>() == b.as<T>();
  return true;
}
// Apart from their numbers.
bool same_kind(const Value& a, const Value& b) {
  if (std::string_view(a.kind()) != b.kind()) return false;
  if (a.is<std::vector<int64_t>>()) return a.as<std::vector<int64_t>>().size() == b.as<std::vector<int64_t>>().size();
  bool same = true;
  (void)(both<bool>(a, b, same) || both<ScalarType>(a, b, same) || both<Layout>(a, b, same) ||
         both<Device>(a, b, same) || both<MemoryFormat>(a, b, same) || both<std::string>(a, b, same) ||
         both<std::vector<double>>(a, b, same) || both<std::vector<bool>>(a, b, same));
  return same;
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
  const auto same_gradient = [](const Graph::Gradient& x, const Graph::Gradient& y) {
    return x.leaf == y.leaf && x.gradient == y.gradient;
  };
  if (a.backward.has_value() != b.backward.has_value()) return false;
  if (a.backward && (a.backward->first_call != b.backward->first_call || a.backward->given != b.backward->given ||
                     !std::ranges::equal(a.backward->found, b.backward->found, same_gradient)))
    return false;
  return a.inputs == b.inputs && a.outputs == b.outputs && std::ranges::equal(a.tensors, b.tensors, same_tensor) &&
         std::ranges::equal(a.constants, b.constants, same_constant) &&
         std::ranges::equal(a.calls, b.calls, same_call) &&
         std::ranges::equal(a.gradients, b.gradients, same_gradient) &&
         std::ranges::equal(a.earlier_gradients, b.earlier_gradients, same_gradient);
}

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

bool is_same(const Value& a, const Value& b) {
  if (!same_kind(a, b) || a.is<Generator>()) return false;
  bool same = true;
  (void)(both<int64_t>(a, b, same) || both<double>(a, b, same) || both<complex<double>>(a, b, same) ||
         both<std::vector<int64_t>>(a, b, same));
  return same;
}

bool is_same(const Graph& a, const Graph& b) {
  return same_structure(a, b) && std::ranges::equal(numbers_of(a), numbers_of(b), same_number);
}

std::optional<Pattern> Pattern::of(const Graph& a, const Graph& b) {
  if (!same_structure(a, b)) return std::nullopt;
  Pattern pattern(a, {});
  for (const Graph::Id input : a.inputs) {
    const DimVector &x = a.tensors[static_cast<size_t>(input)].sizes, &y = b.tensors[static_cast<size_t>(input)].sizes;
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
    if (!found) return std::nullopt;
    pattern.expressions_.push_back(*found);
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
  // A size belongs to the variable whose expression it is in the tensor's information: those are visited first.
  size_t number = 0;
  auto next = expressions_.begin();
  for (size_t id = 0; id < graph_.tensors.size(); ++id) {
    const Graph::TensorInfo& info = graph_.tensors[id];
    const auto input = std::ranges::find(graph_.inputs, static_cast<Graph::Id>(id));
    for (size_t d = 0; d < info.sizes.size(); ++d, ++number) {
      while (next != expressions_.end() && next->number < number) ++next;
      if (input == graph_.inputs.end()) continue;
      const int64_t size = inputs[static_cast<size_t>(input - graph_.inputs.begin())].size(static_cast<int64_t>(d));
      if (next == expressions_.end() || next->number != number) {
        if (size != info.sizes[d]) return false;
        continue;
      }
      int64_t& value = values[static_cast<size_t>(next->v)];
      if (size < least || (value >= 0 && value != size)) return false;
      value = size;
    }
    number += info.strides.size() + 1;
  }
  return std::ranges::none_of(values, [](int64_t value) { return value < 0; });
}

std::optional<Graph> Pattern::for_inputs(const std::vector<Tensor>& inputs, int64_t least) const {
  struct Substitute final : NumberVisitor {
    const std::vector<Expression>& expressions;
    const std::vector<int64_t>& values;
    size_t number = 0, next = 0;
    Substitute(const std::vector<Expression>& expressions, const std::vector<int64_t>& values)
        : expressions(expressions), values(values) {}
    double visit(double now) override {
      if (next == expressions.size() || expressions[next].number != number++) return now;
      const Expression& e = expressions[next++];
      double v = static_cast<double>(values[static_cast<size_t>(e.v)]);
      if (e.w >= 0) v *= static_cast<double>(values[static_cast<size_t>(e.w)]);
      return (e.power > 0 ? e.scale * v : e.scale / v) + e.offset;
    }
  };
  std::vector<int64_t> values;
  if (!find_values(inputs, least, values)) return std::nullopt;
  Graph graph = graph_;
  Substitute substitute(expressions_, values);
  visit_numbers(graph, substitute);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Graph::TensorInfo& info = graph.tensors[static_cast<size_t>(graph.inputs[i])];
    if (!(inputs[i].sizes() == IntArrayRef(info.sizes)) || !(inputs[i].strides() == IntArrayRef(info.strides)))
      return std::nullopt;
  }
  return graph;
}

Graph Pattern::places() const {
  struct Places final : NumberVisitor {
    const std::vector<Expression>& expressions;
    size_t number = 0, next = 0;
    explicit Places(const std::vector<Expression>& expressions) : expressions(expressions) {}
    double visit(double /*now*/) override {
      if (next == expressions.size() || expressions[next].number != number++) return -1;
      return static_cast<double>(next++);
    }
  } places(expressions_);
  Graph graph = graph_;
  visit_numbers(graph, places);
  return graph;
}

}  // namespace rush::compiler
