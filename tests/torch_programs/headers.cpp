// Every header that compat/ has is one of libtorch's; and what its small headers define.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/TensorIndexing.h>
#include <c10/core/Device.h>
#include <c10/core/DeviceType.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/Exception.h>
#include <c10/util/Half.h>
#include <c10/util/Optional.h>
#include <c10/util/intrusive_ptr.h>
#include <c10/util/irange.h>
#include <torch/all.h>
#include <torch/arg.h>
#include <torch/autograd.h>
#include <torch/cuda.h>
#include <torch/data.h>
#include <torch/data/dataloader.h>
#include <torch/data/datasets.h>
#include <torch/data/example.h>
#include <torch/data/samplers.h>
#include <torch/data/transforms.h>
#include <torch/enum.h>
#include <torch/fft.h>
#include <torch/nn.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/functional.h>
#include <torch/nn/init.h>
#include <torch/nn/module.h>
#include <torch/nn/modules.h>
#include <torch/nn/options.h>
#include <torch/nn/pimpl.h>
#include <torch/nn/utils.h>
#include <torch/optim.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/schedulers/lr_scheduler.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>
#include <torch/ordered_dict.h>
#include <torch/serialize.h>
#include <torch/special.h>
#include <torch/torch.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/version.h>

#include "show.h"

int main() {
  TORCH_CHECK(TORCH_VERSION_MAJOR >= 1);
  int64_t sum = 0;
  for (const auto i : c10::irange(5)) sum += i;
  for (const auto i : c10::irange(2, 4)) sum += 100 * i;
  show("sum", static_cast<double>(sum));
  show("same type", std::is_same_v<at::Tensor, torch::Tensor> && std::is_same_v<c10::Device, torch::Device>);
  try {
    TORCH_CHECK(sum < 0);
  } catch (const c10::Error& error) {
    std::printf("%.26s\n", error.what_without_backtrace());
  }
  try {
    TORCH_CHECK_VALUE(sum < 0, "sum is ", sum, ", sizes are ", torch::ones({2, 3}).dim());
  } catch (const c10::ValueError& error) {
    std::printf("%s\n", error.what_without_backtrace());
  }
  return 0;
}
