// What a dataset can ask of the DataLoader that is calling it: which worker this is, and a random stream of its own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/device/generator.h"

namespace rush::data {

/// A worker thread. Mirrors torch.utils.data.get_worker_info.
struct WorkerInfo {
  size_t id;           ///< from 0 to num_workers - 1
  size_t num_workers;  ///< of this loader
  uint64_t seed;       ///< this worker's of this epoch: the epoch's seed + id
};

/// The worker that the calling thread is, while it loads a batch; null in any other thread.
const WorkerInfo* get_worker_info();

/// The generator to draw from while a batch is loaded. Each batch has a range of its own in the stream of the epoch's
/// seed, so that what is drawn depends neither on the number of workers nor on which of them loads the batch. Outside
/// of a DataLoader, the CPU's default generator.
const Generator& batch_generator();

namespace detail {

/// Draws the seed of an epoch from `generator`, or from the default one where that is undefined.
uint64_t draw_seed(const Generator& generator);

/// The index that the calling thread's dataset is asked for, while it loads a batch; none once it has given all. Errors
/// tell it.
void note_index(std::optional<size_t> index);

/// An empty dataset is an error where it is to be shuffled, as in PyTorch, and else a warning.
void check_not_empty(size_t size, bool shuffled);

/// Throws ValueError for a negative number that became a size, and warns of more workers than the machine has
/// processors.
void check_workers(size_t workers);

/// For as long as it lives, the calling thread loads batch `number` of an epoch: in a worker, if there is one.
class BatchScope {
 public:
  BatchScope(uint64_t epoch_seed, uint64_t number, std::optional<WorkerInfo> worker = std::nullopt);
  ~BatchScope();
  /// "worker 2, batch 5, index 17", as far as known.
  std::string place() const;
  BatchScope(const BatchScope&) = delete;
  BatchScope& operator=(const BatchScope&) = delete;

 private:
  friend const WorkerInfo* data::get_worker_info();
  friend const Generator& data::batch_generator();
  friend void note_index(std::optional<size_t> index);

  uint64_t number_;
  std::optional<size_t> index_;
  std::optional<WorkerInfo> worker_;
  Generator generator_;
  BatchScope* outer_;
};

}  // namespace detail

}  // namespace rush::data
