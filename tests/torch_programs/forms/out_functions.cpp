// Functions that write into tensors of the caller's, slices, and how indices print.
#include <torch/torch.h>

#include <iostream>

#include "../show.h"

static void results() {
  const torch::Tensor a = wave({2, 3}, 0.1), b = wave({2, 3}, 1.4);
  torch::Tensor result = torch::empty({0}, torch::kFloat64);
  show("add", torch::add_out(result, a, b, 2));
  std::cout << (torch::mul_out(result, a, b).unsafeGetTensorImpl() == result.unsafeGetTensorImpl()) << "\n";
  show("sum over braces", torch::sum_out(result, a, {0}));
  show("sum kept", torch::sum_out(result, a, {0}, /*keepdim=*/true));
  show("cat of braces", torch::cat_out(result, {a, b}, 1));
  show("zeros", torch::zeros_out(result, {2, 2}));
  show("mm", torch::mm_out(result, a, b.t()));
  show("linear", torch::linear_out(result, a, b));
  show("arange", torch::arange_out(result, 1, 4, 1));
  show("clamp", at::clamp_out(result, a, -0.2, 0.5));
  show("into itself", torch::exp_out(result, result));

  // A view keeps its strides when the shape fits.
  const torch::Tensor wide = torch::zeros({3, 4}, torch::kFloat64);
  torch::Tensor column = wide.select(1, 2);
  torch::mean_out(column, a, {0}, /*keepdim=*/false);
  show("a column", wide);
}

static void several_results() {
  const torch::Tensor a = wave({2, 4}, 0.6);
  torch::Tensor values = torch::empty({0}, torch::kFloat64), indices = torch::empty({0}, torch::kLong);
  torch::max_out(values, indices, a, 1);
  show("largest", values);
  show("where", indices);
  show("larger", torch::max_out(values, a, -a));
  const auto [least, position] = torch::topk_out(values, indices, a, 2, 1, /*largest=*/false);
  show("least", least);
  show("where", position);
  torch::Tensor u = torch::empty({0}, torch::kFloat64), s = u.clone(), v = u.clone();
  torch::linalg_svd_out(u, s, v, a, /*full_matrices=*/false);
  show("singular values", s);
  show("product", u.matmul(s.unsqueeze(1) * v));
}

static void dtypes() {
  torch::Tensor integers = torch::zeros({3}, torch::kInt), numbers = torch::zeros({3});
  show("integers in float32", torch::add_out(numbers, torch::arange(3), torch::arange(3)));
  try {
    torch::add_out(integers, torch::ones({3}), torch::ones({3}));
    std::cout << "cast\n";
  } catch (const c10::Error&) {
    std::cout << "numbers are not cast to integers\n";
  }
}

static void indices() {
  using torch::indexing::Slice;
  for (const Slice& slice : {Slice(), Slice(1), Slice(torch::indexing::None, -1), Slice(0, 9, 2)}) {
    std::cout << slice.start() << " " << slice.stop() << " " << slice.step() << " " << slice << "\n";
  }
  std::cout << (Slice().stop() == torch::indexing::INDEX_MAX) << at::indexing::INDEX_MIN << "\n";
  std::cout << at::indexing::TensorIndex(at::indexing::None) << " " << at::indexing::TensorIndex("...") << " "
            << at::indexing::TensorIndex(3) << " " << at::indexing::TensorIndex(true) << " "
            << at::indexing::TensorIndex(Slice(1, 4)) << "\n"
            << at::indexing::TensorIndex(torch::tensor({1, 2})) << "\n";
}

int main() {
  results();
  several_results();
  dtypes();
  indices();
  return 0;
}
