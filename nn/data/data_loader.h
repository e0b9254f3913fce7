// DataLoader: goes through a dataset in batches, which threads load ahead of the caller.
#pragma once
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "nn/data/dataloader_options.h"
#include "nn/data/samplers.h"
#include "nn/data/worker_pool.h"

namespace rush::data {

// for (auto& batch : *loader) { ... }: one epoch. `begin` starts a new one; iterators of earlier epochs end with it.
// An exception that a dataset or a transform throws, on whatever thread, reaches the caller as it is.
template <class Dataset, class Sampler>
class DataLoader {
 public:
  using BatchType = typename Dataset::BatchType;
  using BatchRequestType = typename Sampler::BatchRequestType;

  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = BatchType;
    using pointer = BatchType*;
    using reference = BatchType&;
    using iterator_category = std::input_iterator_tag;

    BatchType& operator*() const { return *batch(); }
    BatchType* operator->() const { return &*batch(); }
    Iterator& operator++() {
      batch();
      *batch_ = loader_->next_batch();
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) {
      return (a.at_end() && b.at_end()) || (!a.at_end() && a.batch_ == b.batch_);
    }

   private:
    friend class DataLoader;
    Iterator() = default;
    explicit Iterator(DataLoader* loader)
        : loader_(loader), batch_(std::make_shared<std::optional<BatchType>>(loader->next_batch())) {}
    bool at_end() const { return !batch_ || !*batch_; }
    std::optional<BatchType>& batch() const {
      RUSH_CHECK(!at_end(), "DataLoader: the iterator is past the last batch");
      return *batch_;
    }

    DataLoader* loader_ = nullptr;
    std::shared_ptr<std::optional<BatchType>> batch_;
  };

  DataLoader(Dataset dataset, Sampler sampler, DataLoaderOptions options)
      : dataset_(std::move(dataset)), sampler_(std::move(sampler)), options_(std::move(options)) {
    RUSH_CHECK_VALUE(options_.batch_size() > 0, "DataLoader: the batch size must be positive");
    if (options_.workers() > 0) start_workers();
  }

  Iterator begin() {
    if (pool_) pool_->clear();
    sampler_.reset();
    return Iterator(this);
  }
  Iterator end() { return Iterator(); }

  const DataLoaderOptions& options() const noexcept { return options_; }
  const Dataset& dataset() const noexcept { return dataset_; }
  // Ends the threads. The loader cannot be used afterwards unless it has none.
  void join() { pool_.reset(); }

 private:
  using Pool = WorkerPool<BatchRequestType, BatchType>;

  void start_workers() {
    std::vector<typename Pool::Work> works;
    for (size_t i = 0; i < options_.workers(); ++i) {
      // Each has a dataset of its own. It is shared only to be copyable, as std::function wants it.
      auto dataset = std::make_shared<Dataset>(dataset_);
      works.push_back([dataset](BatchRequestType request) { return dataset->get_batch(request); });
    }
    pool_ = std::make_unique<Pool>(std::move(works));
  }

  std::optional<BatchRequestType> next_request() {
    auto request = sampler_.next(options_.batch_size());
    if (request && options_.drop_last() && request->size() < options_.batch_size()) request.reset();
    return request;
  }

  std::optional<BatchType> next_batch() {
    if (options_.workers() == 0) {
      const auto request = next_request();
      return request ? std::optional<BatchType>(dataset_.get_batch(*request)) : std::nullopt;
    }
    RUSH_CHECK(pool_, "DataLoader: it was joined");
    while (pool_->outstanding() < std::max<size_t>(1, options_.max_jobs().value_or(2 * options_.workers()))) {
      auto request = next_request();
      if (!request) break;
      pool_->push(std::move(*request));
    }
    if (pool_->outstanding() == 0) return std::nullopt;
    return pool_->pop(options_.enforce_ordering(), options_.timeout());
  }

  Dataset dataset_;
  Sampler sampler_;
  DataLoaderOptions options_;
  std::unique_ptr<Pool> pool_;
};

// A loader with a sampler of its own.
template <class Dataset, class Sampler>
std::unique_ptr<DataLoader<Dataset, Sampler>> make_data_loader(Dataset dataset, Sampler sampler,
                                                               DataLoaderOptions options) {
  return std::make_unique<DataLoader<Dataset, Sampler>>(std::move(dataset), std::move(sampler), std::move(options));
}

// A loader with a sampler over the whole dataset: make_data_loader<samplers::SequentialSampler>(dataset, 64).
template <class Sampler = samplers::RandomSampler, class Dataset>
std::unique_ptr<DataLoader<Dataset, Sampler>> make_data_loader(Dataset dataset, DataLoaderOptions options = {}) {
  const std::optional<size_t> size = dataset.size();
  RUSH_CHECK_VALUE(size, "make_data_loader: the dataset has no size; pass a sampler");
  return make_data_loader(std::move(dataset), Sampler(*size), std::move(options));
}

}  // namespace rush::data
