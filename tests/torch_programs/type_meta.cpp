// Element types, devices and dispatch keys as values: caffe2::TypeMeta, ScalarType, Device, DispatchKeySet, and how
// TensorOptions print.
#include <torch/torch.h>

#include <iostream>
#include <sstream>

static void types() {
  torch::Tensor floats = torch::ones({2, 2});
  caffe2::TypeMeta meta = floats.dtype();
  std::cout << meta << " " << meta.name() << " " << meta.itemsize() << " " << meta.toScalarType() << " "
            << floats.scalar_type() << "\n";
  std::cout << (meta == torch::kFloat) << (meta == caffe2::TypeMeta::Make<float>())
            << (floats.dtype() == torch::kDouble) << (meta != torch::ones({1}, torch::kInt).dtype())
            << meta.Match<float>() << meta.Match<double>() << "\n";
  std::cout << c10::typeMetaToScalarType(meta) << " " << c10::scalarTypeToTypeMeta(at::kLong) << " "
            << torch::ones({1}, torch::kBool).dtype() << " " << torch::ones({1}, torch::kHalf).dtype() << " "
            << torch::ones({1}, torch::kBFloat16).dtype() << " " << torch::ones({1}, torch::kComplexFloat).dtype()
            << " " << torch::ones({1}, torch::kUInt8).dtype() << " " << torch::ones({1}, torch::kInt16).dtype().name()
            << "\n";
  torch::Tensor other = torch::zeros({2}, floats.dtype());
  std::cout << other.dtype() << other.options() << "\n" << torch::zeros({2}, torch::dtype(meta)).sizes() << "\n";
  std::cout << torch::get_default_dtype() << " " << torch::typeMetaToScalarType(torch::get_default_dtype()) << "\n";
  torch::set_default_dtype(caffe2::TypeMeta::Make<double>());
  std::cout << torch::ones({1}).dtype() << torch::tensor({1.5}).dtype() << "\n";
  torch::set_default_dtype(torch::scalarTypeToTypeMeta(torch::kFloat));
  switch (floats.scalar_type()) {
    case torch::kFloat: std::cout << "single\n"; break;
    default: std::cout << "other\n";
  }
  std::cout << c10::toString(torch::kBFloat16) << c10::elementSize(torch::kDouble) << c10::isFloatingType(torch::kHalf)
            << c10::isIntegralType(torch::kBool, false) << c10::isComplexType(torch::kComplexDouble)
            << c10::promoteTypes(torch::kInt, torch::kHalf) << torch::promote_types(torch::kLong, torch::kBool)
            << c10::CppTypeToScalarType<int64_t>::value << c10::toUnderlying(torch::kFloat) << "\n";
  std::cout << torch::can_cast(torch::kFloat, torch::kInt) << torch::result_type(floats, torch::Scalar(2.0))
            << torch::result_type(torch::ones({1}, torch::kInt), torch::Scalar(2.5)) << "\n";
}

static void devices() {
  torch::Device cpu("cpu"), second("cuda:1"), any(torch::kCUDA);
  std::cout << cpu << " " << second << " " << any << " " << second.str() << " " << cpu.type() << " "
            << static_cast<int>(second.index()) << static_cast<int>(any.index()) << any.has_index() << second.is_cuda()
            << cpu.is_cpu() << (cpu == torch::Device(torch::kCPU)) << (any == second) << "\n";
  any.set_index(3);
  std::cout << any << c10::DeviceTypeName(torch::kCUDA) << c10::DeviceTypeName(torch::kMPS, true) << torch::kXPU
            << torch::Device(torch::kMeta) << "\n";
  for (const char* text : {"gpu", "cuda:", "cuda:x", "cpu:-1", "cuda:01", ""}) {
    try {
      std::cout << torch::Device(text) << "\n";
    } catch (const c10::Error& e) {
      std::cout << "refused \"" << text << "\"\n";
    }
  }
  torch::Tensor meta = torch::empty({1000, 1000, 1000}, torch::device(torch::kMeta));
  std::cout << meta.device() << meta.is_meta() << meta.numel() << torch::matmul(meta[0], meta[1]).sizes() << "\n";
  torch::Device device = torch::kCPU;
  if (torch::cuda::is_available() && torch::cuda::device_count() > 64) device = torch::kCUDA;
  std::cout << torch::ones({2}, device).device() << static_cast<int>(torch::ones({1}).get_device()) << "\n";
}

static void options() {
  auto options =
      torch::TensorOptions().dtype(torch::kFloat64).layout(torch::kStrided).device(torch::kCPU).requires_grad(true);
  std::cout << options << "\n" << torch::TensorOptions() << "\n";
  std::cout
      << torch::TensorOptions().dtype(torch::kInt8).pinned_memory(true).memory_format(torch::MemoryFormat::ChannelsLast)
      << "\n";
  std::cout << options.dtype() << options.device() << options.layout() << options.requires_grad()
            << options.pinned_memory() << options.has_dtype() << torch::TensorOptions().has_device()
            << options.dtype_opt().has_value() << torch::TensorOptions().device_opt().has_value()
            << options.memory_format_opt().has_value() << "\n";
  std::cout << torch::device({torch::kCUDA, 1}).device() << torch::dtype<int16_t>().dtype()
            << torch::requires_grad(false).requires_grad() << torch::layout(torch::kSparse).layout() << "\n";
  std::cout << torch::tensor({1, 2}, torch::dtype(torch::kFloat).requires_grad(true)).options() << "\n";
  std::cout << torch::typeMetaToScalarType(options.dtype()) << options.merge_in(torch::dtype(torch::kHalf)).dtype()
            << "\n";
}

static void keys() {
  using c10::DispatchKey;
  using c10::DispatchKeySet;
  DispatchKeySet set({DispatchKey::CPU, DispatchKey::AutogradCPU});
  std::cout << set.has(DispatchKey::CPU) << set.has(DispatchKey::CUDA) << set.empty() << set << "\n";
  std::cout << (set | DispatchKeySet(DispatchKey::CUDA)).has(DispatchKey::CUDA)
            << set.remove(DispatchKey::AutogradCPU).has(DispatchKey::AutogradCPU)
            << set.add(DispatchKey::SparseCPU).has(DispatchKey::SparseCPU) << (set == set)
            << (set & DispatchKeySet(DispatchKey::CPU)) << "\n";
  std::cout << set.highestPriorityTypeId() << DispatchKeySet(DispatchKey::CPU).highestPriorityTypeId() << "\n";
  std::cout << toString(torch::kBFloat16) << c10::toString(DispatchKey::CPU) << DispatchKey::AutogradCPU
            << DispatchKeySet().empty()
            << (DispatchKeySet({DispatchKey::CPU, DispatchKey::CUDA}) - set).has(DispatchKey::CPU) << "\n";
}

int main() {
  types();
  devices();
  options();
  keys();
  return 0;
}
