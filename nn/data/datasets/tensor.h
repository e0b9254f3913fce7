// Datasets that are tensors: the first dimension counts the examples.
#pragma once
#include "nn/data/datasets/base.h"

namespace rush::data::datasets {

/// Data alone: example i is data[i].
class TensorDataset final : public Dataset<TensorDataset, TensorExample> {
 public:
  explicit TensorDataset(const std::vector<Tensor>& tensors);
  explicit TensorDataset(Tensor tensor);
  TensorExample get(size_t index) override { return tensor[static_cast<int64_t>(index)]; }
  std::optional<size_t> size() const override { return static_cast<size_t>(tensor.size(0)); }

  Tensor tensor;
};

/// Data and targets: example i is (data[i], targets[i]). Python's TensorDataset of two tensors.
class TensorPairDataset final : public Dataset<TensorPairDataset> {
 public:
  /// Throws ValueError when the tensors have different numbers of examples.
  TensorPairDataset(Tensor data, Tensor targets);
  Example<> get(size_t index) override {
    return {data[static_cast<int64_t>(index)], targets[static_cast<int64_t>(index)]};
  }
  std::optional<size_t> size() const override { return static_cast<size_t>(data.size(0)); }

  Tensor data, targets;
};

}  // namespace rush::data::datasets
