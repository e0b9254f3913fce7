#include "torch/types.h"

#include "nn/printed_namespace.h"

namespace rush::detail {

bool go_by_libtorch() {
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

namespace at::detail {

Generator createCPUGenerator(uint64_t seed) { return make_generator<Mt19937GeneratorImpl>(seed); }

}  // namespace at::detail
