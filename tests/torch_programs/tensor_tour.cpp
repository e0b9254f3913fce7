// Tensors without gradients: making, indexing, joining, reducing, and reading them.
#include "show.h"

using namespace torch::indexing;

static void making() {
  const auto options = torch::TensorOptions().dtype(torch::kFloat64).device(torch::kCPU);
  show("full", torch::full({2, 2}, 1.5, options));
  show("eye", torch::eye(2, 3, torch::kFloat64));
  show("linspace", torch::linspace(0, 1, 5, options));
  show("nested", torch::tensor({{1, 2, 3}, {4, 5, 6}}, torch::kInt64));
  std::vector<double> values = {1, 2, 3, 4, 5, 6};
  const torch::Tensor blob = torch::from_blob(values.data(), {3, 2}, options);
  values[5] = 60;
  show("from_blob", blob);
  show("float to int", wave({4}, 0, 5).to(torch::kInt32));
  at::Tensor zeros = at::zeros({2}, at::kDouble);
  zeros.add_(c10::Scalar(2.5));
  show("at and c10", zeros);
}

static void indexing() {
  torch::Tensor x = torch::arange(24, torch::kFloat64).reshape({2, 3, 4});
  show("index", x.index({1, Slice(None, 2), Slice(1, None, 2)}));
  show("ellipsis", x.index({Ellipsis, -1}));
  show("new axis", x.index({0, None, 0}));
  show("mask", x.index({x > 20}));
  show("rows", x.index({torch::tensor({1, 0}), torch::tensor({2, 2})}));
  x.index_put_({0, 0}, 100);
  x[1][2][3] = -1.0;
  x[0][1] = torch::zeros({4}, torch::kFloat64);
  show("written", x);
  const auto accessor = x.accessor<double, 3>();
  double trace = 0;
  for (int64_t i = 0; i < accessor.size(0); ++i) trace += accessor[i][i][i];
  show("accessor", trace);
  show("pointer", x.data_ptr<double>()[11]);
  show("narrow", x.narrow(2, 1, 2).select(1, 2).transpose(0, 1));
}

static void joining() {
  const torch::Tensor a = wave({2, 3}, 0.1), b = wave({2, 3}, 0.2);
  show("cat", torch::cat({a, b}, 0));
  show("stack", torch::stack({a, b}, -1));
  show("chunk", a.chunk(3, 1)[2]);
  show("where", torch::where(a > b, a, b));
  show("einsum", torch::einsum("ij,kj->ik", {a, b}));
  show("addmm", torch::addmm(torch::ones({2, 2}, torch::kFloat64), a, b.t(), 0.5, 2));
  show("broadcast", a - a.mean(1, /*keepdim=*/true));
}

static void reducing() {
  const torch::Tensor x = wave({3, 4}, 0.3);
  show("sum", x.sum(torch::IntArrayRef({0, 1})));
  show("std", x.std(1, /*unbiased=*/false));
  const auto largest = x.max(1);
  show("max", std::get<0>(largest));
  show("argmax", std::get<1>(largest));
  torch::Tensor values, indices;
  std::tie(values, indices) = torch::topk(x.flatten(), 3);
  show("topk", values);
  show("sorted", std::get<0>(x.sort(0, /*descending=*/true)));
  show("norm", x.norm());
  show("softmax", torch::softmax(x, 1));
  show("one_hot", torch::one_hot(torch::tensor({0, 2, 1}), 3));
  show("clamp", x.clamp(-0.5, 0.5));
  show("logsumexp", x.logsumexp(1));
  show("cumsum", x.cumsum(0));
}

static void asking() {
  const torch::Tensor x = torch::ones({2, 3});
  std::printf("%d %d %d %d\n", x.dtype() == torch::kFloat32, x.sizes() == torch::IntArrayRef({2, 3}), x.is_contiguous(),
              x.t().is_contiguous());
  const torch::Device device(torch::cuda::is_available() ? torch::kCPU : torch::kCPU);
  std::printf("%d %s\n", x.device() == device, device.str().c_str());
  std::printf("%d %d\n", torch::equal(x, x.clone()), torch::allclose(x, x + 1e-9));
  c10::optional<int64_t> nothing = c10::nullopt;
  std::printf("%d\n", nothing.has_value());
}

int main() {
  making();
  indexing();
  joining();
  reducing();
  asking();
  return 0;
}
