#include "nn/data/transforms/stack.h"

#include <algorithm>
#include <cstring>

#include "core/ops/basic.h"
#include "nn/data/transforms/tensor.h"

namespace rush::data::transforms {
namespace {

// Can the tensors be stacked by copying their bytes one after the other?
bool are_rows(TensorList tensors) {
  return !tensors.empty() && std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& t) {
    return t.defined() && t.is_cpu() && t.is_contiguous() && !t.requires_grad() &&
           t.scalar_type() == tensors[0].scalar_type() && t.sizes() == tensors[0].sizes();
  });
}

// rush::stack, straight into the batch in the usual case. All checks are its.
Tensor stacked(TensorList tensors) {
  if (!are_rows(tensors)) return stack(tensors);
  std::vector<int64_t> sizes{static_cast<int64_t>(tensors.size())};
  sizes.insert(sizes.end(), tensors[0].sizes().begin(), tensors[0].sizes().end());
  const Tensor batch = empty(sizes, tensors[0].options());
  const auto row_bytes = static_cast<size_t>(tensors[0].nbytes());
  if (row_bytes == 0) return batch;
  char* row = static_cast<char*>(batch.data_ptr());
  for (const Tensor& t : tensors) {
    std::memcpy(row, t.data_ptr(), row_bytes);
    row += row_bytes;
  }
  return batch;
}

}  // namespace

Example<> Stack<Example<>>::apply_batch(std::vector<Example<>> examples) {
  std::vector<Tensor> data, targets;
  data.reserve(examples.size());
  targets.reserve(examples.size());
  for (Example<>& example : examples) {
    data.push_back(std::move(example.data));
    targets.push_back(std::move(example.target));
  }
  return {stacked(data), stacked(targets)};
}

TensorExample Stack<TensorExample>::apply_batch(std::vector<TensorExample> examples) {
  std::vector<Tensor> data;
  data.reserve(examples.size());
  for (TensorExample& example : examples) data.push_back(std::move(example.data));
  return stacked(data);
}

Tensor detail::per_channel(ArrayRef<double> values) {
  return tensor(values, kFloat32).view({static_cast<int64_t>(values.size()), 1, 1});
}

}  // namespace rush::data::transforms
