#include "nn/data/transforms/stack.h"

#include "core/ops/factories.h"
#include "core/ops/join.h"
#include "core/ops/view.h"
#include "nn/data/transforms/tensor.h"

namespace rush::data::transforms {

Example<> Stack<Example<>>::apply_batch(std::vector<Example<>> examples) {
  std::vector<Tensor> data, targets;
  for (Example<>& example : examples) {
    data.push_back(std::move(example.data));
    targets.push_back(std::move(example.target));
  }
  return {stack(data), stack(targets)};
}

TensorExample Stack<TensorExample>::apply_batch(std::vector<TensorExample> examples) {
  std::vector<Tensor> data;
  for (TensorExample& example : examples) data.push_back(std::move(example.data));
  return stack(data);
}

Tensor detail::per_channel(ArrayRef<double> values) {
  return tensor(values, kFloat32).view({static_cast<int64_t>(values.size()), 1, 1});
}

}  // namespace rush::data::transforms
