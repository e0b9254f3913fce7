// One dataset for all workers of a DataLoader, in place of a copy each.
#pragma once
#include <memory>

#include "nn/data/datasets/base.h"
#include "nn/state/state_dict.h"

namespace rush::data::datasets {

/// The workers call get_batch at the same time: the dataset has to allow it.
template <class UnderlyingDataset>
class SharedBatchDataset final
    : public BatchDataset<SharedBatchDataset<UnderlyingDataset>, typename UnderlyingDataset::BatchType,
                          typename UnderlyingDataset::BatchRequestType> {
 public:
  SharedBatchDataset(std::shared_ptr<UnderlyingDataset> dataset) : dataset_(std::move(dataset)) {}

  typename UnderlyingDataset::BatchType get_batch(typename UnderlyingDataset::BatchRequestType request) override {
    return dataset_->get_batch(std::move(request));
  }
  std::optional<size_t> size() const override { return dataset_->size(); }
  // For a stateful dataset: starts its next epoch, and names its position.
  void reset() requires(UnderlyingDataset::is_stateful) { dataset_->reset(); }
  void visit(StateFields& fields) requires(UnderlyingDataset::is_stateful) { dataset_->visit(fields); }

  /// The dataset that all share.
  const UnderlyingDataset& operator*() const { return *dataset_; }
  const UnderlyingDataset* operator->() const { return dataset_.get(); }
  UnderlyingDataset& operator*() { return *dataset_; }
  UnderlyingDataset* operator->() { return dataset_.get(); }

 private:
  std::shared_ptr<UnderlyingDataset> dataset_;
};

/// Shares a dataset that is made from these arguments.
template <class UnderlyingDataset, class... Args>
SharedBatchDataset<UnderlyingDataset> make_shared_dataset(Args&&... args) {
  return std::make_shared<UnderlyingDataset>(std::forward<Args>(args)...);
}

}  // namespace rush::data::datasets
