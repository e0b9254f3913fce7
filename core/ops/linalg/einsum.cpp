#include "core/ops/linalg/einsum.h"

#include <algorithm>

#include "core/ops/basic.h"
#include "core/ops/register.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

namespace {

// Labels of dimensions: 0 to 51 are letters; those that "..." stands for follow, counted from the last.
constexpr int kEllipsis = 52;

using Labels = std::vector<int>;

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// A to Z before a to z, which is the alphabetical order of results.
int label_of(char letter) { return letter >= 'a' ? letter - 'a' + 26 : letter - 'A'; }

// The labels between two commas; "..." is kEllipsis alone, and spaces are left out.
Labels parse_labels(std::string_view text, std::string_view equation) {
  Labels labels;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c == '.') {
      RUSH_CHECK_VALUE(text.substr(i, 3) == "..." && !contains(labels, kEllipsis), "einsum: '", equation,
                       "': a dot that is not part of one '...'");
      labels.push_back(kEllipsis);
      i += 2;
      continue;
    }
    RUSH_CHECK_VALUE((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), "einsum: '", equation, "': '", std::string(1, c),
                     "' is no letter");
    labels.push_back(label_of(c));
  }
  return labels;
}

std::vector<Labels> parse_inputs(std::string_view inputs, std::string_view equation, size_t operands) {
  std::vector<Labels> parsed;
  for (size_t begin = 0; begin <= inputs.size();) {
    const size_t end = std::min(inputs.find(',', begin), inputs.size());
    parsed.push_back(parse_labels(inputs.substr(begin, end - begin), equation));
    begin = end + 1;
  }
  RUSH_CHECK_VALUE(parsed.size() == operands, "einsum: '", equation, "' has ", parsed.size(), " operands, got ",
                   operands, " tensors");
  return parsed;
}

// Puts the labels of the dimensions that it stands for in the place of "...".
Labels expand_ellipsis(const Labels& labels, int64_t count) {
  Labels expanded;
  for (int label : labels) {
    if (label != kEllipsis) expanded.push_back(label);
    for (int64_t i = count; label == kEllipsis && i-- > 0;) expanded.push_back(kEllipsis + static_cast<int>(i));
  }
  return expanded;
}

// How many dimensions "..." stands for in one operand; 0 when it has none.
int64_t ellipsis_size(const Labels& labels, const Tensor& operand, std::string_view equation) {
  const bool has = contains(labels, kEllipsis);
  const int64_t rest = operand.dim() - static_cast<int64_t>(labels.size()) + (has ? 1 : 0);
  RUSH_CHECK_VALUE(has ? rest >= 0 : rest == 0, "einsum: '", equation, "': ", labels.size(), " labels for a tensor of ",
                   operand.dim(), " dimensions, shape ", operand.sizes());
  return rest;
}

// Without "->": "...", then the letters that appear once.
Labels implied_output(const std::vector<Labels>& inputs) {
  Labels output, sorted;
  for (const Labels& labels : inputs) sorted.insert(sorted.end(), labels.begin(), labels.end());
  if (contains(sorted, kEllipsis)) output.push_back(kEllipsis);
  std::sort(sorted.begin(), sorted.end());
  for (int label : sorted) {
    if (label != kEllipsis && std::count(sorted.begin(), sorted.end(), label) == 1) output.push_back(label);
  }
  return output;
}

void check_output(const Labels& output, const std::vector<Labels>& inputs, std::string_view equation) {
  for (int label : output) {
    RUSH_CHECK_VALUE(std::count(output.begin(), output.end(), label) == 1, "einsum: '", equation,
                     "': the result has a label twice");
    const bool known = std::any_of(inputs.begin(), inputs.end(), [&](const Labels& l) { return contains(l, label); });
    RUSH_CHECK_VALUE(known || label == kEllipsis, "einsum: '", equation,
                     "': the result has a label that no tensor has");
  }
}

// `operand` with the dimensions of `order`: the diagonals of those that it has twice, those that it lacks of size one.
Tensor align(const Tensor& operand, Labels labels, const Labels& order, std::string_view equation) {
  Tensor t = operand;
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto again = std::find(labels.begin() + i + 1, labels.end(), labels[i]);
    if (again == labels.end()) continue;
    const int64_t first = static_cast<int64_t>(i), second = again - labels.begin();
    RUSH_CHECK_VALUE(t.size(first) == t.size(second), "einsum: '", equation, "': a letter is repeated over sizes ",
                     t.size(first), " and ", t.size(second), " of a tensor of shape ", operand.sizes());
    t = t.diagonal(0, first, second);
    labels.push_back(labels[i]);
    labels.erase(labels.begin() + second);
    labels.erase(labels.begin() + first);
    --i;
  }
  DimVector present;
  for (int label : order) {
    const auto at = std::find(labels.begin(), labels.end(), label);
    if (at != labels.end()) present.push_back(at - labels.begin());
  }
  t = t.permute(present);
  for (size_t d = 0; d < order.size(); ++d) {
    if (!contains(labels, order[d])) t = t.unsqueeze(static_cast<int64_t>(d));
  }
  return t;
}

// The product of two tensors of the same dimensions, each of one size or of size one, summed over `summed`: a batch of
// matrix products. Dimensions that both have and keep are the batch; those of one alone are rows or columns.
Tensor contract(const Tensor& a, const Tensor& b, IntArrayRef summed) {
  if (summed.empty()) return a.mul(b);
  DimVector batch, rows, columns, depth, depth_of_a, depth_of_b;
  for (int64_t d = 0; d < a.dim(); ++d) {
    const bool sums = std::find(summed.begin(), summed.end(), d) != summed.end();
    const bool in_a = a.size(d) != 1, in_b = b.size(d) != 1;
    if (sums && in_a != in_b) {
      (in_a ? depth_of_a : depth_of_b).push_back(d);
    } else if (sums) {
      depth.push_back(d);
    } else {
      (in_a && !in_b ? rows : in_b && !in_a ? columns : batch).push_back(d);
    }
  }
  // What only one of them has is summed before.
  Tensor left = depth_of_a.empty() ? a : a.sum(IntArrayRef(depth_of_a), true);
  Tensor right = depth_of_b.empty() ? b : b.sum(IntArrayRef(depth_of_b), true);
  if (is_integral(a.scalar_type(), true) && is_integral(b.scalar_type(), true)) {  // their sums are int64
    const ScalarType dtype = promote_types(left.scalar_type(), right.scalar_type());
    left = left.to(dtype);
    right = right.to(dtype);
  }
  for (int64_t d : depth_of_a) batch.push_back(d);
  for (int64_t d : depth_of_b) batch.push_back(d);

  const auto arrange = [](const Tensor& t, std::initializer_list<IntArrayRef> groups) {
    DimVector order, sizes;
    for (IntArrayRef group : groups) {
      int64_t size = 1;
      for (int64_t d : group) {
        order.push_back(d);
        size = multiply_sizes("einsum", size, t.size(d));
      }
      if (sizes.size() < 3) sizes.push_back(size);
    }
    return t.permute(order).reshape(sizes);
  };
  // The fourth group has size one in each.
  const Tensor product =
      arrange(left, {batch, rows, depth, columns}).bmm(arrange(right, {batch, depth, columns, rows}));  // (b, r, c)

  DimVector sizes, back(static_cast<size_t>(a.dim()), 0);
  for (const DimVector* group : {&batch, &rows, &columns, &depth}) {
    for (int64_t d : *group) {
      back[d] = static_cast<int64_t>(sizes.size());
      sizes.push_back(group == &depth ? 1 : group == &columns ? right.size(d) : left.size(d));
    }
  }
  return product.view(sizes).permute(back);
}

// "subscript j", of a label.
std::string name_of(int label) {
  if (label < 0 || label >= 52) return "a dimension of '...'";
  return str("subscript ", static_cast<char>(label < 26 ? 'A' + label : 'a' + label - 26));
}

void check_sizes(const Tensor& a, const Tensor& b, const Labels& order, std::string_view equation) {
  for (int64_t d = 0; d < a.dim(); ++d) {
    RUSH_CHECK_VALUE(a.size(d) == b.size(d) || a.size(d) == 1 || b.size(d) == 1, "einsum: '", equation,
                     "': ", name_of(order[d]), " has size ", b.size(d),
                     " which does not broadcast with previously seen size ", a.size(d));
  }
}

Tensor einsum(std::string_view equation, TensorList tensors, OptionalIntArrayRef path) {
  RUSH_CHECK_VALUE(!tensors.empty(), "einsum: expected at least one tensor");
  RUSH_CHECK_VALUE(!path || path->size() == 2 * (tensors.size() - 1), "einsum: a path for ", tensors.size(),
                   " tensors has ", 2 * (tensors.size() - 1), " numbers, got ", path ? path->size() : 0);
  const size_t arrow = equation.find("->");
  std::vector<Labels> inputs = parse_inputs(equation.substr(0, arrow), equation, tensors.size());
  Labels output = arrow == equation.npos ? implied_output(inputs) : parse_labels(equation.substr(arrow + 2), equation);
  check_output(output, inputs, equation);

  int64_t ellipsis = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t size = ellipsis_size(inputs[i], tensors[i], equation);
    ellipsis = std::max(ellipsis, size);
    inputs[i] = expand_ellipsis(inputs[i], size);
  }
  const Labels kept = expand_ellipsis(output, ellipsis);
  Labels order = kept;  // of all dimensions: the result's, then those that are summed
  for (const Labels& labels : inputs) {
    for (int label : labels) {
      if (!contains(order, label)) order.push_back(label);
    }
  }

  Tensor result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor operand = align(tensors[i], inputs[i], order, equation);
    // A dimension is summed with the last tensor that has it.
    DimVector summed;
    for (size_t d = kept.size(); d < order.size(); ++d) {
      const bool later = std::any_of(inputs.begin() + i + 1, inputs.end(),
                                     [&](const Labels& labels) { return contains(labels, order[d]); });
      if (!later) summed.push_back(static_cast<int64_t>(d));
    }
    if (result.defined()) {
      check_sizes(result, operand, order, equation);
      result = contract(result, operand, summed);
    } else {
      result = summed.empty() ? operand : operand.sum(IntArrayRef(summed), true);
    }
  }
  return result.reshape(result.sizes().slice(0, kept.size()));
}

}  // namespace
}  // namespace native

void register_einsum_ops(Registry& r) { r.composite(ops::einsum, native::einsum); }

}  // namespace rush
