// Derivatives of operators through the boxed door, over shapes that their own tests leave out: the test `derivatives`
// demands several of each operator.
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include "core/dispatch/registry.h"
#include "core/dispatch/schema.h"
#include "tests/derivatives/log.h"
#include "tests/ops/index/index_testing.h"

using namespace rush;
using rush::testing::check_gradients;

namespace {

// Distinct values between 0.15 and 0.85, plus `shift`: where logarithms, arc sines and roots are defined.
Tensor operand(IntArrayRef sizes, int number, double shift = 0) {
  const Tensor x = empty(sizes, kFloat64);
  for (int64_t i = 0; i < x.numel(); ++i) {
    x.data_ptr<double>()[i] = 0.5 + shift + 0.35 * std::sin(1.7 * static_cast<double>(i) + 0.4 + number);
  }
  return x.requires_grad_();
}

// While there is one, tensors that are made from nothing have no data.
class NothingByDefault {
 public:
  NothingByDefault() { set_default_device(kMeta); }
  ~NothingByDefault() { set_default_device(before_); }

 private:
  Device before_ = get_default_device();
};

// A call whose Values that hold tensors with gradients are the differentiable inputs.
struct Call {
  const OpBase& op;
  std::vector<Value> arguments;

  bool in_place() const {
    const std::string_view name = op.name().substr(0, op.name().find('.'));
    return name.ends_with('_');
  }
  static bool is_input(const Value& value) { return value.is<Tensor>() && value.as<Tensor>().requires_grad(); }

  Tensors inputs() const {
    Tensors found;
    for (const Value& value : arguments) {
      if (is_input(value)) found.push_back(value.as<Tensor>());
      if (!value.is<std::vector<Tensor>>()) continue;
      for (const Tensor& each : value.as<std::vector<Tensor>>()) found.push_back(each);
    }
    return found;
  }
  // The results that have derivatives, for these in place of the inputs.
  Tensors operator()(const Tensors& inputs) const {
    manual_seed(3);
    Stack stack = arguments;
    size_t next = 0;
    for (Value& value : stack) {
      if (is_input(value)) value = Value(in_place() && next == 0 ? inputs[next] * 1 : inputs[next]), ++next;
      if (!value.is<std::vector<Tensor>>()) continue;
      std::vector<Tensor> list = value.as<std::vector<Tensor>>();
      for (Tensor& each : list) each = inputs[next++];
      value = Value(list);
    }
    {
      const NothingByDefault elsewhere;  // what follows from tensors is where they are
      op.call_boxed(stack);
    }
    Tensors results;
    for (const Value& value : stack) {
      if (value.is<Tensor>()) results.push_back(value.as<Tensor>());
      if (value.is<std::vector<Tensor>>()) {
        for (const Tensor& each : value.as<std::vector<Tensor>>()) results.push_back(each);
      }
    }
    std::erase_if(results, [](const Tensor& t) { return !t.defined() || t.scalar_type() != kFloat64; });
    return results;
  }
};

// ---- operators whose schema says all: tensors, and numbers or defaults ----------------------------------------------

// Tensors of these sizes, taken in turn; nothing if the operator takes other arguments, or another number of tensors.
std::optional<Call> call_of(const OpBase& op, const std::vector<DimVector>& sizes) {
  const Schema schema = Schema::parse(op.schema());
  std::vector<std::pair<std::string, Value>> named;
  int tensors = 0, numbers = 0;
  for (const Argument& argument : schema.arguments) {
    if (argument.type == "Tensor") {
      if (tensors == static_cast<int>(sizes.size())) return std::nullopt;
      const double shift = op.name().find("acosh") != std::string_view::npos ? 1 : 0;
      named.emplace_back(argument.name, operand(sizes[static_cast<size_t>(tensors)], tensors, shift));
      ++tensors;
    } else if (!argument.default_value) {
      if (argument.type == "int") {
        named.emplace_back(argument.name, Value(1));
      } else if (argument.type == "Scalar" || argument.type == "float") {
        named.emplace_back(argument.name, Value(0.3 + 0.4 * numbers++));
      } else {
        return std::nullopt;
      }
    }
  }
  if (tensors != static_cast<int>(sizes.size())) return std::nullopt;
  return Call{op, schema.bind({}, std::move(named))};
}

// What the operator itself refuses (a matrix of other sizes, an index that is no integer) is not for this test.
bool accepts(const Call& call) {
  try {
    const NoGradGuard no_grad;
    return !call(call.inputs()).empty();
  } catch (const Error&) {
    return false;
  }
}

// Whose gradients are not those of what they compute.
constexpr std::string_view kOther[] = {
    "aten::normal.Tensor_Tensor", "aten::normal.Tensor_float",
    "aten::normal.float_Tensor",                        // zero, as in PyTorch
    "aten::linalg_cholesky",      "aten::linalg_eigh",  // of a symmetric matrix, of which they read one half
    "aten::linalg_svd",           "aten::_linalg_svd",
    "aten::linalg_eig",  // of what does not depend on the vectors' signs or phases
};
// That have one by their second argument only: tests/ops/pointwise/special.cpp.
constexpr std::string_view kBySecondArgument[] = {"aten::igamma", "aten::igamma_", "aten::igammac", "aten::igammac_",
                                                  "aten::special_zeta"};

TEST_CASE("derivatives of everything that takes tensors and numbers, at several shapes") {
  const std::vector<std::vector<DimVector>> shapes = {{{5}},
                                                      {{2, 3}},
                                                      {{2, 1, 3}},
                                                      {{3, 3}},
                                                      {{5}, {5}},
                                                      {{2, 3}, {3}},
                                                      {{2, 1}, {1, 3}},
                                                      {{3, 3}, {3, 3}},
                                                      {{4}, {4}, {4}},
                                                      {{2, 3}, {3}, {2, 1}},
                                                      {{2, 3}, {2, 3}, {3, 3}}};
  int checked = 0;
  for (const auto& [name, op] : registry().operators()) {
    const auto here = op->registered_at(DispatchKey::Autograd), dense = op->registered_at(DispatchKey::Dense);
    const bool is_one_place = here.line() == dense.line() && std::string_view(here.file_name()) == dense.file_name();
    if (!op->has_kernel(DispatchKey::Autograd) || is_one_place) continue;
    if (derivative_is_missing(*op)) continue;
    if (std::find(std::begin(kOther), std::end(kOther), name) != std::end(kOther)) continue;
    if (std::find(std::begin(kBySecondArgument), std::end(kBySecondArgument), name) != std::end(kBySecondArgument))
      continue;
    for (const auto& sizes : shapes) {
      const std::optional<Call> call = call_of(*op, sizes);
      if (!call || !accepts(*call)) continue;
      INFO(name);
      ++checked;
      check_gradients(*call, call->inputs());
    }
  }
  CHECK(checked > 300);
}

// ---- operators that take more: calls spelled out --------------------------------------------------------------------

// x(2,3) is a differentiable tensor, i(2,3)%4 one of indices 1, 3, 1, ... modulo 4, b(2) one of true and false in turn,
// x(2)+x(3) a list of tensors, ?i(2)%4 a list of one optional tensor; the rest is as in Python.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Value value() {
    if (take("None")) return Value();
    if (take("True")) return Value(true);
    if (take("False")) return Value(false);
    if (take("'")) return string();
    if (take("[")) return Value(numbers(']'));
    if (take("?")) return Value(std::vector<std::optional<Tensor>>{tensor()});
    if (text_.find('(') == text_.npos) return number();
    const Tensor first = tensor();
    if (text_.empty()) return Value(first);
    std::vector<Tensor> list = {first};
    while (take("+")) list.push_back(tensor());
    return Value(list);
  }

 private:
  bool take(std::string_view prefix) {
    if (!text_.starts_with(prefix)) return false;
    text_.remove_prefix(prefix.size());
    return true;
  }
  int64_t integer() {
    size_t used = 0;
    const int64_t value = std::stoll(std::string(text_), &used);
    text_.remove_prefix(used);
    return value;
  }
  std::vector<int64_t> numbers(char end) {
    std::vector<int64_t> values;
    while (!take(std::string_view(&end, 1))) {
      values.push_back(integer());
      take(",");
    }
    return values;
  }
  Value number() {
    if (text_.find('.') == text_.npos) return Value(integer());
    return Value(std::stod(std::string(text_)));
  }
  Value string() { return Value(std::string(text_.substr(0, text_.find('\'')))); }
  Tensor tensor() {
    const char kind = text_[0];
    text_.remove_prefix(2);  // with the parenthesis
    const std::vector<int64_t> sizes = numbers(')');
    if (kind == 'x') return operand(sizes, tensors_++);
    const Tensor counted = arange(numel(sizes)).reshape(sizes) * 2 + 1;
    if (kind == 'b') return counted.remainder(4).eq(1);
    take("%");
    return counted.remainder(integer());
  }
  static int64_t numel(IntArrayRef sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  }

  std::string_view text_;
  static inline int tensors_ = 0;
};

Call parsed_call(const char* name, std::string_view text) {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const size_t equals = word.find('=');
    if (equals == word.npos) {
      positional.push_back(Parser(word).value());
    } else {
      named.emplace_back(word.substr(0, equals), Parser(word.substr(equals + 1)).value());
    }
  }
  const OpBase* op = registry().find(std::string("aten::") + name);
  REQUIRE(op);
  return Call{*op, Schema::parse(op->schema()).bind(std::move(positional), std::move(named))};
}

TEST_CASE("derivatives of calls spelled out") {
  const struct {
    const char* name;
    const char* arguments;
  } calls[] = {
      {"_adaptive_avg_pool3d", "x(2,1,3,2,4) [2,1,3]"},
      {"_upsample_bicubic2d_aa", "x(1,1,4,3) [2,2] False None None"},
      {"_upsample_bilinear2d_aa", "x(1,1,4,3) [2,2] False None None"},
      {"_upsample_nearest_exact1d", "x(1,3,5) [3] None"},
      {"_upsample_nearest_exact2d", "x(1,1,3,2) [2,5] None None"},
      {"_upsample_nearest_exact3d", "x(1,2,2,2,3) [3,3,2] None None None"},
      {"adaptive_max_pool2d", "x(1,3,4) [2,2]"},
      {"adaptive_max_pool3d", "x(1,1,3,3,4) [2,1,2]"},
      {"addmv", "x(1) x(5,2) x(2)"},
      {"addmv_", "x(3) x(3,2) x(2)"},
      {"avg_pool3d", "x(1,1,4,4,4) [2,2,2] [2,1,2]"},
      {"baddbmm", "x(1,2,3) x(2,2,4) x(2,4,3)"},
      {"baddbmm_", "x(1,3,2) x(1,3,4) x(1,4,2)"},
      {"clamp_", "x(5) 0.3 0.6"},
      {"div.Tensor_mode", "x(3) x(3) rounding_mode='trunc'"},
      {"div.Tensor_mode", "x(3) x(2,1) rounding_mode=None"},
      {"embedding", "x(5,2) i(3)%5"},
      {"fill.Tensor", "x(3) x()"},
      {"fill_.Tensor", "x(2) x()"},
      {"index_add_", "x(4) 0 i(3)%4 x(3)"},
      {"index_copy", "x(3,2) 0 i(2)%3 x(2,2)"},
      {"index_copy_", "x(4) 0 i(2)%4 x(2)"},
      {"index_fill.int_Scalar", "x(3) 0 i(2)%3 0.5"},
      {"index_fill.int_Tensor", "x(3,2) 1 i(1)%2 x()"},
      {"index_fill_.int_Scalar", "x(5) 0 i(2)%3 0.5"},
      {"index_fill_.int_Tensor", "x(3,2) 1 i(1)%2 x()"},
      {"index_put_", "x(4) ?i(2)%4 x(2)"},
      {"masked_fill.Tensor", "x(3) b(3) x()"},
      {"masked_fill_.Scalar", "x(4) b(4) 0.5"},
      {"masked_fill_.Tensor", "x(4) b(4) x()"},
      {"masked_scatter", "x(4) b(4) x(4)"},
      {"masked_scatter_", "x(5) b(5) x(6)"},
      {"max_pool3d_with_indices", "x(1,1,4,4,4) [2,2,2]"},
      {"put", "x(4) i(2)%4 x(2)"},
      {"put_", "x(5) i(2)%4 x(2)"},
      {"random_.from", "x(3) 0 5"},
      {"random_.from", "x(2,2) 0 5"},
      {"reflection_pad2d", "x(1,2,3,3) [1,1,2,1]"},
      {"reflection_pad3d", "x(1,1,3,2,3) [1,0,0,1,2,1]"},
      {"replication_pad1d", "x(1,2,4) [1,2]"},
      {"replication_pad2d", "x(1,2,3,2) [2,0,1,1]"},
      {"replication_pad3d", "x(1,1,2,3,2) [1,1,0,2,1,0]"},
      {"scatter_.src", "x(4) 0 i(2)%4 x(2)"},
      {"scatter_.value", "x(3,2) 0 i(1,2)%3 0.5"},
      {"scatter_add", "x(4) 0 i(3)%4 x(3)"},
      {"scatter_add_", "x(4) 0 i(3)%4 x(5)"},
      {"sort.stable", "x(2,4) stable=True"},
      {"split_with_sizes", "x(3,4) [1,3] 1"},
      {"stack", "x(3)+x(3) 1"},
      {"take", "x(5) i(2)%5"},
      {"upsample_bicubic2d", "x(1,1,4,4) [3,5] False None None"},
      {"upsample_bilinear2d", "x(1,1,4,4) [3,5] True None None"},
      {"upsample_linear1d", "x(1,1,5) [3] True None"},
      {"upsample_nearest1d", "x(1,3,3) [5] None"},
      {"upsample_nearest2d", "x(1,1,3,2) [2,5] None None"},
      {"upsample_nearest3d", "x(1,2,2,2,3) [3,3,2] None None None"},
      {"upsample_trilinear3d", "x(1,1,3,2,2) [2,3,3] False None None None"},
  };
  for (const auto& each : calls) {
    INFO(str(each.name, ' ', each.arguments));
    const Call call = parsed_call(each.name, each.arguments);
    check_gradients(call, call.inputs());
  }
}

}  // namespace
