// Loops of a program's own over tensors: dispatch on the dtype, accessors, memory shared by DLPack, what a custom
// function keeps, old names of types, and functions that write into tensors of a dtype.
#include <ATen/DLConvertor.h>
#include <ATen/Dispatch.h>
#include <torch/torch.h>

#include <iostream>

static torch::Tensor halved(const torch::Tensor& x) {
  torch::Tensor result = torch::empty_like(x);
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "halved", [&] {
    const scalar_t* from = x.const_data_ptr<scalar_t>();
    scalar_t* to = result.mutable_data_ptr<scalar_t>();
    for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] / 2;
  });
  return result;
}

static void dispatch() {
  for (const auto type : {torch::kFloat, torch::kLong, torch::kHalf})
    std::cout << halved(torch::arange(4, type)) << "\n";
  try {
    halved(torch::ones({2}, torch::kBool));
  } catch (const c10::NotImplementedError& error) {
    std::cout << error.msg() << "\n";
  }
  const size_t size = AT_DISPATCH_FLOATING_TYPES(torch::kDouble, "size", [] { return sizeof(scalar_t); });
  const bool narrow = AT_DISPATCH_INDEX_TYPES(torch::kInt, "index", [] { return sizeof(index_t) == 4; });
  const bool wide = AT_DISPATCH_SWITCH(torch::kComplexDouble, "one of two", AT_DISPATCH_CASE(torch::kInt, [] {
                                         return false;
                                       }) AT_DISPATCH_CASE_COMPLEX_TYPES([] { return sizeof(scalar_t) == 16; }));
  std::cout << size << narrow << wide
            << std::is_same_v<c10::impl::ScalarTypeToCPPTypeT<torch::kShort>, int16_t> << "\n";
}

static void accessors() {
  const torch::Tensor x = torch::arange(6, torch::kFloat).reshape({2, 3});
  const auto packed = x.packed_accessor64<float, 2, torch::DefaultPtrTraits>();
  const torch::PackedTensorAccessor32<float, 2, torch::DefaultPtrTraits> narrow = x.packed_accessor32<float, 2>();
  const torch::GenericPackedTensorAccessor<float, 2, torch::DefaultPtrTraits, size_t> old =
      x.packed_accessor<float, 2, torch::DefaultPtrTraits, size_t>();
  std::cout << old[1][0] << old.size(1) << device_of(x).value() << device_of(torch::Tensor()).has_value() << "\n";
  const auto exchanged = packed.transpose(0, 1);
  std::cout << packed[1][2] << narrow[1][0] << exchanged[2][1] << exchanged.size(0) << "\n";
}

static void shared_memory() {
  torch::Tensor x = torch::arange(6, torch::kInt).reshape({2, 3});
  DLManagedTensor* managed = at::toDLPack(x.t());
  const DLTensor& description = managed->dl_tensor;
  std::cout << description.ndim << description.shape[0] << description.strides[1]
            << static_cast<int>(description.dtype.code) << static_cast<int>(description.dtype.bits)
            << (description.device.device_type == kDLCPU) << "\n";
  const torch::Tensor taken = at::fromDLPack(managed);
  x[1][2] = 50;
  std::cout << taken << (taken.data_ptr() == x.data_ptr()) << "\n";
  managed = at::toDLPack(x);
  managed->dl_tensor.strides = nullptr;  // row-major
  std::cout << at::fromDLPack(managed).equal(x) << "\n";
}

class Scaled : public torch::autograd::Function<Scaled> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& x, double factor) {
    context->saved_data["factor"] = factor;
    context->saved_data["sizes"] = x.sizes();
    context->saved_data["name"] = "scaled";
    context->saved_data["tensors"] = std::vector<torch::Tensor>{x, x};
    at::AutoDispatchBelowADInplaceOrView guard;
    return x * factor;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto sizes = context->saved_data["sizes"].toIntList();
    std::cout << context->saved_data["name"].toStringRef() << sizes.size() << sizes[1]
              << context->saved_data["sizes"].toIntVector()[0] << context->saved_data["tensors"].toTensorVector().size()
              << "\n";
    return {gradients[0] * context->saved_data["factor"].to<double>(), torch::Tensor()};
  }
};

static void values() {
  const torch::Tensor x = torch::ones({2, 3}).requires_grad_();
  Scaled::apply(x, 2.5).sum().backward();
  std::cout << x.grad().sum().item<float>() << "\n";
  const c10::IValue numbers(std::vector<double>{1.5, 2}), none = c10::IValue(), pair(c10::complex<double>(1, 2));
  std::cout << numbers.isDoubleList() << numbers.toDoubleVector()[0] << none.isNone() << pair.toComplexDouble() << " "
            << c10::IValue(7).to<int64_t>() << c10::IValue(2.5).toScalar() << none.toOptional<int64_t>().has_value()
            << c10::IValue(std::optional<int64_t>(3)).toOptional<int64_t>().value() << "\n";
}

static void old_types() {
  const torch::Tensor x = torch::ones({2}, at::CPU(at::kDouble));
  std::cout << x.type() << " " << x.type().scalarType() << x.type().is_cuda() << (x.type() == at::CPU(at::kDouble))
            << (x.type().backend() == at::Backend::CPU) << " " << torch::zeros({2}, x.type()).dtype() << "\n";
}

static void into_doubles() {
  torch::Tensor result = torch::empty({0}, torch::kDouble);
  std::cout << std::setprecision(17) << torch::linspace_out(result, 0, 1, 4)[1].item<double>() << "\n";
  torch::manual_seed(3);
  result.resize_({0});
  const double drawn = torch::randn_out(result, {2})[1].item<double>();
  torch::manual_seed(3);
  std::cout << (drawn == torch::randn({2}, torch::kDouble)[1].item<double>()) << std::setprecision(6) << "\n";
  result.resize_({0});
  const torch::Tensor x = torch::tensor({1., 5., 3.}).requires_grad_();
  try {
    torch::mul_out(result, x, x);
    std::cout << "recorded\n";
  } catch (const c10::Error&) {
    std::cout << "nothing is recorded\n";
  }
  torch::NoGradGuard no_grad;
  torch::Tensor& (*const maximum)(torch::Tensor&, const torch::Tensor&, const torch::Tensor&) = torch::max_out;
  std::cout << maximum(result, x, 4 - x.detach()).sum().item<double>() << "\n";
  torch::Tensor row = torch::empty({0}, torch::kDouble);
  std::cout << torch::amax_out(result, x.to(torch::kDouble), {0}).item<double>()
            << torch::median_out(result, x.to(torch::kDouble)).item<double>()
            << torch::norm_out(row, x.to(torch::kDouble).view({1, 3}), 1, {1}).item<double>() << "\n";
}

int main() {
  dispatch();
  accessors();
  shared_memory();
  values();
  old_types();
  into_doubles();
  return 0;
}
