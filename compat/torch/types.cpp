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

namespace at::detail {

Generator createCPUGenerator(uint64_t seed) { return make_generator<Mt19937GeneratorImpl>(seed); }

}  // namespace at::detail
