#include "nn/data/worker_info.h"

namespace rush::data {
namespace {

thread_local const detail::BatchScope* current = nullptr;

constexpr uint64_t kWordsPerBatch = uint64_t{1} << 32;  // of every subsequence

}  // namespace

namespace detail {

uint64_t draw_seed(const Generator& generator) {
  Philox4x32 words = philox_sequence((generator.defined() ? generator : default_generator()).reserve(2), 0);
  const uint32_t upper = words();
  return join_words(upper, words());
}

BatchScope::BatchScope(uint64_t epoch_seed, uint64_t number, std::optional<WorkerInfo> worker)
    : worker_(worker), generator_(make_generator<CPUGeneratorImpl>(epoch_seed)), outer_(current) {
  generator_.set_offset(number * kWordsPerBatch);
  current = this;
}

BatchScope::~BatchScope() { current = outer_; }

}  // namespace detail

const WorkerInfo* get_worker_info() { return current && current->worker_ ? &*current->worker_ : nullptr; }

const Generator& batch_generator() { return current ? current->generator_ : default_generator(); }

}  // namespace rush::data
