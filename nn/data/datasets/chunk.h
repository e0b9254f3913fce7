// ChunkDataset: data too large for memory, read in chunks (a file each, say) by threads ahead of the caller.
#pragma once
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "core/threads/parallel.h"
#include "core/threads/thread.h"
#include "nn/arg.h"
#include "nn/data/datasets/chunk_position.h"
#include "nn/data/datasets/stateful.h"
#include "nn/data/samplers.h"
#include "nn/data/worker_exception.h"

namespace rush::data::datasets {

/// Reads chunks. Several preloaders call read_chunk at the same time: the reader has to allow it.
template <class Example, class Chunk = std::vector<Example>>
class ChunkDataReader {
 public:
  using ExampleType = Example;
  using ChunkType = Chunk;
  using BatchType = Chunk;

  virtual ~ChunkDataReader() = default;
  /// The examples of a chunk, and how many chunks there are.
  virtual ChunkType read_chunk(size_t chunk_index) = 0;
  virtual size_t chunk_count() = 0;
  /// Called before an epoch.
  virtual void reset() = 0;
};

/// How chunks are read ahead and shuffled.
struct ChunkDatasetOptions {
  /// Throws ValueError where a number is zero or the cache cannot hold a batch.
  ChunkDatasetOptions(size_t preloader_count, size_t batch_size, size_t cache_size = 2048,
                      size_t cross_chunk_shuffle_count = 1);
  // Threads that read chunks.
  RUSH_ARG(size_t, preloader_count);
  RUSH_ARG(size_t, batch_size);
  // No more chunks are added while this many examples wait.
  RUSH_ARG(size_t, cache_size);
  // Chunks that are drawn together, and whose examples are shuffled with one another.
  RUSH_ARG(size_t, cross_chunk_shuffle_count);
};

/// The chunk sampler draws chunks, the example sampler the order of the examples within what was drawn together;
/// batches are cut across the chunks' borders (M. Zinkevich et al., "Parallelized stochastic gradient descent", NIPS
/// 2010). Reading is parallel, but chunks are added in the order in which they were drawn, so that the number of
/// preloaders changes no batch. Give the example sampler a generator of its own: the preloaders call it, and the
/// default generator would be drawn from at no particular time.
///
/// The state dict tells the example to go on with: the samplers' states from before its chunk was drawn and shuffled,
/// and how many examples of that chunk were handed out. A chunk is read again for it. Chunks that failed are not.
/// Loading a state dict goes on from there, without a reset.
///
/// Threads belong to the dataset, so it cannot be copied: give make_data_loader a
/// make_shared_dataset<ChunkDataset<...>>.
template <class ChunkReader, class ChunkSampler = samplers::RandomSampler,
          class ExampleSampler = samplers::RandomSampler>
class ChunkDataset final : public StatefulDataset<ChunkDataset<ChunkReader, ChunkSampler, ExampleSampler>,
                                                  typename ChunkReader::BatchType, size_t> {
 public:
  using UnwrappedBatchType = typename ChunkReader::BatchType;
  using BatchType = std::optional<UnwrappedBatchType>;
  using BatchRequestType = size_t;
  using ChunkSamplerType = ChunkSampler;
  using ExampleSamplerType = ExampleSampler;

  // `preprocessing_policy` changes the examples that were drawn together, before they are shuffled. Preloaders call it
  // at the same time.
  ChunkDataset(ChunkReader chunk_reader, ChunkSampler chunk_sampler, ExampleSampler example_sampler,
               ChunkDatasetOptions options, std::function<void(UnwrappedBatchType&)> preprocessing_policy = {})
      : chunk_reader_(std::move(chunk_reader)),
        chunk_sampler_(std::move(chunk_sampler)),
        example_sampler_(std::move(example_sampler)),
        options_(std::move(options)),
        preprocessing_policy_(std::move(preprocessing_policy)) {}
  ~ChunkDataset() override { stop(); }

  // Throws ValueError if that is not the batch size of the options.
  BatchType get_batch(size_t batch_size) override {
    RUSH_CHECK_VALUE(batch_size == options_.batch_size(), "ChunkDataset: expected the batch size of its options, ",
                     options_.batch_size(), ", got ", batch_size);
    return get_batch();
  }
  // Waits for a batch. Throws a WorkerException in place of a chunk whose reading failed; the epoch goes on after it,
  // but when the threads themselves had no memory for what they had read.
  BatchType get_batch() {
    std::unique_lock<std::mutex> lock(mutex_);
    RUSH_CHECK(started_, "ChunkDataset: call reset() before get_batch()");
    batch_ready_.wait(lock, [this] { return !ready_.empty() || running_ == 0; });
    if (ready_.empty() && broken_) data::detail::throw_worker_exception(broken_);
    if (ready_.empty() && open_.empty()) return std::nullopt;
    if (ready_.empty()) ready_.push_back({std::exchange(open_, {}), nullptr});
    Ready next = std::move(ready_.front());
    ready_.pop_front();
    waiting_examples_ -= next.batch.size();
    draws_.take(next.batch.size());
    lock.unlock();
    space_ready_.notify_all();
    if (next.failure) data::detail::throw_worker_exception(next.failure);
    return std::move(next.batch);
  }

  // Starts an epoch and the threads that read ahead.
  void reset() override {
    stop();
    chunk_reader_.reset();
    chunk_sampler_.reset(chunk_reader_.chunk_count());
    start(0);
  }
  std::optional<size_t> size() const override { return std::nullopt; }
  // For set_epoch of a distributed sampler. Not while an epoch is read.
  ChunkSamplerType& chunk_sampler() { return chunk_sampler_; }

  void visit(StateFields& fields) override {
    detail::ChunkPosition position;
    if (fields.reading()) {
      stop();
    } else {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (started_) position = draws_.position(chunk_sampler_, example_sampler_);
      position.started = started_;
      position.used += skipped_;  // none of them is added yet
    }
    position.visit(fields);
    if (!fields.reading() || !position.started) return;
    chunk_sampler_.reset(chunk_reader_.chunk_count());
    example_sampler_.reset(0);
    chunk_sampler_.load_state_dict(position.chunks);
    example_sampler_.load_state_dict(position.examples);
    start(position.used);
  }

 private:
  // A batch, or what was thrown in its place.
  struct Ready {
    UnwrappedBatchType batch;
    std::exception_ptr failure;
  };

  // Ends the threads. What they have read is lost.
  void stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    space_ready_.notify_all();
    preloaders_.clear();
    started_ = stopping_ = false;
    broken_ = nullptr;
    skipped_ = 0;
  }

  // Starts the threads. The first `skipped` examples of the first draw were handed out before.
  void start(uint64_t skipped) {
    ready_.clear();
    open_ = {};
    waiting_examples_ = 0;
    draws_.clear();
    skipped_ = skipped;
    running_ = options_.preloader_count();
    started_ = true;
    try {
      while (preloaders_.size() < options_.preloader_count()) preloaders_.emplace_back([this] { preload(); });
    } catch (...) {  // no more threads to be had
      stop();
      throw;
    }
  }

  void preload() {
    const SerialLoopsGuard one_thread;  // the preloaders themselves are what runs in parallel
    try {
      read_ahead();
    } catch (...) {  // no memory for what was read: the others cannot go on without it
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!broken_) broken_ = std::current_exception();
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      --running_;
    }
    space_ready_.notify_all();
    batch_ready_.notify_all();
  }

  void read_ahead() {
    while (std::optional<detail::ChunkDraw> draw = draw_chunks()) {
      UnwrappedBatchType examples;
      if (!draw->failure) {
        try {
          examples = read(draw->chunks);
        } catch (...) {
          draw->failure = std::current_exception();
        }
      }
      if (!add(*draw, std::move(examples))) break;
      if (draw->last) break;
    }
  }

  // Nothing when all are drawn. A sampler that fails ends the epoch.
  std::optional<detail::ChunkDraw> draw_chunks() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_ || broken_ || draws_.ended()) return std::nullopt;
    return draws_.next(chunk_sampler_, options_.cross_chunk_shuffle_count());
  }

  UnwrappedBatchType read(const std::vector<size_t>& chunks) {
    UnwrappedBatchType examples = chunk_reader_.read_chunk(chunks.front());
    for (size_t i = 1; i < chunks.size(); ++i) {
      UnwrappedBatchType more = chunk_reader_.read_chunk(chunks[i]);
      examples.insert(examples.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    }
    if (preprocessing_policy_) preprocessing_policy_(examples);
    return examples;
  }

  // Waits for this draw's turn and for space. Returns whether the epoch goes on.
  bool add(detail::ChunkDraw& draw, UnwrappedBatchType examples) {
    std::unique_lock<std::mutex> lock(mutex_);
    space_ready_.wait(lock, [&] {
      return stopping_ || broken_ || (draws_.is_turn_of(draw.number) && waiting_examples_ < options_.cache_size());
    });
    if (stopping_ || broken_) return false;
    std::exception_ptr failure = std::move(draw.failure);  // no copy stays in this thread
    std::vector<size_t> order;
    try {
      if (!failure) order = draws_.shuffle(draw.number, example_sampler_, examples.size());
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) ready_.push_back({{}, std::move(failure)});
    const size_t skipped = std::min<size_t>(std::exchange(skipped_, 0), order.size());
    draws_.add(draw.number, order.size(), skipped);
    for (size_t i = skipped; i < order.size(); ++i) {
      open_.push_back(std::move(examples[order[i]]));
      if (open_.size() == options_.batch_size()) ready_.push_back({std::exchange(open_, {}), nullptr});
    }
    waiting_examples_ += order.size() - skipped;
    lock.unlock();
    space_ready_.notify_all();
    batch_ready_.notify_all();
    return true;
  }

  ChunkReader chunk_reader_;
  ChunkSampler chunk_sampler_;
  ExampleSampler example_sampler_;
  ChunkDatasetOptions options_;
  std::function<void(UnwrappedBatchType&)> preprocessing_policy_;

  std::mutex mutex_;  // of all that follows, and of the samplers while the threads run
  rush::detail::Condition batch_ready_, space_ready_;
  std::deque<Ready> ready_;
  UnwrappedBatchType open_;      // a batch that is not full yet
  size_t waiting_examples_ = 0;  // in ready_ and open_
  detail::ChunkDraws draws_;
  uint64_t skipped_ = 0;
  size_t running_ = 0;
  bool stopping_ = false, started_ = false;
  std::exception_ptr broken_;  // what ended a thread, and with it the epoch
  std::vector<rush::detail::Thread> preloaders_;
};

}  // namespace rush::data::datasets
