#include "core/profiler/flops.h"

#include <unordered_map>

#include "core/dispatch/value.h"

namespace rush::profiler {

namespace {

// Argument `i`'s size along a dimension counted from the last; 0 where it has none. What the operator will refuse is
// not refused here.
double size_of(const Stack& arguments, size_t i, int64_t dim) {
  const Tensor& tensor = arguments.at(i).as<Tensor>();
  return tensor.defined() && tensor.dim() >= -dim ? static_cast<double>(tensor.size(dim)) : 0;
}

// A product whose operand A is argument `i`.
template <size_t i>
double product(const Stack& arguments) {
  return 2 * size_of(arguments, i, -1);
}
// All weights of a filter. A transposed convolution has another number for each element, and is not counted.
double convolution(const Stack& arguments) {
  constexpr size_t kWeight = 1, kTransposed = 6;
  const Tensor& weight = arguments.at(kWeight).as<Tensor>();
  if (arguments.at(kTransposed).as<bool>() || !weight.defined() || weight.numel() == 0 || weight.dim() == 0) return 0;
  return 2 * static_cast<double>(weight.numel()) / static_cast<double>(weight.size(0));
}
// Scores of all keys, and their values: arguments query, key, value.
double attention(const Stack& arguments) { return 4 * size_of(arguments, 1, -2); }
double one(const Stack&) { return 1; }

}  // namespace

double flops_per_result(const OpBase& op, const Stack& arguments) {
  using Count = double (*)(const Stack&);
  static const std::unordered_map<std::string_view, Count> counts = {
      {"aten::mm", product<0>},
      {"aten::bmm", product<0>},
      {"aten::addmm", product<1>},
      {"aten::baddbmm", product<1>},
      {"aten::linear", product<0>},
      {"aten::convolution", convolution},
      {"aten::_scaled_dot_product_flash_attention_for_cpu", attention},
      {"aten::_scaled_dot_product_efficient_attention", attention},
      {"aten::_scaled_dot_product_cudnn_attention", attention},
      {"aten::add.Tensor", one},
      {"aten::mul.Tensor", one},
  };
  const auto found = counts.find(op.name());
  return found == counts.end() ? 0 : found->second(arguments);
}

}  // namespace rush::profiler
