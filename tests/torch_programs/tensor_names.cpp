// What programs ask of tensors beside operators: sizes in place, memory, options, devices; and the modes of autograd.
#include <torch/torch.h>

#include <iostream>

#include "show.h"

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;
using torch::autograd::Variable;
using torch::autograd::variable_list;

template <class Fn>
static void attempt(const char* name, const Fn& fn) {
  try {
    fn();
    std::cout << name << ": done\n";
  } catch (const c10::Error& error) {
    std::cout << name << ": thrown\n";
  }
}

static void geometry() {
  Tensor x = torch::arange(6, torch::kFloat64);
  x.resize_({2, 2});
  show("smaller", x);
  x.resize_({2, 3});
  show("again", x);
  const int64_t bytes = static_cast<int64_t>(x.storage().nbytes());
  x.resize_({5, 5});
  show("larger", x.flatten().slice(0, 0, 6));
  std::cout << bytes << " " << x.storage().nbytes() << x.sizes() << x.strides() << "\n";
  Tensor channels_last = torch::ones({1, 2, 3, 4});
  channels_last.resize_({1, 3, 2, 2}, torch::MemoryFormat::ChannelsLast);
  std::cout << channels_last.strides() << "\n";
  Tensor like = torch::empty({0});
  like.resize_as_(x);
  std::cout << like.sizes() << "\n";
  attempt("resize a leaf", [] { torch::ones({2}).requires_grad_().resize_({3}); });
  attempt("resize a blob", [] {
    float values[2] = {1, 2};
    torch::from_blob(values, {2}).resize_({3});
  });

  Tensor t = torch::arange(6, torch::kFloat64).view({2, 3});
  const Tensor same = t;
  t.transpose_(0, 1);
  show("transposed", same);
  t.t_().unsqueeze_(0).unsqueeze_(-1);
  std::cout << same.sizes() << same.strides() << "\n";
  t.squeeze_(0);
  std::cout << same.sizes() << "\n";
  t.squeeze_();
  std::cout << same.sizes() << same._version() << "\n";
  attempt("transpose a leaf", [] { torch::ones({2, 3}).requires_grad_().transpose_(0, 1); });
  Tensor leaf = wave({2, 3}, 0.2).requires_grad_();
  Tensor y = leaf * 2;
  y.transpose_(0, 1);
  (y * wave({3, 2}, 0.4)).sum().backward();
  show("gradient", leaf.grad());
  Tensor base = leaf.detach().clone().requires_grad_();
  Tensor product = base * 1;
  Tensor view = product.view({6}).slice(0, 1, 5).view({2, 2});
  view.t_();
  (view * wave({2, 2}, 0.7)).sum().backward();
  show("gradient through a view", base.grad());
}

static void memory() {
  Tensor x = torch::arange(6, torch::kFloat32).view({2, 3});
  const auto* start = static_cast<const float*>(x.storage().data());
  std::cout << start[4] << (x.storage().data_ptr().get() == x.data_ptr()) << x.storage().device() << "\n";
  std::cout << x.toString() << " " << Tensor().toString() << " " << torch::ones({1}, torch::kLong).toString() << "\n";
  std::cout << torch::ones({1}).is_nonzero() << torch::zeros({1, 1}).is_nonzero() << "\n";
  attempt("is_nonzero of two", [] { (void)torch::ones({2}).is_nonzero(); });
  attempt("is_nonzero of none", [] { (void)torch::ones({0}).is_nonzero(); });
  std::cout << x.toType(torch::kInt).scalar_type() << static_cast<int>(x.get_device())
            << x.is_same_size(torch::ones({2, 3})) << "\n";
  auto accessor = x.packed_accessor32<float, 2>();
  auto far = x.packed_accessor64<float, 2>();
  accessor[1][2] = 10;
  std::cout << far[1][2] << accessor.size(0) << accessor.stride(0) << far.size(1) << "\n";

  double numbers[6] = {1, 2, 3, 4, 5, 6};
  int deleted = 0;
  {
    const Tensor blob = torch::from_blob(
        numbers, {2, 2}, {3, 1}, [&](void* data) { deleted += data == numbers ? 1 : 100; }, torch::kFloat64);
    show("blob", blob);
    const Tensor whole = torch::from_blob(
        numbers, {6}, [&](void*) { deleted += 10; }, torch::kFloat64);
    show("whole", whole);
  }
  std::cout << deleted << "\n";
  show("strided", torch::from_blob(numbers, {3}, {2}, torch::TensorOptions().dtype(torch::kFloat64)));
  attempt("ragged", [] { torch::tensor({{1, 2}, {3}}); });
  show("second names", torch::ones({2}).negative().multiply_(3).subtract_(1).arctan().greater(-2));
}

static void options_and_devices() {
  const Tensor x = torch::ones({2, 3}, torch::kFloat64);
  std::cout << x.options() << "\n" << torch::TensorOptions() << "\n";
  std::cout << torch::TensorOptions()
                   .dtype(torch::kHalf)
                   .device(torch::kCPU)
                   .requires_grad(true)
                   .pinned_memory(false)
                   .memory_format(torch::MemoryFormat::ChannelsLast)
            << "\n";
  std::cout << torch::TensorOptions(torch::kBFloat16) << torch::TensorOptions(torch::kComplexDouble) << "\n";
  const torch::Device device("cuda:1");
  std::cout << (device.type() == torch::kCUDA) << static_cast<int>(device.index()) << device.has_index() << device
            << (x.device().type() == torch::DeviceType::CPU) << static_cast<int>(x.device().index()) << "\n";
  std::cout << x.options().has_dtype() << torch::TensorOptions().has_device() << "\n";
}

struct AddInPlace : torch::autograd::Function<AddInPlace> {
  static Variable forward(AutogradContext* ctx, Variable x, double value) {
    x.add_(value);
    ctx->mark_dirty({x});
    return x;
  }
  static tensor_list backward(AutogradContext*, tensor_list gradients) { return {gradients[0] * 3, Variable()}; }
};

struct Pair : torch::autograd::Function<Pair> {
  static variable_list forward(AutogradContext* ctx, Variable x, int64_t power) {
    ctx->saved_data["power"] = power;
    ctx->save_for_backward({x});
    ctx->set_materialize_grads(false);
    Variable sign = x.sign();
    ctx->mark_non_differentiable({sign});
    return {x.pow(power), x.exp(), sign};
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto power = ctx->saved_data["power"].toInt();
    const Variable x = ctx->get_saved_variables()[0];
    std::cout << "gradients given: " << gradients[0].defined() << gradients[1].defined() << gradients[2].defined()
              << "\n";
    return {gradients[0] * x.pow(power - 1) * static_cast<double>(power), Variable()};
  }
};

static void functions() {
  Tensor leaf = wave({3}, 0.5).requires_grad_();
  Tensor x = leaf * 2;
  Tensor y = AddInPlace::apply(x, 1.0);
  std::cout << y.is_same(x) << x.requires_grad() << (x.grad_fn() != nullptr) << "\n";
  (x * x).sum().backward();
  show("in place", leaf.grad());
  attempt("a leaf in place", [] { AddInPlace::apply(torch::ones({2}).requires_grad_(), 1.0); });

  Tensor z = wave({3}, 0.9).requires_grad_();
  const variable_list results = Pair::apply(z, 3);
  std::cout << results[0].requires_grad() << results[1].requires_grad() << results[2].requires_grad() << "\n";
  results[0].sum().backward();
  show("pair", z.grad());
}

static void modes() {
  Tensor leaf = wave({2, 2}, 0.1).requires_grad_();
  std::cout << torch::GradMode::is_enabled();
  torch::GradMode::set_enabled(false);
  std::cout << torch::GradMode::is_enabled() << (leaf * 2).requires_grad();
  torch::GradMode::set_enabled(true);
  {
    torch::AutoGradMode off(false);
    std::cout << torch::GradMode::is_enabled();
  }
  std::cout << torch::GradMode::is_enabled() << "\n";

  Tensor normal = torch::ones({2, 2}, torch::kFloat64), inference, made, view, view_of_normal;
  {
    c10::InferenceMode guard;
    std::cout << c10::InferenceMode::is_enabled() << torch::GradMode::is_enabled();
    inference = torch::ones({2, 2}, torch::kFloat64);
    made = torch::full({2, 2}, 4.0, torch::kFloat64);  // libtorch writes the other before it throws
    view = inference.view({4});
    view_of_normal = normal.view({4});
    const Tensor product = leaf * 2;
    std::cout << inference.is_inference() << view.is_inference() << view_of_normal.is_inference()
              << product.is_inference() << product.requires_grad();
    normal.add_(1);
    inference.add_(1);
    view.mul_(2);
    {
      c10::InferenceMode normal_again(false);
      std::cout << torch::GradMode::is_enabled() << torch::ones({1}).is_inference();
    }
    std::cout << "\n";
  }
  std::cout << c10::InferenceMode::is_enabled() << torch::GradMode::is_enabled() << inference.view({4}).is_inference()
            << (inference + 1).is_inference() << inference.detach().is_inference() << inference.clone().is_inference()
            << "\n";
  show("inference", inference);
  attempt("write", [&] { inference.add_(1); });
  attempt("write a view", [&] { view.add_(1); });
  attempt("require a gradient", [&] { inference.requires_grad_(); });
  attempt("save", [&] { (leaf * inference).sum().backward(); });
  attempt("add, which saves nothing", [&] { (leaf + made).sum().backward(); });
  attempt("save a clone", [&] { (leaf * made.clone()).sum().backward(); });
  attempt("write a plain tensor", [&] { normal.add_(leaf.detach()); });
  attempt("copy from", [&] { normal.copy_(made); });
  show("normal", normal);
  show("gradient", leaf.grad());
}

int main() {
  std::cout << std::boolalpha;
  geometry();
  memory();
  options_and_devices();
  functions();
  modes();
  return 0;
}
