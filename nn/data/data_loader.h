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
    delivered_ = 0;
    if (resume_at_.empty()) {
      sampler_.reset();
    } else {
      pass_over_delivered();
    }
    in_epoch_ = true;
    return Iterator(this);
  }
  Iterator end() { return Iterator(); }

  // Where in its epoch the loader stands: what decides the order of the batches, and how many of them the caller got;
  // empty before the first epoch and after each. Throws ValueError where batches come in no fixed order.
  std::vector<int64_t> position() const {
    RUSH_CHECK_VALUE(options_.enforce_ordering(), "DataLoader: without enforce_ordering there is no position");
    if (!in_epoch_) return resume_at_;
    std::vector<int64_t> position = sampler_.epoch();
    position.insert(position.begin(), {static_cast<int64_t>(options_.batch_size()), delivered_});
    return position;
  }
  // Throws ValueError unless a loader of this batch size and data set can have been at `position`.
  void check_position(const std::vector<int64_t>& position) const {
    if (position.empty()) return;
    RUSH_CHECK_VALUE(
        position.size() >= 2 && position[0] == static_cast<int64_t>(options_.batch_size()) && position[1] >= 0,
        "DataLoader: the position is not one of a loader with batches of ", options_.batch_size());
    sampler_.check_epoch({position.begin() + 2, position.end()});
  }
  // Makes the next epoch that one of which `position` is, from there on. Throws as check_position.
  void resume(const std::vector<int64_t>& position) {
    check_position(position);
    if (pool_) pool_->clear();
    in_epoch_ = false;
    resume_at_ = position;
  }

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

  // Samplers of the caller's own need not know how to go on; only a loader that resumes asks it of them.
  void pass_over_delivered() {
    if constexpr (requires { sampler_.restore_epoch(resume_at_); }) {
      sampler_.restore_epoch({resume_at_.begin() + 2, resume_at_.end()});
      while (delivered_ < resume_at_[1] && sampler_.next(options_.batch_size())) ++delivered_;
    }
    resume_at_.clear();
  }

  std::optional<BatchRequestType> next_request() {
    auto request = sampler_.next(options_.batch_size());
    if (request && options_.drop_last() && request->size() < options_.batch_size()) request.reset();
    return request;
  }

  std::optional<BatchType> next_batch() {
    std::optional<BatchType> batch = load_next();
    in_epoch_ = batch.has_value();
    if (batch) ++delivered_;
    return batch;
  }

  std::optional<BatchType> load_next() {
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
  int64_t delivered_ = 0;  // batches of this epoch that the caller got
  bool in_epoch_ = false;
  std::vector<int64_t> resume_at_;  // the position at which the next epoch begins; empty: at its beginning
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
