// DataLoader: goes through a dataset in batches, which threads load ahead of the caller.
#pragma once
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/profiler/record.h"
#include "nn/data/batch_request.h"
#include "nn/data/dataloader_options.h"
#include "nn/data/datasets/stateful.h"
#include "nn/data/samplers.h"
#include "nn/data/worker_exception.h"
#include "nn/data/worker_info.h"
#include "nn/data/worker_pool.h"

namespace rush::data {

// for (auto& batch : *loader) { ... }: one epoch. `begin` starts a new one; iterators of earlier epochs keep their
// batch, and throw Error when they are to go on.
//
// An exception of a dataset or a transform reaches the caller as it is where there are no workers, and as a
// WorkerException where there are. Either way the loader goes on with the batch after it.
//
// Note [The loader's position]
// Workers run ahead of the caller, and the sampler ahead of them. So the state dict holds the sampler's place and the
// requests that were drawn from it but whose batches the caller has not got: a loader that is given the dict asks for
// these first. That holds also where batches come out of order. Within the loop's body the present batch counts as
// handed out; a DevicePrefetcher, which takes batches in advance, says how many it holds. A stateful dataset
// is itself the place, and then no batches may be in flight: its loader can be saved between epochs, and within
// one only if it has no workers.
template <class Dataset, class Sampler>
class DataLoader {
 public:
  using BatchType = datasets::UnwrappedBatch<Dataset>;
  using BatchRequestType = typename Sampler::BatchRequestType;

  /// Goes through the batches of one epoch; copies of an iterator go on together.
  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = BatchType;
    using pointer = BatchType*;
    using reference = BatchType&;
    using iterator_category = std::input_iterator_tag;

    /// The batch; ++ waits for the next one. All throw Error past the last batch, ++ also once another epoch has begun.
    BatchType& operator*() const { return *batch(); }
    BatchType* operator->() const { return &*batch(); }
    Iterator& operator++() {
      batch();
      RUSH_CHECK(loader_->epoch_ == epoch_,
                 "DataLoader: begin() has started another epoch since this iterator was made, which ended this one; "
                 "epochs at the same time need loaders of their own");
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
        : loader_(loader),
          epoch_(loader->epoch_),
          batch_(std::make_shared<std::optional<BatchType>>(loader->next_batch())) {}
    bool at_end() const { return !batch_ || !*batch_; }
    std::optional<BatchType>& batch() const {
      RUSH_CHECK(!at_end(), "DataLoader: the iterator is past the last batch");
      return *batch_;
    }

    DataLoader* loader_ = nullptr;
    uint64_t epoch_ = 0;
    std::shared_ptr<std::optional<BatchType>> batch_;
  };

  /// Starts the workers. Throws ValueError for a batch size of 0, a negative number of workers, and drop_last with a
  /// stateful dataset; warns of more workers than processors.
  DataLoader(Dataset dataset, Sampler sampler, DataLoaderOptions options)
      : dataset_(std::make_shared<Dataset>(std::move(dataset))),
        sampler_(std::move(sampler)),
        options_(std::move(options)) {
    RUSH_CHECK_VALUE(options_.batch_size() > 0, "DataLoader: the batch size must be positive, got 0");
    detail::check_workers(options_.workers());
    RUSH_CHECK_VALUE(!kStateful || !options_.drop_last(),
                     "DataLoader: drop_last is not known to a dataset that decides "
                     "itself what comes next: let its get_batch leave the last batch out, or pass over it");
    if (options_.workers() > 0) start_workers();
  }

  /// Begins an epoch, or goes on with the one that load_state_dict has restored. Throws Error after join().
  Iterator begin() {
    RUSH_CHECK(pool_ || options_.workers() == 0, "DataLoader: it was joined");
    ++epoch_;
    if (!resuming_) start_epoch();
    resuming_ = false;
    return Iterator(this);
  }
  Iterator end() { return Iterator(); }
  /// What it was made with, with the defaults filled in.
  FullDataLoaderOptions options() const noexcept { return FullDataLoaderOptions(options_); }
  const Dataset& dataset() const noexcept { return *dataset_; }  // of which the workers have copies
  static constexpr size_t kMostUnused = 8;
  /// Ends the threads. The loader cannot be used afterwards unless it has none.
  void join() { pool_.reset(); }

  /// The position, see Note [The loader's position], as if the last `unused` batches, at most kMostUnused, had not been
  /// handed out. Throws NotImplementedError if the sampler or the dataset has no state dict, Error where the note says
  /// so.
  StateDict state_dict(size_t unused = 0) {
    RUSH_CHECK_VALUE(unused <= handed_out_.size(), "DataLoader::state_dict: ", unused,
                     " batches cannot be taken back, ", handed_out_.size(), " can");
    Position position = position_;
    if (unused > 0) position.in_epoch = true;
    // Drawn before those that are still pending.
    std::vector<Job> drawn(handed_out_.end() - static_cast<std::ptrdiff_t>(unused), handed_out_.end());
    for (const auto& [number, job] : in_flight_) drawn.push_back(job);
    position.pending.insert(position.pending.begin(), drawn.begin(), drawn.end());
    RUSH_CHECK(!kStateful || position.pending.empty(),
               "DataLoader::state_dict: workers have loaded ahead in a stateful dataset; save between epochs, or load "
               "without workers");
    StateDict dict("state");
    StateFields fields(&dict);
    visit(fields, position);
    return dict;
  }

  /// The next `begin` goes on with the epoch of the dict, if that is in one. Throws ValueError, and changes nothing, if
  /// the dict is not one of such a loader.
  void load_state_dict(const StateDict& dict) {
    if (kStateful && pool_) pool_->wait_until_idle();
    Position position;
    load_place(dict, position);
    abandon_epoch();
    position_ = std::move(position);
    resuming_ = position_.in_epoch;
  }

 private:
  using Job = BatchJob<BatchRequestType>;
  using Loaded = typename Dataset::BatchType;
  using Pool = WorkerPool<Job, Loaded>;
  static constexpr bool kStateful = Dataset::is_stateful;

  // Where the epoch is, apart from the sampler's place.
  struct Position {
    bool in_epoch = false;
    uint64_t epoch_seed = 0;
    uint64_t next_number = 0;  // of the next job
    std::vector<Job> pending;  // drawn from the sampler before all others, and to be done again
  };

  static Loaded load(Dataset& dataset, Job& job, std::optional<WorkerInfo> worker) {
    if (worker) worker->seed = job.epoch_seed + worker->id;
    const detail::BatchScope scope(job.epoch_seed, job.number, worker);
    try {
      return dataset.get_batch(job.request);
    } catch (...) {
      detail::rethrow_from(scope);
    }
  }

  void start_workers() {
    std::vector<typename Pool::Work> works;
    for (size_t id = 0; id < options_.workers(); ++id) {
      // Each has a dataset of its own, unless that is stateful.
      std::shared_ptr<Dataset> dataset = dataset_;
      if constexpr (!kStateful) dataset = std::make_shared<Dataset>(*dataset_);
      const WorkerInfo worker{id, options_.workers(), 0};
      works.push_back([dataset, worker](Job job) { return load(*dataset, job, worker); });
    }
    pool_ = std::make_unique<Pool>(std::move(works));
  }

  void start_epoch() {
    abandon_epoch();
    if constexpr (kStateful) {
      if (pool_) pool_->wait_until_idle();
      dataset_->reset();
    }
    sampler_.reset(std::nullopt);
    position_ = {true, detail::draw_seed(options_.generator()), 0, {}};
  }

  void abandon_epoch() {
    if (pool_) pool_->clear();
    in_flight_.clear();
    handed_out_.clear();
    exhausted_ = false;
  }

  std::optional<Job> next_job() {
    if (!position_.pending.empty()) {
      Job job = std::move(position_.pending.front());
      position_.pending.erase(position_.pending.begin());
      return job;
    }
    if (exhausted_) return std::nullopt;
    auto request = sampler_.next(options_.batch_size());
    exhausted_ = !request || (options_.drop_last() && detail::request_size(*request) < options_.batch_size());
    if (exhausted_) return std::nullopt;
    return Job{position_.next_number++, position_.epoch_seed, std::move(*request)};
  }

  std::optional<BatchType> next_batch() {
    const record_function range(profiler::kLoaderRange);
    while (std::optional<Loaded> loaded = pool_ ? load_in_workers() : load_here()) {
      if constexpr (!kStateful) {
        return loaded;
      } else {
        if (*loaded) return std::move(*loaded);
        exhausted_ = true;  // other workers may have got the last batches
      }
    }
    position_.in_epoch = false;
    return std::nullopt;
  }

  std::optional<Loaded> load_here() {
    RUSH_CHECK(options_.workers() == 0, "DataLoader: it was joined");
    std::optional<Job> job = next_job();
    if (!job) return std::nullopt;
    note_handed_out(*job);
    return load(*dataset_, *job, std::nullopt);
  }

  void note_handed_out(const Job& job) {
    handed_out_.push_back(job);
    if (handed_out_.size() > kMostUnused) handed_out_.pop_front();
  }

  std::optional<Loaded> load_in_workers() {
    while (pool_->outstanding() < std::max<size_t>(1, options_.max_jobs().value_or(2 * options_.workers()))) {
      std::optional<Job> job = next_job();
      if (!job) break;
      in_flight_.emplace(pool_->push(*job), *job);
    }
    if (pool_->outstanding() == 0) return std::nullopt;
    auto outcome = pool_->pop(options_.enforce_ordering(), options_.timeout());
    RUSH_CHECK_AS(TimeoutError, outcome, "DataLoader (batch size ", options_.batch_size(), "): none of its ",
                  options_.workers(), " workers delivered a batch within ", options_.timeout()->count(), " ms");
    note_handed_out(in_flight_.at(outcome->number));
    in_flight_.erase(outcome->number);
    if (outcome->failure) detail::throw_worker_exception(outcome->failure);
    return std::move(outcome->result);
  }

  void visit(StateFields& fields, Position& position) {
    fields("in_epoch", position.in_epoch);
    fields("epoch_seed", position.epoch_seed);
    fields.count("next_batch", position.next_number);
    for (size_t i = 0; !kStateful; ++i) {
      const StateFields::Scope scope(fields, str("pending.", i, "."));
      if (fields.reading() ? !fields.any_left() : i == position.pending.size()) break;
      if (fields.reading()) position.pending.push_back({0, position.epoch_seed, BatchRequestType()});
      fields.count("number", position.pending[i].number);
      detail::visit_request(fields, position.pending[i].request, dataset_->size());
    }
    const StateFields::Scope scope(fields, kStateful ? "dataset." : "sampler.");
    place().visit(fields);
  }

  // The one that knows what comes next.
  auto& place() {
    if constexpr (kStateful) {
      return *dataset_;
    } else {
      return sampler_;
    }
  }

  void load_place(const StateDict& dict, Position& position) {
    const StateDict before = saved_state(place());
    try {
      StateFields fields(dict);
      visit(fields, position);
      fields.finish("DataLoader::load_state_dict");
    } catch (...) {
      StateFields fields(before);
      place().visit(fields);
      throw;
    }
  }

  std::shared_ptr<Dataset> dataset_;
  Sampler sampler_;
  DataLoaderOptions options_;
  Position position_;
  uint64_t epoch_ = 0;                 // how many epochs began
  std::map<uint64_t, Job> in_flight_;  // by the pool's number: what was pushed and not popped
  std::deque<Job> handed_out_;         // the last ones
  bool exhausted_ = false;             // nothing more to be asked for in this epoch
  bool resuming_ = false;              // the next `begin` goes on
  std::unique_ptr<Pool> pool_;
};

template <class Dataset, class Sampler>
using StatelessDataLoader = DataLoader<Dataset, Sampler>;
/// All workers share the dataset, which decides itself what comes next and when the epoch ends.
template <class Dataset>
using StatefulDataLoader = DataLoader<Dataset, detail::EndlessSampler<typename Dataset::BatchRequestType>>;

/// A loader with a sampler of its own.
template <class Dataset, class Sampler>
requires(!Dataset::is_stateful) std::unique_ptr<DataLoader<Dataset, Sampler>> make_data_loader(
    Dataset dataset, Sampler sampler, DataLoaderOptions options) {
  return std::make_unique<DataLoader<Dataset, Sampler>>(std::move(dataset), std::move(sampler), std::move(options));
}

/// A loader with a sampler over the whole dataset: make_data_loader<samplers::SequentialSampler>(dataset, 64).
template <class Sampler = samplers::RandomSampler, class Dataset>
requires(!Dataset::is_stateful) std::unique_ptr<DataLoader<Dataset, Sampler>> make_data_loader(
    Dataset dataset, DataLoaderOptions options = {}) {
  const std::optional<size_t> size = dataset.size();
  RUSH_CHECK_VALUE(size, "make_data_loader: the dataset has no size; pass a sampler");
  detail::check_not_empty(*size, std::is_same_v<Sampler, samplers::RandomSampler>);
  return make_data_loader(std::move(dataset), Sampler(*size), std::move(options));
}

/// A loader of a stateful dataset.
template <class Dataset>
requires(Dataset::is_stateful) std::unique_ptr<StatefulDataLoader<Dataset>> make_data_loader(
    Dataset dataset, DataLoaderOptions options = {}) {
  using Sampler = detail::EndlessSampler<typename Dataset::BatchRequestType>;
  return std::make_unique<StatefulDataLoader<Dataset>>(std::move(dataset), Sampler(), std::move(options));
}

}  // namespace rush::data
