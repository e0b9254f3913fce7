#include "nn/parallel/dtensor_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/dispatch/schema.h"
#include "core/ops/basic.h"
#include "core/ops/nn/loss.h"

namespace rush::nn::parallel::detail {

namespace {

// ---- names of dimensions

// Of an argument that is broadcast to a result of `sizes`, whose dimensions are called 1, 2, ...
Indices broadcast_names(const Tensor& arg, IntArrayRef sizes) {
  Indices names(static_cast<size_t>(arg.dim()), 0);
  const size_t lead = sizes.size() - names.size();
  for (size_t i = 0; i < names.size(); ++i) {
    if (arg.sizes()[i] == sizes[lead + i]) names[i] = static_cast<int64_t>(lead + i) + 1;
  }
  return names;
}

IndexNames pointwise(const RuleCall& call) {
  IndexNames names;
  for (const Tensor& arg : call.args) names.args.push_back(broadcast_names(arg, call.results[0].sizes()));
  for (const Tensor& result : call.results) names.results.push_back(broadcast_names(result, result.sizes()));
  return names;
}

int64_t int_at(const RuleCall& call, size_t position) { return call.stack[position].as<int64_t>(); }

void forget(Indices& names, int64_t dim) {
  if (!names.empty()) names[static_cast<size_t>(wrap_dim(dim, static_cast<int64_t>(names.size()), "a rule"))] = 0;
}

// softmax(self, dim): element-wise, but whole rows.
IndexNames in_rows(const RuleCall& call) {
  IndexNames names = pointwise(call);
  forget(names.args[0], int_at(call, 1));
  forget(names.results[0], int_at(call, 1));
  return names;
}

IndexNames concatenation(const RuleCall& call) {
  IndexNames names = pointwise(call);
  for (Indices& each : names.args) forget(each, int_at(call, 1));
  forget(names.results[0], int_at(call, 1));
  return names;
}

// layer_norm(input, normalized_shape, weight, bias): the leading dimensions.
IndexNames normalization(const RuleCall& call) {
  IndexNames names = pointwise(call);
  const size_t leading = names.results[0].size() - call.stack[1].as<std::vector<int64_t>>().size();
  const auto keep_leading = [&](Indices& each) { std::fill_n(each.rbegin(), each.size() - leading, 0); };
  keep_leading(names.args[0]);
  for (Indices& each : names.results) keep_leading(each);
  for (size_t i = 1; i < names.args.size(); ++i) std::fill(names.args[i].begin(), names.args[i].end(), 0);
  return names;
}

constexpr int64_t kRow = -1, kColumn = -2, kInner = -3;

// (..., m, k) (..., k, n) -> (..., m, n), as matmul has them: of vectors, m or n is missing.
IndexNames product(const RuleCall& call) {
  const Tensor &a = call.args[0], &b = call.args[1];
  IntArrayRef batch = call.results[0].sizes();
  batch = batch.slice(0, batch.size() - (a.dim() > 1) - (b.dim() > 1));
  const auto named = [&](const Tensor& t, Indices matrix) {
    const size_t leading = static_cast<size_t>(t.dim()) - matrix.size();
    Indices names = broadcast_names(empty(t.sizes().slice(0, leading), t.options()), batch);
    for (const int64_t name : matrix) names.push_back(name);
    return names;
  };
  Indices result = broadcast_names(empty(batch, a.options()), batch);
  if (a.dim() > 1) result.push_back(kRow);
  if (b.dim() > 1) result.push_back(kColumn);
  return {{named(a, a.dim() > 1 ? Indices{kRow, kInner} : Indices{kInner}),
           named(b, b.dim() > 1 ? Indices{kInner, kColumn} : Indices{kInner})},
          {result}};
}

// addmm(self, mat1, mat2)
IndexNames added_product(const RuleCall& call) {
  Indices self = broadcast_names(call.args[0], call.results[0].sizes());
  for (int64_t& name : self) name = name == 1 ? kRow : name == 2 ? kColumn : 0;
  return {{self, {kRow, kInner}, {kInner, kColumn}}, {{kRow, kColumn}}, 0};
}

// linear(input (..., k), weight (n, k), bias (n)) -> (..., n)
IndexNames linear(const RuleCall& call) {
  Indices input = broadcast_names(call.args[0], call.args[0].sizes()), result = input;
  input[input.size() - 1] = kInner;
  result[result.size() - 1] = kColumn;
  IndexNames names{{input, {kColumn, kInner}}, {result}, 2};
  if (call.args.size() == 3) names.args.push_back({kColumn});
  return names;
}

// embedding(weight (rows, width), indices (...)) -> (..., width)
IndexNames embedding(const RuleCall& call) {
  Indices result = broadcast_names(call.results[0], call.results[0].sizes()), indices(result.begin(), result.end() - 1);
  return {{{0, result.back()}, indices}, {result}};
}

// query (..., l, e), key (..., s, e), value (..., s, v), mask (..., l, s) -> (..., l, v): batches and heads. Where
// several heads of the query share one of the key, chunks of both agree if their numbers divide evenly.
IndexNames attention(const RuleCall& call) {
  const auto named = [&](const Tensor& t) {
    Indices names(static_cast<size_t>(t.dim()), 0);
    const int64_t lead = call.results[0].dim() - t.dim();
    for (int64_t i = 0; i + 2 < t.dim(); ++i) {
      if (t.size(i) > 1) names[static_cast<size_t>(i)] = lead + i + 1;
    }
    return names;
  };
  IndexNames names{{}, {named(call.results[0])}};
  for (const Tensor& arg : call.args) names.args.push_back(named(arg));
  return names;
}

// Losses of scores (n, classes, ...) and targets (n, ...), one for each target.
IndexNames class_loss(const RuleCall& call) {
  Indices targets = broadcast_names(call.args[1], call.args[1].sizes()), scores = targets;
  if (targets.empty()) return {{{0}, {}}, {{}}};
  scores.push_back(0);
  std::rotate(scores.begin() + 1, scores.end() - 1, scores.end());
  return {{scores, targets}, {targets}};
}

// sum(self, dim, keepdim): an index that no result has is summed over.
IndexNames sum(const RuleCall& call) {
  Indices self = broadcast_names(call.args[0], call.args[0].sizes()), result;
  const Value& dim = call.stack[1];
  std::vector<int64_t> dims;
  if (dim.is<std::vector<int64_t>>()) dims = dim.as<std::vector<int64_t>>();
  for (int64_t& each : dims) each = wrap_dim(each, call.args[0].dim(), "sum");
  const bool keeps = call.results[0].dim() == call.args[0].dim();
  for (size_t i = 0; i < self.size(); ++i) {
    const bool reduced = dims.empty() || std::find(dims.begin(), dims.end(), static_cast<int64_t>(i)) != dims.end();
    if (!reduced || keeps) result.push_back(reduced ? 0 : self[i]);
  }
  return {{self}, {result}};
}

// amax(self, dim, keepdim): as a sum whose reduced dimensions are whole.
IndexNames reduction(const RuleCall& call) {
  IndexNames names = sum(call);
  const Indices& kept = names.results[0];
  for (int64_t& each : names.args[0]) {
    if (std::find(kept.begin(), kept.end(), each) == kept.end()) each = 0;
  }
  return names;
}

// Any view of a row-major tensor, by strides. A dimension is called by how many elements lie between its first index
// and the one behind its last: where a view has a dimension of that name, its chunks are those of the original. Heads
// (B, T, H * D) -> (B, T, H, D) are: D * H = H * D. So are merged dimensions, by the first of them; one that is
// narrowed has another name, and one of size 1 has none.
IndexNames view(const RuleCall& call) {
  const auto named = [&](const Tensor& t) {
    Indices names(static_cast<size_t>(t.dim()), 0);
    for (size_t i = 0; i < names.size() && t.numel() > 0; ++i) {
      if (t.sizes()[i] > 1) names[i] = t.strides()[i] * t.sizes()[i];
    }
    return names;
  };
  IndexNames names{{named(call.args[0])}, {}};
  std::set<int64_t> seen;
  for (const Tensor& result : call.results) {
    names.results.push_back(named(result));
    seen.insert(names.results.back().begin(), names.results.back().end());
  }
  for (int64_t& each : names.args[0]) {
    if (!seen.contains(each)) each = 0;
  }
  return names;
}

// By the names of operators, without overload and final underscore: one rule serves add, add_ and their overloads.
const std::map<std::string_view, Rule>& rules() {
  static const std::map<std::string_view, Rule> table = [] {
    const Rule unary{pointwise, {{0}}}, plain{pointwise}, both{pointwise, {{0, 1}}}, seen{view, {{0}}};
    std::map<std::string_view, Rule> rows{
        {"mul", {pointwise, {{0}, {1}}}},
        {"where", {pointwise, {{1, 2}}}},
        {"view", {view, {{0}}, 1}},
        {"expand", {view, {{0}}, 1}},
        {"sum", {sum, {{0}}}},
        {"amax", {reduction}},
        {"amin", {reduction}},
        {"softmax", {in_rows}},
        {"log_softmax", {in_rows}},
        {"cat", {concatenation}},
        {"layer_norm", {normalization}},
        {"rms_norm", {normalization}},
        {"mm", {product}},
        {"bmm", {product}},
        {"matmul", {product}},
        {"addmm", {added_product}},
        {"linear", {linear}},
        {"embedding", {embedding}},
        {"scaled_dot_product_attention", {attention}},
        {"cross_entropy_loss", {class_loss}},
        {"nll_loss", {class_loss}},
        {"_local_scalar_dense", {}},
        {"equal", {}},
    };
    for (const char* name : {"add", "sub", "copy"}) rows[name] = both;
    for (const char* name : {"neg", "clone", "_to_copy", "zeros_like", "zero"}) rows[name] = unary;
    for (const char* name :
         {"transpose", "permute", "unsqueeze", "squeeze", "select", "slice", "split", "split_with_sizes", "unbind"})
      rows[name] = seen;
    for (const char* name :
         {"abs",         "addcdiv",    "addcmul", "ceil",        "clamp",   "cos",       "div",  "empty_like",
          "eq",          "erf",        "exp",     "fill",        "floor",   "full_like", "ge",   "gelu",
          "gt",          "isfinite",   "isinf",   "isnan",       "le",      "lerp",      "log",  "logical_and",
          "logical_not", "logical_or", "lt",      "masked_fill", "maximum", "minimum",   "ne",   "ones_like",
          "pow",         "reciprocal", "relu",    "rsqrt",       "sigmoid", "sign",      "silu", "sin",
          "sqrt",        "tanh",       "tril",    "triu"})
      rows[name] = plain;
    return rows;
  }();
  return table;
}

std::string_view rule_name(const OpBase& op) {
  std::string_view name = short_name(op.name());
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

// ---- ways to split a call

struct Split {
  Placements args, results;
};

// In one dimension of the mesh. `args` and `results` are the sizes that are still to be split.
class Splits {
 public:
  Splits(const Rule& rule, const IndexNames& names, const std::vector<DimVector>& args,
         const std::vector<DimVector>& results, int64_t processes)
      : names_(names), args_(args), results_(results), processes_(processes) {
    all.push_back({Placements(args.size()), Placements(results.size())});
    std::set<int64_t> indices;
    for (const Indices& each : names.args) indices.insert(each.begin(), each.end());
    indices.erase(0);
    for (const int64_t index : indices) {
      if (can_be_split(index)) all.push_back(by(index));
    }
    for (const std::vector<size_t>& linear : rule.linear) {
      Split partial{Placements(args.size()), Placements(results.size(), Partial())};
      for (const size_t i : linear) {
        if (i < args.size()) partial.args[i] = Partial();
      }
      all.push_back(partial);
    }
  }

  std::vector<Split> all;

 private:
  // Chunks agree where all dimensions of the index have the same size, or divide evenly.
  bool can_be_split(int64_t index) const {
    std::set<int64_t> sizes;
    const auto add = [&](const std::vector<Indices>& names, const std::vector<DimVector>& all_sizes) {
      for (size_t i = 0; i < names.size(); ++i) {
        for (size_t d = 0; d < names[i].size(); ++d) {
          if (names[i][d] == index) sizes.insert(all_sizes[i][d]);
        }
      }
    };
    add(names_.args, args_);
    add(names_.results, results_);
    const auto divides = [&](int64_t size) { return size % processes_ == 0; };
    return sizes.size() == 1 || std::all_of(sizes.begin(), sizes.end(), divides);
  }
  static Placement placed(const Indices& names, int64_t index, Placement without) {
    const auto found = std::find(names.begin(), names.end(), index);
    return found == names.end() ? without : Shard(found - names.begin());
  }
  Split by(int64_t index) const {
    Split split;
    for (const Indices& each : names_.results) split.results.push_back(placed(each, index, Partial()));
    const bool is_sum = split.results[0].is_partial();
    for (size_t i = 0; i < names_.args.size(); ++i) {
      const bool is_addend = is_sum && i == names_.addend;
      split.args.push_back(placed(names_.args[i], index, is_addend ? Partial() : Replicate()));
    }
    return split;
  }

  const IndexNames& names_;
  const std::vector<DimVector>&args_, &results_;
  const int64_t processes_;
};

// What it costs to redistribute a tensor, in elements that are sent; to be placed otherwise costs a little by itself.
double cost(Placement from, Placement to, const DimVector& sizes, int64_t processes) {
  double elements = 1;
  for (const int64_t size : sizes) elements *= static_cast<double>(size);
  if (from == to) return 0;
  if (from.is_replicate()) return 1;
  if (from.is_partial()) return 1 + elements * (to.is_shard() ? 1 : 2);
  return 1 + (to.is_shard() ? elements / static_cast<double>(processes) : elements * (to.is_partial() ? 2 : 1));
}

std::vector<DimVector> sizes_of(const std::vector<Tensor>& tensors) {
  std::vector<DimVector> sizes;
  for (const Tensor& each : tensors) sizes.emplace_back(each.sizes());
  return sizes;
}

// Of the largest chunks, so that all processes decide alike.
void split_sizes(std::vector<DimVector>& sizes, const Placements& placements, int64_t processes) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!placements[i].is_shard()) continue;
    int64_t& size = sizes[i][static_cast<size_t>(placements[i].dim)];
    size = (size + processes - 1) / processes;
  }
}

// ---- operators made of others

Tensor mean_of(const Tensor& self, const Value& dims, bool keepdim) {
  const Tensor total =
      dims.is<std::vector<int64_t>>() ? self.sum(dims.as<std::vector<int64_t>>(), keepdim) : self.sum();
  return total * (static_cast<double>(std::max<int64_t>(total.numel(), 1)) / static_cast<double>(self.numel()));
}

Tensor reduced(const Tensor& losses, int64_t reduction, const Tensor& counted) {
  if (reduction == rush::Reduction::Sum) return losses.sum();
  return losses.sum() / (counted.defined() ? counted.sum() : full({}, losses.numel(), losses.options()));
}

// cross_entropy_loss(self, target, weight, reduction, ignore_index, ...), and nll_loss
void loss_of_classes(const OpBase& op, Stack& stack) {
  RUSH_CHECK_NOT_IMPLEMENTED(stack[2].is_none(), op.name(), ": not implemented for DTensors and weights of classes");
  const Tensor target = stack[1].as<Tensor>();
  const int64_t reduction = stack[3].as<int64_t>(), ignored = stack[4].as<int64_t>();
  stack[3] = static_cast<int64_t>(rush::Reduction::None);
  op.call_boxed(stack);
  const Tensor losses = stack[0].as<Tensor>();
  stack[0] = reduced(losses, reduction, target.ne(ignored).to(losses.scalar_type()));
}

// linalg_vector_norm(self, ord, dim, keepdim)
bool vector_norm(Stack& stack) {
  const Value& order = stack[1];
  if (!(order.is<double>() && order.as<double>() == 2) && !(order.is<int64_t>() && order.as<int64_t>() == 2))
    return false;
  const Tensor squares = stack[0].as<Tensor>().square();
  const Value& dims = stack[2];
  stack[0] =
      (dims.is_none() ? squares.sum() : squares.sum(dims.as<std::vector<int64_t>>(), stack[3].as<bool>())).sqrt();
  return true;
}

bool has_targets_of_classes(const Stack& stack) {
  return stack[0].as<Tensor>().sizes() != stack[1].as<Tensor>().sizes();
}

}  // namespace

const Rule* rule_of(const OpBase& op, const Stack& stack) {
  const std::string_view name = rule_name(op);
  if (name == "cross_entropy_loss" && !has_targets_of_classes(stack)) return nullptr;
  const auto found = rules().find(name);
  return found == rules().end() ? nullptr : &found->second;
}

bool compute_by_others(const OpBase& op, Stack& stack) {
  const std::string_view name = rule_name(op);
  if (name == "mean") {
    const bool by_dim = stack.size() == 4;
    stack[0] = mean_of(stack[0].as<Tensor>(), stack[1], by_dim && stack[2].as<bool>());
  } else if (name == "mse_loss" && stack[2].as<int64_t>() != rush::Reduction::None) {
    stack[0] = reduced((stack[0].as<Tensor>() - stack[1].as<Tensor>()).square(), stack[2].as<int64_t>(), {});
  } else if (name == "nll_loss" || (name == "cross_entropy_loss" && has_targets_of_classes(stack))) {
    if (stack[3].as<int64_t>() == rush::Reduction::None) return false;
    loss_of_classes(op, stack);
  } else if (name != "linalg_vector_norm" || !vector_norm(stack)) {
    return false;
  }
  stack.resize(1);
  return true;
}

std::optional<CallPlacements> choose_placements(const Rule& rule, const RuleCall& call,
                                                const std::vector<Placements>& given, const std::vector<bool>& fixed,
                                                const distributed::DeviceMesh& mesh) {
  const IndexNames names = rule.names(call);
  std::vector<DimVector> args = sizes_of(call.args), results = sizes_of(call.results);
  CallPlacements chosen{std::vector<Placements>(args.size()), std::vector<Placements>(results.size())};
  for (size_t m = 0; m < mesh.dims().size(); ++m) {
    const int64_t processes = mesh.dims()[m].size;
    const auto total_cost = [&](const Split& split) {
      double total = 0;
      for (size_t i = 0; i < args.size(); ++i) {
        if (fixed[i] && split.args[i] != given[i][m]) return std::numeric_limits<double>::infinity();
        total += cost(given[i][m], split.args[i], args[i], processes);
      }
      return total;
    };
    const Splits splits(rule, names, args, results, processes);
    const auto cheaper = [&](const Split& a, const Split& b) { return total_cost(a) < total_cost(b); };
    const Split& best = *std::min_element(splits.all.begin(), splits.all.end(), cheaper);
    if (std::isinf(total_cost(best))) return std::nullopt;
    for (size_t i = 0; i < args.size(); ++i) chosen.args[i].push_back(best.args[i]);
    for (size_t i = 0; i < results.size(); ++i) chosen.results[i].push_back(best.results[i]);
    split_sizes(args, best.args, processes);
    split_sizes(results, best.results, processes);
  }
  return chosen;
}

}  // namespace rush::nn::parallel::detail
