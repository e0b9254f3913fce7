// Operators that TORCH_LIBRARY and RegisterOperators register, and the dispatcher that finds them by name.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <iostream>

#include "../show.h"

// A function on the CPU, one for gradients, one for meta tensors.
static torch::Tensor scale_on_cpu(const torch::Tensor& x, double factor) {
  const torch::Tensor in = x.contiguous(), out = torch::empty_like(in);
  const double* from = in.data_ptr<double>();
  double* to = out.data_ptr<double>();
  for (int64_t i = 0; i < in.numel(); ++i) to[i] = from[i] * factor;
  return out;
}
static torch::Tensor scale_on_meta(const torch::Tensor& x, double) { return torch::empty_like(x); }

static torch::Tensor scale(const torch::Tensor& x, double factor) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("shown::scale", "").typed<decltype(scale_on_cpu)>();
  return op.call(x, factor);
}

class Scale : public torch::autograd::Function<Scale> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, const torch::Tensor& x, double factor) {
    ctx->saved_data["factor"] = factor;
    at::AutoDispatchBelowADInplaceOrView below;
    return scale(x, factor);
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx,
                                               torch::autograd::tensor_list gradients) {
    return {gradients[0] * ctx->saved_data["factor"].toDouble(), torch::Tensor()};
  }
};
static torch::Tensor scale_with_gradient(const torch::Tensor& x, double factor) { return Scale::apply(x, factor); }

// The functions may come before the schema.
TORCH_LIBRARY_IMPL(shown, CPU, m) { m.impl("scale", scale_on_cpu); }
TORCH_LIBRARY_IMPL(shown, Meta, m) { m.impl("scale", TORCH_FN(scale_on_meta)); }
TORCH_LIBRARY_IMPL(shown, Autograd, m) { m.impl("scale", scale_with_gradient); }

// Functions made of operators need no more; their types are their schema.
static std::tuple<torch::Tensor, torch::Tensor> ends(torch::Tensor x, int64_t dim, std::string order) {
  const torch::Tensor sorted = std::get<0>(x.sort(dim, order == "down"));
  return {sorted.select(dim, 0), sorted.select(dim, -1)};
}
static torch::Tensor joined(std::vector<torch::Tensor> parts, c10::optional<torch::Tensor> last, bool flat) {
  if (last) parts.push_back(*last);
  const torch::Tensor whole = torch::cat(parts);
  return flat ? whole.flatten() : whole;
}
static torch::Tensor& halve_(torch::Tensor& x) { return x.mul_(0.5); }

TORCH_LIBRARY(shown, m) {
  m.def("scale(Tensor x, float factor) -> Tensor");
  m.def("ends", &ends);
  m.def("halve_(Tensor(a!) x) -> Tensor(a!)", &halve_);
}
static auto registry = torch::RegisterOperators().op("shown_before::joined", &joined);

int main() {
  const torch::Tensor x = wave({2, 3}, 0.4).requires_grad_();
  show("scaled", scale(x, 3));
  scale(x, 3).pow(2).sum().backward();
  show("gradient", x.grad());
  std::cout << scale(torch::empty({4, 5}, torch::dtype(torch::kFloat64).device(torch::kMeta)), 2).sizes() << "\n";
  {
    torch::NoGradGuard no_grad;
    show("without", scale(x.t(), -1));
  }

  auto& dispatcher = c10::Dispatcher::singleton();
  const auto [first, last] =
      dispatcher.findSchemaOrThrow("shown::ends", "").typed<decltype(ends)>().call(x.detach(), 1, "down");
  show("first", first);
  show("last", last);
  const auto join = dispatcher.findSchemaOrThrow("shown_before::joined", "").typed<decltype(joined)>();
  show("joined", join.call({x.detach(), x.detach()}, torch::ones({1, 3}, torch::kFloat64), true));
  show("joined without", join.call({x.detach()}, c10::nullopt, false));
  torch::Tensor y = torch::ones({2}, torch::kFloat64);
  dispatcher.findSchemaOrThrow("shown::halve_", "").typed<decltype(halve_)>().call(y);
  show("halved", y);

  std::cout << dispatcher.findSchema({"shown::ends", ""}).has_value()
            << dispatcher.findSchema({"shown::none", ""}).has_value() << "\n";
  const auto adds = dispatcher.findSchemaOrThrow("aten::add", "Tensor")
                        .typed<torch::Tensor(const torch::Tensor&, const torch::Tensor&, const c10::Scalar&)>();
  show("a name of ATen's", adds.call(y, y, 2));
  for (const bool wrong_type : {false, true}) {
    try {
      const auto handle = dispatcher.findSchemaOrThrow(wrong_type ? "shown::halve_" : "shown::none", "");
      handle.typed<torch::Tensor(const torch::Tensor&, int64_t)>();
      std::cout << "found\n";
    } catch (const c10::Error&) {
      std::cout << "refused\n";
    }
  }
  return 0;
}
