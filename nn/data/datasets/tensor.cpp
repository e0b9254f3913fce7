#include "nn/data/datasets/tensor.h"

#include "core/ops/view/join.h"

namespace rush::data::datasets {

TensorDataset::TensorDataset(const std::vector<Tensor>& tensors) : TensorDataset(stack(tensors)) {}

TensorDataset::TensorDataset(Tensor tensor) : tensor(std::move(tensor)) {
  RUSH_CHECK_VALUE(this->tensor.dim() > 0, "TensorDataset: expected at least one dimension, which counts the examples");
}

TensorPairDataset::TensorPairDataset(Tensor data, Tensor targets) : data(std::move(data)), targets(std::move(targets)) {
  RUSH_CHECK_VALUE(this->data.dim() > 0 && this->targets.dim() > 0 && this->data.size(0) == this->targets.size(0),
                   "TensorPairDataset: expected as many targets as examples, got shapes ", this->data.sizes(), " and ",
                   this->targets.sizes());
}

}  // namespace rush::data::datasets
