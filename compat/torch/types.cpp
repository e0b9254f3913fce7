#include "torch/types.h"

#include "nn/printed_namespace.h"

namespace rush::detail {

// As the standard library writes numbers: "2.5", "(2,3.1)".
static std::string libtorch_text(const Scalar& number) {
  std::ostringstream text;
  if (number.is_complex()) {
    text << number.toComplexDouble();
  } else if (number.is_floating_point()) {
    text << number.toDouble();
  } else {
    text << str(number);
  }
  return text.str();
}

bool go_by_libtorch() {
  // Devices that programs ask for, and then find missing.
  add_device_type("mps", static_cast<int>(kMPS));
  add_device_type("xpu", static_cast<int>(kXPU));
  scalar_text = libtorch_text;
  nn::detail::set_printed_namespace("torch");  // see Note [The names of modules in print]
  optim::detail::step_lr_is_late = true;
  autograd::function_prefix = "torch::autograd::";
  set_default_generator(at::detail::createCPUGenerator());
  return true;
}

}  // namespace rush::detail

namespace rush::indexing {

std::ostream& operator<<(std::ostream& out, const TensorIndex& index) {
  switch (index.type()) {
    case TensorIndexType::None: return out << "None";
    case TensorIndexType::Ellipsis: return out << "...";
    case TensorIndexType::Integer: return out << index.integer();
    case TensorIndexType::Boolean: return out << std::boolalpha << index.boolean();
    case TensorIndexType::Slice: return out << index.slice();
    case TensorIndexType::Tensor: return out << index.tensor();
  }
  return out;
}

}  // namespace rush::indexing

namespace at {

Tensor scalar_to_tensor(const Scalar& number, Device device) {
  return scalar_tensor(number, TensorOptions(number.type()).device(device));
}

}  // namespace at

namespace at::detail {

Generator createCPUGenerator(uint64_t seed) { return make_generator<Mt19937GeneratorImpl>(seed); }

}  // namespace at::detail
