#pragma once
#include <chrono>
#include <cstddef>
#include <optional>

#include "core/device/generator.h"
#include "nn/arg.h"

namespace rush::data {

/// How large the batches of a DataLoader are, and how workers load them.
struct DataLoaderOptions {
  DataLoaderOptions() = default;
  DataLoaderOptions(size_t batch_size) : batch_size_(batch_size) {}
  RUSH_ARG(size_t, batch_size) = 1;
  // Threads that load batches ahead of the caller; without any, a batch is loaded when it is asked for.
  RUSH_ARG(size_t, workers) = 0;
  // How many batches are loaded ahead at most. Default: twice the workers.
  RUSH_ARG(std::optional<size_t>, max_jobs) = std::nullopt;
  // How long to wait for a batch of a worker before a TimeoutError. The wait may be taken up again.
  RUSH_ARG(std::optional<std::chrono::milliseconds>, timeout) = std::nullopt;
  // Batches come in the sampler's order; otherwise as they are ready.
  RUSH_ARG(bool, enforce_ordering) = true;
  // Leaves out a last batch that is smaller than the others. Not for stateful datasets, whose batches have any size.
  RUSH_ARG(bool, drop_last) = false;
  // Where every epoch draws the seed of its workers, and of batch_generator(). By default the CPU's default generator.
  RUSH_ARG(Generator, generator) = Generator();
};

/// What a loader goes by. Mirrors torch::data::FullDataLoaderOptions.
struct FullDataLoaderOptions {
  explicit FullDataLoaderOptions(const DataLoaderOptions& options)
      : batch_size(options.batch_size()),
        workers(options.workers()),
        max_jobs(options.max_jobs().value_or(2 * workers)),
        timeout(options.timeout()),
        enforce_ordering(options.enforce_ordering()),
        drop_last(options.drop_last()) {}

  size_t batch_size, workers, max_jobs;
  std::optional<std::chrono::milliseconds> timeout;
  bool enforce_ordering, drop_last;
};

}  // namespace rush::data
