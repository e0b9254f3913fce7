// The processes that train together, where mpirun or `./rush launch` has started several.
#pragma once
#include <cstdint>

#include "core/error/error.h"
#include "core/tensor.h"

namespace examples {

/// One program's part in them. Alone, it is the first of one.
class Processes {
 public:
  /// Joins the others: by NCCL where they train on `device`, a GPU, and each has one of its own, by MPI otherwise. What
  /// this process prints goes nowhere, unless it is the first. Throws rush::DistributedError.
  explicit Processes(rush::Device device);
  /// Leaves, unless an exception ends the program: then the others are ended.
  ~Processes();
  Processes(const Processes&) = delete;

  int64_t count() const { return count_; }
  bool is_first() const { return rank_ == 0; }

  /// Leaves a run's files to the first process.
  template <class Settings>
  void leave_files_to_the_first(Settings& settings) const {
    if (!is_first()) settings.out_dir = settings.json_file = settings.log.logdir = "";
  }
  /// Calls begin() on the first process, and then on the others, which may read what it has written.
  template <class Begin>
  void begin(const Begin& begin) const {
    if (!is_first()) wait();
    begin();
    if (is_first()) wait();
  }
  /// Throws rush::ValueError unless batches of so many can be split evenly.
  void check_batch(int64_t batch_size) const;

  /// This process's rows of a batch that all have.
  rush::Tensor rows(const rush::Tensor& batch) const;
  /// The mean over the processes, on each of them.
  rush::Tensor mean(const rush::Tensor& numbers) const;
  /// Whether `here` is true on any of them, which all learn.
  bool any(bool here) const;

 private:
  void wait() const;  // for all

  const rush::Device device_;
  int64_t rank_ = 0, count_ = 1;
};

}  // namespace examples
