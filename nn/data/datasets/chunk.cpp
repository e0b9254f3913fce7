#include "nn/data/datasets/chunk.h"

#include <algorithm>

namespace rush::data::datasets {

ChunkDatasetOptions::ChunkDatasetOptions(size_t preloader_count, size_t batch_size, size_t cache_size,
                                         size_t cross_chunk_shuffle_count)
    : preloader_count_(preloader_count),
      batch_size_(batch_size),
      cache_size_(cache_size),
      cross_chunk_shuffle_count_(cross_chunk_shuffle_count) {
  RUSH_CHECK_VALUE(preloader_count > 0, "ChunkDatasetOptions: expected at least one preloader, got 0");
  RUSH_CHECK_VALUE(batch_size > 0, "ChunkDatasetOptions: expected a positive batch size, got 0");
  RUSH_CHECK_VALUE(cache_size >= batch_size, "ChunkDatasetOptions: expected a cache that holds a batch of ", batch_size,
                   ", got a cache size of ", cache_size);
  RUSH_CHECK_VALUE(cross_chunk_shuffle_count > 0,
                   "ChunkDatasetOptions: expected a positive cross_chunk_shuffle_count, got 0");
}

namespace detail {

static std::optional<StateDict> state_if_any(samplers::Sampler<>& sampler) {
  try {
    return sampler.state_dict();
  } catch (const NotImplementedError&) {
    return std::nullopt;
  }
}

void ChunkPosition::visit(StateFields& fields) {
  fields("started", started);
  if (!started) return;
  fields.count("used", used);
  {
    const StateFields::Scope scope(fields, "chunk_sampler.");
    fields.part(chunks);
  }
  const StateFields::Scope scope(fields, "example_sampler.");
  fields.part(examples);
}

std::optional<ChunkDraw> ChunkDraws::next(samplers::Sampler<>& chunk_sampler, size_t count) {
  Open open{state_if_any(chunk_sampler), std::nullopt, std::nullopt, 0};
  ChunkDraw draw{first_open_ + open_.size(), {}, nullptr, false};
  try {
    std::optional<std::vector<size_t>> chunks = chunk_sampler.next(count);
    ended_ = !chunks || chunks->empty();
    if (ended_) return std::nullopt;
    draw.chunks = std::move(*chunks);
  } catch (...) {
    draw.failure = std::current_exception();
    draw.last = ended_ = true;
  }
  open_.push_back(std::move(open));
  return draw;
}

std::vector<size_t> ChunkDraws::shuffle(uint64_t number, samplers::Sampler<>& example_sampler, size_t examples) {
  example_sampler.reset(0);  // so that its state does not depend on the number of the examples before
  open_[number - first_open_].examples = state_if_any(example_sampler);
  if (examples == 0) return {};
  example_sampler.reset(examples);
  std::vector<size_t> order = example_sampler.next(examples).value_or(std::vector<size_t>());
  std::vector<bool> seen(examples);
  for (const size_t i : order) {
    RUSH_CHECK_INDEX(i < examples && !seen[i], "ChunkDataset: the example sampler gave ", i,
                     i < examples ? " twice" : " of " + std::to_string(examples) + " examples");
    seen[i] = true;
  }
  return order;
}

void ChunkDraws::add(uint64_t number, uint64_t examples, uint64_t used) {
  Open& open = open_[number - first_open_];
  open.added = examples;
  open.used = used;
  ++next_added_;
  drop_used();
}

void ChunkDraws::take(uint64_t examples) {
  while (examples > 0) {
    Open& front = open_.front();
    const uint64_t taken = std::min(examples, *front.added - front.used);
    front.used += taken;
    examples -= taken;
    drop_used();
  }
}

void ChunkDraws::drop_used() {
  while (!open_.empty() && open_.front().added == open_.front().used) {
    open_.pop_front();
    ++first_open_;
  }
}

ChunkPosition ChunkDraws::position(samplers::Sampler<>& chunk_sampler, samplers::Sampler<>& example_sampler) const {
  std::optional<StateDict> chunks = open_.empty() ? state_if_any(chunk_sampler) : open_.front().chunks;
  std::optional<StateDict> examples;
  if (open_.empty() || !open_.front().added) {  // shuffled nothing since
    example_sampler.reset(0);
    examples = state_if_any(example_sampler);
  } else {
    examples = open_.front().examples;
  }
  RUSH_CHECK_NOT_IMPLEMENTED(chunks && examples, "ChunkDataset: it has no state dict, because the ",
                             chunks ? "example" : "chunk", " sampler has none");
  ChunkPosition position;
  position.chunks = std::move(*chunks);
  position.examples = std::move(*examples);
  position.used = open_.empty() ? 0 : open_.front().used;
  return position;
}

}  // namespace detail

}  // namespace rush::data::datasets
