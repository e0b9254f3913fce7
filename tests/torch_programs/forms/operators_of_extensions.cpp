// What libraries of operators are written with: functions for autocast and for devices, checks of arguments, what their
// functions save for the backward pass, and the types in which they add up.
#include <ATen/ATen.h>
#include <ATen/AccumulateType.h>
#include <ATen/NumericUtils.h>
#include <ATen/autocast_mode.h>
#include <ATen/ceil_div.h>
#include <torch/library.h>

#include <iostream>

#include "../show.h"

static torch::Tensor total_on_cpu(const torch::Tensor& x, const torch::Tensor& weight) {
  const at::TensorArg x_arg{x, "x", 1}, weight_arg{weight, "weight", 2};
  at::checkAllSameType("total", {x_arg, weight_arg});
  at::checkSameSize("total", x_arg, weight_arg);
  const torch::Tensor in = x.contiguous(), by = weight.contiguous(), out = torch::empty({}, x.options());
  AT_DISPATCH_FLOATING_TYPES_AND(at::kBFloat16, x.scalar_type(), "total", [&] {
    at::acc_type<scalar_t, false> sum = 0;
    for (int64_t i = 0; i < in.numel(); ++i) {
      sum += static_cast<at::acc_type<scalar_t, false>>(in.data_ptr<scalar_t>()[i]) * by.data_ptr<scalar_t>()[i];
    }
    *out.data_ptr<scalar_t>() = static_cast<scalar_t>(sum);
  });
  return out;
}

static torch::Tensor total(const torch::Tensor& x, const torch::Tensor& weight) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("extension::total", "").typed<decltype(total_on_cpu)>();
  return op.call(x, weight);
}

class Total : public torch::autograd::Function<Total> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, const torch::Tensor& x,
                               const torch::Tensor& weight) {
    ctx->save_for_backward({weight});
    ctx->saved_data["sizes"] = x.sym_sizes();
    ctx->saved_data["scale"] = 2.5;
    ctx->saved_data["dim"] = c10::SymInt(x.dim());
    at::AutoDispatchBelowADInplaceOrView below;
    return total(x, weight);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& gradients) {
    auto sizes = ctx->saved_data["sizes"].toList();
    std::cout << sizes.size() << sizes[0].get().toInt() << sizes[1].get().toInt() << ctx->saved_data["dim"].toInt()
              << "\n";
    return {gradients[0] * ctx->get_saved_variables()[0], torch::autograd::Variable()};
  }
};
static torch::Tensor total_with_gradient(const torch::Tensor& x, const torch::Tensor& weight) {
  return Total::apply(x, weight);
}

template <c10::DispatchKey key, c10::DeviceType device>
static torch::Tensor total_under_autocast(const torch::Tensor& x, const torch::Tensor& weight) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(key);
  return total(at::autocast::cached_cast(at::kFloat, x, device), at::autocast::cached_cast(at::kFloat, weight, device));
}

static torch::Tensor twice(const torch::Tensor& x) { return x * 2; }
static torch::Tensor thrice(const torch::Tensor& x) { return x * 3; }

TORCH_LIBRARY(extension, m) {
  m.set_python_module("extension.sizes");
  m.def("total(Tensor x, Tensor weight) -> Tensor");
  m.def("many(Tensor x) -> Tensor", {at::Tag::pt2_compliant_tag});
  m.impl("many", c10::DispatchKey::CPU, &twice);
  m.def("more(Tensor x) -> Tensor");
  m.impl("more", torch::dispatch(c10::DispatchKey::CPU, TORCH_FN(thrice)));
}
TORCH_LIBRARY_IMPL(extension, CPU, m) { m.impl("total", TORCH_FN(total_on_cpu)); }
TORCH_LIBRARY_IMPL(extension, Autograd, m) { m.impl("total", TORCH_FN(total_with_gradient)); }
TORCH_LIBRARY_IMPL(extension, Autocast, m) {
  m.impl("total", TORCH_FN((total_under_autocast<c10::DispatchKey::Autocast, c10::DeviceType::CUDA>)));
}
TORCH_LIBRARY_IMPL(extension, AutocastCPU, m) {
  m.impl("total", TORCH_FN((total_under_autocast<c10::DispatchKey::AutocastCPU, c10::DeviceType::CPU>)));
}
TORCH_LIBRARY_IMPL(extension, AutocastXPU, m) {
  m.impl("total", TORCH_FN((total_under_autocast<c10::DispatchKey::AutocastXPU, c10::DeviceType::XPU>)));
}

template <class Fn>
static void refused(Fn fn) {
  try {
    fn();
    std::cout << "nothing thrown\n";
  } catch (const c10::Error& e) {
    std::string text = e.what_without_backtrace();
    text.erase(0, std::min(text.find("Check failed"), text.size()) % text.size());  // libtorch writes where it was
    std::cout << text.substr(0, std::min(text.find('\n'), text.find(". You can"))) << "\n";
  }
}

static void calls() {
  torch::Tensor x = wave({2, 3}, 0.3).requires_grad_();
  const torch::Tensor weight = wave({2, 3}, 0.9);
  const torch::Tensor y = total(x, weight);
  show("total", y);
  y.backward();
  show("gradient", x.grad());
  for (const char* name : {"extension::many", "extension::more"}) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<decltype(twice)>();
    show(name, op.call(weight));
  }
}

static void autocast() {
  const torch::Tensor x = wave({2, 3}, 0.3).to(torch::kBFloat16), weight = wave({2, 3}, 0.9).to(torch::kFloat);
  refused([&] { total(x, weight); });
  at::autocast::set_autocast_enabled(at::kCPU, true);
  const torch::Tensor y = total(x, weight);
  std::cout << y.scalar_type() << at::autocast::is_autocast_enabled(at::kCPU)
            << at::autocast::get_autocast_dtype(at::kCPU) << at::autocast::is_autocast_enabled(at::kCUDA) << "\n";
  show("under autocast", y);
  {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKeySet(c10::DispatchKey::AutocastCPU));
    refused([&] { total(x, weight); });
  }
  std::cout << at::autocast::promote_type(at::kBFloat16, at::kCPU, x, 3, x) << at::autocast::cached_cast(at::kFloat, 7)
            << at::autocast::promote_type(at::kBFloat16, at::kCPU, x, weight)
            << at::autocast::cached_cast(at::kFloat, torch::optional<torch::Tensor>(), at::kCPU).has_value()
            << at::autocast::cached_cast(at::kFloat, x.to(torch::kDouble), at::kCPU).scalar_type() << "\n";
  at::autocast::set_autocast_enabled(at::kCPU, false);
}

static void checks() {
  const torch::Tensor a = wave({2, 3}, 0), b = wave({3, 2}, 0).to(torch::kFloat), none;
  const at::TensorArg first{a, "first", 1}, second{b, "second", 2}, third{none, "third", 3}, result{a, "result", 0};
  refused([&] { at::checkDim("f", first, 3); });
  refused([&] { at::checkDimRange("f", result, 3, 5); });
  refused([&] { at::checkContiguous("f", at::TensorArg(b, "b", 4)); });
  const torch::Tensor turned = a.t();
  refused([&] { at::checkAllContiguous("f", {first, third, at::TensorArg(turned, "turned", 4)}); });
  refused([&] { at::checkSize("f", first, {2, 4}); });
  refused([&] { at::checkSize("f", first, 1, 4); });
  refused([&] { at::checkNumel("f", first, 4); });
  refused([&] { at::checkSameNumel("f", first, at::TensorArg(turned, "turned", 4)); });
  refused([&] { at::checkSameSize("f", first, second); });
  refused([&] { at::checkAllSameType("f", {third, first, second}); });
  refused([&] { at::checkScalarType("f", first, at::kLong); });
  refused([&] { at::checkScalarTypes("f", first, {at::kFloat, at::kHalf}); });
  refused([&] { at::checkSameGPU("f", first, second); });
  refused([&] { at::checkAllSameGPU("f", {third, first}); });
  refused([&] { at::checkDeviceType("f", {a, none, b}, at::kCUDA); });
  refused([&] { at::check_dim_size(a, 2, 1, 5); });
  refused([&] { at::checkAllDefined("f", {first, second}); });
  refused([&] { TORCH_CHECK_EQ(a.device().type(), c10::DeviceType::CUDA) << "said behind"; });
  at::globalContext().alertNotDeterministic("total");
  at::globalContext().setDeterministicAlgorithms(true, false);
  refused([&] { at::globalContext().alertNotDeterministic("total"); });
  at::globalContext().setDeterministicAlgorithms(false, false);
  std::cout << at::maybe_data_ptr(none) << (at::maybe_data_ptr(first) == a.data_ptr()) << "\n";
}

static void numbers() {
  std::cout << std::is_same_v<at::acc_type<float, true>, float> << std::is_same_v<at::acc_type<float, false>, double>;
  std::cout << std::is_same_v<at::acc_type<at::Half, false>, float> << std::is_same_v<at::acc_type<int, true>, int64_t>;
  std::cout << std::is_same_v<at::acc_type<bool, true>, bool>;
  std::cout << std::is_same_v<at::acc_type_device<c10::complex<float>, at::kCPU>, c10::complex<double>> << "\n";
  const double zero = 0;
  std::cout << at::_isnan(zero / zero) << at::_isnan(3) << at::_isnan(c10::complex<float>(1, NAN))
            << at::_isinf(1 / zero) << at::_isinf(at::Half(2.0f)) << at::ceil_div(7, 3) << at::round_up(7, 3) << "\n";
}

int main() {
  calls();
  autocast();
  checks();
  numbers();
  return 0;
}
