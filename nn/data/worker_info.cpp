#include "nn/data/worker_info.h"

#include <thread>

#include "core/error/warning.h"

namespace rush::data {
namespace {

constinit thread_local detail::BatchScope* current = nullptr;

constexpr uint64_t kWordsPerBatch = uint64_t{1} << 32;  // of every subsequence

}  // namespace

namespace detail {

uint64_t draw_seed(const Generator& generator) {
  Generator source = generator.defined() ? generator : default_generator();
  // libtorch's loader draws no seed: what the program draws next must not change.
  if (source.mt19937()) source = source.clone();
  Philox4x32 words = philox_sequence(source.reserve(2), 0);
  const uint32_t upper = words();
  return join_words(upper, words());
}

BatchScope::BatchScope(uint64_t epoch_seed, uint64_t number, std::optional<WorkerInfo> worker)
    : number_(number), worker_(worker), generator_(make_generator<CPUGeneratorImpl>(epoch_seed)), outer_(current) {
  generator_.set_offset(number * kWordsPerBatch);
  current = this;
}

BatchScope::~BatchScope() { current = outer_; }

std::string BatchScope::place() const {
  return str(worker_ ? str("worker ", worker_->id, ", ") : "", "batch ", number_,
             index_ ? str(", index ", *index_) : "");
}

void note_index(std::optional<size_t> index) {
  if (current) current->index_ = index;
}

void check_not_empty(size_t size, bool shuffled) {
  if (size > 0) return;
  RUSH_CHECK_VALUE(!shuffled, "make_data_loader: the dataset is empty, there is nothing to draw from");
  RUSH_WARN_ONCE_PER_CALLER("make_data_loader: the dataset is empty, its loader has no batches");
}

void check_workers(size_t workers) {
  const auto given = static_cast<std::ptrdiff_t>(workers);
  RUSH_CHECK_VALUE(given >= 0, "DataLoader: the number of workers must be at least 0, got ", given);
  const size_t processors = std::thread::hardware_concurrency();  // 0 where it is not known
  if (processors > 0 && workers > processors) {
    RUSH_WARN_ONCE_PER_CALLER("DataLoader: ", workers, " workers on a machine of ", processors,
                              " processors take time from each other and from the caller");
  }
}

}  // namespace detail

const WorkerInfo* get_worker_info() { return current && current->worker_ ? &*current->worker_ : nullptr; }

const Generator& batch_generator() { return current ? current->generator_ : default_generator(); }

}  // namespace rush::data
