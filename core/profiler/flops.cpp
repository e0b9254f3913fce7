#include "core/profiler/flops.h"

#include <unordered_map>

#include "core/dispatch/value.h"

namespace rush::profiler {

namespace {

const Tensor& tensor(const Stack& arguments, size_t i) { return arguments.at(i).as<Tensor>(); }

// Rows of argument `i` times columns.
template <size_t i>
double last_size(const Stack& arguments) {
  return 2.0 * static_cast<double>(tensor(arguments, i).size(-1));
}
// A filter's weights.
double convolution(const Stack& arguments) {
  const Tensor& weight = tensor(arguments, 1);
  return 2.0 * static_cast<double>(weight.numel()) / static_cast<double>(weight.size(0));
}
// Scores of all keys, and their values: arguments query, key, value.
double attention(const Stack& arguments) { return 4.0 * static_cast<double>(tensor(arguments, 1).size(-2)); }
double one(const Stack&) { return 1; }

}  // namespace

double flops_per_result(const OpBase& op, const Stack& arguments) {
  using Count = double (*)(const Stack&);
  static const std::unordered_map<std::string_view, Count> counts = {
      {"aten::mm", last_size<0>},
      {"aten::bmm", last_size<0>},
      {"aten::addmm", last_size<1>},
      {"aten::baddbmm", last_size<1>},
      {"aten::linear", last_size<0>},
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
