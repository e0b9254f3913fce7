#include "nn/parallel/dtensor_rules.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include "core/dispatch/schema.h"
#include "core/ops/basic.h"
#include "core/ops/nn/loss.h"

namespace rush::nn::parallel::detail {

namespace {

constexpr int64_t kNone = 0;  // dimensions that must be whole; those of size 1, which may be broadcast

bool contains(const Names& names, int64_t name) { return std::ranges::find(names, name) != names.end(); }

// ---- names of dimensions

// Of a tensor that `term` describes. Letters name themselves; the dimensions of "..." are called 1, 2, ... from the
// last one on, so that the same ones agree where tensors are broadcast.
Names names_of(const Tensor& t, std::string_view term) {
  const size_t dots = term.find("..."), dims = t.sizes().size();
  const size_t letters = dots == term.npos ? term.size() : term.size() - 3;
  Names names;
  for (const char letter : term.substr(0, dots)) names.push_back(letter == '_' ? kNone : letter);
  if (dots != term.npos) {
    for (size_t i = dims > letters ? dims - letters : 0; i > 0; --i) names.push_back(static_cast<int64_t>(i));
    for (const char letter : term.substr(dots + 3)) names.push_back(letter == '_' ? kNone : letter);
  }
  names.erase(names.begin(), names.end() - static_cast<std::ptrdiff_t>(dims));  // a vector that is broadcast to rows
  for (size_t i = 0; i < dims; ++i) {
    if (t.sizes()[i] == 1) names[i] = kNone;
  }
  return names;
}

// "...k,nk,n->...n" of linear(input, weight, bias). The last term before the arrow also describes further arguments.
IndexNames by_pattern(std::string_view pattern, const RuleCall& call) {
  const size_t arrow = pattern.find("->");
  std::string_view terms = pattern.substr(0, arrow);
  IndexNames names;
  for (const Tensor& each : call.args) {
    names.args.push_back(names_of(each, terms.substr(0, terms.find(','))));
    if (const size_t comma = terms.find(','); comma != terms.npos) terms.remove_prefix(comma + 1);
  }
  for (const Tensor& each : call.results) names.results.push_back(names_of(each, pattern.substr(arrow + 2)));
  return names;
}

// Element-wise, except that dimensions are whole whose name, counted from the last one, `is_whole`.
template <class IsWhole>
IndexNames element_wise(const RuleCall& call, const IsWhole& is_whole) {
  IndexNames names = by_pattern("...->...", call);
  for (std::vector<Names>* all : {&names.args, &names.results}) {
    for (Names& each : *all) std::ranges::replace_if(each, is_whole, kNone);
  }
  return names;
}

// softmax(self, dim), cat(tensors, dim)
IndexNames in_rows(const RuleCall& call) {
  const int64_t dims = call.results[0].dim(), dim = wrap_dim(call.stack[1].as<int64_t>(), dims, "a DTensor's rule");
  return element_wise(call, [&](int64_t name) { return name == dims - dim; });
}

// layer_norm(input, normalized_shape, weight, bias)
IndexNames normalization(const RuleCall& call) {
  const size_t normalized = call.stack[1].as<std::vector<int64_t>>().size();
  return element_wise(call, [&](int64_t name) { return name <= static_cast<int64_t>(normalized); });
}

// sum(self, dim, keepdim)
IndexNames sum(const RuleCall& call) {
  const Names self = names_of(call.args[0], "...");
  std::vector<int64_t> dims;
  const Value dim = call.stack.size() > 1 ? call.stack[1] : Value();
  if (dim.is<std::vector<int64_t>>()) dims = dim.as<std::vector<int64_t>>();
  if (dim.is<int64_t>()) dims = {dim.as<int64_t>()};
  for (int64_t& each : dims) each = wrap_dim(each, call.args[0].dim(), "a DTensor's rule");
  Names result;
  for (size_t i = 0; i < self.size(); ++i) {
    const bool is_reduced = dims.empty() || contains(dims, static_cast<int64_t>(i));
    if (!is_reduced) result.push_back(self[i]);
    if (is_reduced && call.results[0].dim() == call.args[0].dim()) result.push_back(kNone);
  }
  return {{self}, {result}};
}

// What no result has must be whole.
IndexNames without_lost(IndexNames names) {
  for (int64_t& each : names.args[0]) {
    const auto has = [&](const Names& result) { return contains(result, each); };
    if (std::ranges::none_of(names.results, has)) each = kNone;
  }
  return names;
}

// amax(self, dim, keepdim)
IndexNames extremum(const RuleCall& call) { return without_lost(sum(call)); }

// Views of a row-major tensor, told by strides: a dimension is called by how many elements its indices span. Where the
// result has a dimension of the same name, its chunks are those of the original. Of (B, T, H * D) -> (B, T, H, D) the
// heads are, and of merged dimensions the first; a dimension that is narrowed gets another name.
IndexNames view(const RuleCall& call) {
  const auto named = [](const Tensor& t) {
    Names names(t.sizes().size(), kNone);
    for (size_t i = 0; i < names.size(); ++i) {
      if (t.sizes()[i] > 1 && t.numel() > 0) names[i] = t.strides()[i] * t.sizes()[i];
    }
    return names;
  };
  IndexNames names{{named(call.args[0])}, {}};
  for (const Tensor& result : call.results) names.results.push_back(named(result));
  return without_lost(names);
}

// A row's rule is that of all operators of its names, which are without overload and final underscore: it serves add,
// add_ and their overloads.
const std::map<std::string, Rule, std::less<>>& rules() {
  const auto by_name = [] {
    const std::pair<const char*, Rule> rows[] = {
        {"add sub copy", {"...->...", nullptr, {{0, 1}}}},
        {"mul", {"...->...", nullptr, {{0}, {1}}}},
        {"where", {"...->...", nullptr, {{1, 2}}}},
        {"neg clone zeros_like zero", {"...->...", nullptr, {{0}}}},
        {"_to_copy abs addcdiv addcmul ceil clamp cos div empty_like eq erf exp fill floor full_like ge gelu gt isinf "
         "isnan le lerp log logical_and logical_not lt masked_fill maximum minimum ne ones_like pow reciprocal relu "
         "rsqrt sigmoid sign silu sin sqrt tanh",
         {"...->..."}},
        {"mm", {"mk,kn->mn"}},
        {"mv", {"mk,k->m"}},
        {"dot", {"k,k->"}},
        {"bmm", {"bmk,bkn->bmn"}},
        {"matmul", {"...mk,...kn->...mn"}},
        {"addmm", {"mn,mk,kn->mn", nullptr, {}, 0}},
        {"linear", {"...k,nk,n->...n", nullptr, {}, 2}},
        {"embedding", {"_w,...->...w"}},
        {"scaled_dot_product_attention", {"...__->...__"}},  // heads that share keys have their name
        {"cross_entropy_loss nll_loss", {"n_...,n...->n..."}},
        {"softmax log_softmax cat", {"", in_rows}},
        {"layer_norm rms_norm", {"", normalization}},
        {"sum", {"", sum, {{0}}}},
        {"amax amin any all", {"", extremum}},
        {"transpose permute unsqueeze select slice split split_with_sizes unbind", {"", view, {{0}}}},
        {"view squeeze", {"", view, {{0}}, SIZE_MAX, SizeList::Reshape}},
        {"expand", {"", view, {{0}}, SIZE_MAX, SizeList::Second}},
        {"_local_scalar_dense equal", {}},
    };
    std::map<std::string, Rule, std::less<>> all;
    for (const auto& [names, rule] : rows) {
      std::istringstream words(names);
      for (std::string name; words >> name;) all[name] = rule;
    }
    return all;
  };
  static const std::map<std::string, Rule, std::less<>> table = by_name();
  return table;
}

std::string_view rule_name(const OpBase& op) {
  std::string_view name = short_name(op.name());
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

// ---- ways to split a call in one dimension of the mesh

struct Split {
  Placements args, results;
};
using SizesOfAll = std::vector<DimVector>;

// Chunks agree where an index has the same size in all tensors, or all of its sizes divide evenly.
bool can_be_split(int64_t index, const std::vector<Names>& names, const SizesOfAll& sizes, int64_t processes) {
  std::set<int64_t> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    for (size_t d = 0; d < names[i].size(); ++d) {
      if (names[i][d] == index) seen.insert(sizes[i][d]);
    }
  }
  return seen.size() == 1 || std::ranges::all_of(seen, [&](int64_t n) { return n % processes == 0; });
}

Split split_by(int64_t index, const IndexNames& names, size_t addend) {
  const auto placed = [&](const Names& own, Placement without) {
    const auto found = std::ranges::find(own, index);
    return found == own.end() ? without : Shard(found - own.begin());
  };
  Split split;
  for (const Names& each : names.results) split.results.push_back(placed(each, Partial()));
  for (size_t i = 0; i < names.args.size(); ++i) {
    const bool is_summand = i == addend && split.results[0].is_partial();
    split.args.push_back(placed(names.args[i], is_summand ? Partial() : Replicate()));
  }
  return split;
}

// `sizes` are those of arguments and then results, as far as they are not split yet.
std::vector<Split> splits(const Rule& rule, const IndexNames& names, const SizesOfAll& sizes, int64_t processes) {
  std::vector<Split> all{{Placements(names.args.size()), Placements(names.results.size())}};
  std::vector<Names> of_all = names.args;
  of_all.insert(of_all.end(), names.results.begin(), names.results.end());
  std::set<int64_t> indices;
  for (const Names& each : names.args) indices.insert(each.begin(), each.end());
  for (const int64_t index : indices) {
    if (index != kNone && can_be_split(index, of_all, sizes, processes))
      all.push_back(split_by(index, names, rule.addend));
  }
  for (const std::vector<size_t>& linear : rule.linear) {
    all.push_back({Placements(names.args.size()), Placements(names.results.size(), Partial())});
    for (const size_t i : linear) {
      if (i < names.args.size()) all.back().args[i] = Partial();
    }
  }
  return all;
}

// What it costs to give up placements: the elements that an all_gather sends, or an all_reduce. To scatter a sum, or to
// exchange shards, sends less, but what is split otherwise than the program has placed it has to be gathered later.
double cost(Placement from, Placement to, const DimVector& sizes) {
  if (from == to) return 0;
  double elements = from.is_partial() ? 2 : 1;
  for (const int64_t size : sizes) elements *= static_cast<double>(size);
  return from.is_replicate() ? 1 : 1 + elements;
}

// ---- operators that are computed by others

Tensor mean(const Tensor& self, const Value& dims, bool keepdim) {
  const bool by_dim = dims.is<std::vector<int64_t>>();
  const Tensor total = by_dim ? self.sum(dims.as<std::vector<int64_t>>(), keepdim) : self.sum();
  return total * (static_cast<double>(total.numel()) / static_cast<double>(self.numel()));
}

bool is_two(const Value& order) {
  return (order.is<double>() && order.as<double>() == 2) || (order.is<int64_t>() && order.as<int64_t>() == 2);
}

Tensor total_norm(const std::vector<Tensor>& tensors) {
  Tensor total = tensors[0].square().sum();
  for (size_t i = 1; i < tensors.size(); ++i) total = total + tensors[i].square().sum();
  return total.sqrt();
}

// cross_entropy_loss(self, target, weight, reduction, ignore_index, ...), and nll_loss.
Tensor mean_or_sum_of_losses(const OpBase& op, const Stack& stack) {
  RUSH_CHECK_NOT_IMPLEMENTED(stack[2].is_none(), op.name(), ": not implemented for DTensors and weights of classes");
  Stack each = stack;
  each[3] = static_cast<int64_t>(rush::Reduction::None);
  op.call_boxed(each);
  const Tensor losses = each[0].as<Tensor>(), total = losses.sum();
  if (stack[3].as<int64_t>() == rush::Reduction::Sum) return total;
  return total / stack[1].as<Tensor>().ne(stack[4].as<int64_t>()).to(losses.scalar_type()).sum();
}

bool has_probabilities(const Stack& stack) { return stack[0].as<Tensor>().sizes() == stack[1].as<Tensor>().sizes(); }

}  // namespace

const Rule* rule_of(const OpBase& op, const Stack& stack) {
  const std::string_view name = rule_name(op);
  const auto found = rules().find(name);
  if (found == rules().end()) return nullptr;
  const auto is_vector = [&](size_t i) { return stack[i].as<Tensor>().dim() == 1; };
  const bool is_another_function = (name == "cross_entropy_loss" && has_probabilities(stack)) ||
                                   (name == "view" && !stack[1].is<std::vector<int64_t>>()) ||
                                   (name == "scaled_dot_product_attention" && stack[4].as<double>() > 0) ||
                                   (name == "matmul" && (is_vector(0) || is_vector(1))) ||
                                   (name == "linear" && is_vector(1));
  return is_another_function ? nullptr : &found->second;
}

bool compute_by_others(const OpBase& op, Stack& stack) {
  const std::string_view name = rule_name(op);
  const auto is_reduced = [&](size_t i) { return stack[i].as<int64_t>() != rush::Reduction::None; };
  const bool is_class_loss = name == "nll_loss" || (name == "cross_entropy_loss" && !has_probabilities(stack));
  Tensor result;
  if (name == "mean" && stack.back().is_none()) {
    result = mean(stack[0].as<Tensor>(), stack[1], stack.size() == 4 && stack[2].as<bool>());
  } else if (is_class_loss && is_reduced(3)) {
    result = mean_or_sum_of_losses(op, stack);
  } else if (name == "mse_loss" && is_reduced(2)) {
    const Tensor squares = (stack[0].as<Tensor>() - stack[1].as<Tensor>()).square();
    result = stack[2].as<int64_t>() == rush::Reduction::Sum ? squares.sum() : squares.mean();
  } else if (name == "linalg_vector_norm" && is_two(stack[1]) && stack[2].is_none() && stack[4].is_none()) {
    result = total_norm({stack[0].as<Tensor>()});
  } else if (name == "rush::foreach_total_norm" && is_two(stack[1])) {
    result = total_norm(stack[0].as<std::vector<Tensor>>());
  } else if (name == "rush::foreach_scale") {
    for (const Tensor& each : stack[0].as<std::vector<Tensor>>()) each.mul_(stack[1].as<Tensor>());
  } else {
    return false;
  }
  stack.clear();
  if (result.defined()) stack.push_back(result);
  return true;
}

std::optional<CallPlacements> choose_placements(const Rule& rule, const RuleCall& call,
                                                const std::vector<Placements>& given,
                                                const distributed::DeviceMesh& mesh, bool is_written) {
  const IndexNames names = rule.names ? rule.names(call) : by_pattern(rule.pattern, call);
  const size_t args = call.args.size(), results = call.results.size();
  SizesOfAll sizes;
  for (const std::vector<Tensor>* all : {&call.args, &call.results}) {
    for (const Tensor& each : *all) sizes.emplace_back(each.sizes());
  }
  CallPlacements chosen{std::vector<Placements>(args), std::vector<Placements>(results)};
  for (size_t m = 0; m < mesh.dims().size(); ++m) {
    const int64_t processes = mesh.dims()[m].size;
    const auto total_cost = [&](const Split& split) {
      if (is_written && split.args[0] != given[0][m]) return std::numeric_limits<double>::infinity();
      double total = 0;
      for (size_t i = 0; i < args; ++i) total += cost(given[i][m], split.args[i], sizes[i]);
      return total;
    };
    const std::vector<Split> all = splits(rule, names, sizes, processes);
    const Split& best = *std::ranges::min_element(all, {}, total_cost);
    if (is_written && best.args[0] != given[0][m]) return std::nullopt;
    for (size_t i = 0; i < args + results; ++i) {
      const Placement placed = i < args ? best.args[i] : best.results[i - args];
      (i < args ? chosen.args[i] : chosen.results[i - args]).push_back(placed);
      if (!placed.is_shard()) continue;
      int64_t& size = sizes[i][static_cast<size_t>(placed.dim)];
      size = (size + processes - 1) / processes;  // the largest chunk's, so that all processes decide alike
    }
  }
  return chosen;
}

}  // namespace rush::nn::parallel::detail
