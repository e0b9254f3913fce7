// How a ChunkDataset keeps the order of its chunks, and knows which example is the next.
#pragma once
#include <deque>
#include <exception>
#include <optional>
#include <vector>

#include "nn/data/samplers.h"

namespace rush::data::datasets::detail {

/// A position in an epoch of chunks.
struct ChunkPosition {
  void visit(StateFields& fields);

  bool started = false;        // if not, there is nothing else
  StateDict chunks, examples;  // the samplers', before they drew and shuffled the chunk
  uint64_t used = 0;           // examples of it that were handed out
};

/// Chunks to be read together.
struct ChunkDraw {
  uint64_t number;
  std::vector<size_t> chunks;
  std::exception_ptr failure;  // of the sampler
  bool last = false;
};

/// The draws of an epoch whose examples were not all handed out. Draws are added in their order, and examples taken in
/// it.
class ChunkDraws {
 public:
  void clear() { *this = ChunkDraws(); }

  /// Draws `count` chunks. Nothing after the last.
  std::optional<ChunkDraw> next(samplers::Sampler<>& chunk_sampler, size_t count);
  bool ended() const { return ended_; }
  bool is_turn_of(uint64_t number) const { return number == next_added_; }
  /// The order of the examples of a draw whose turn it is. Throws IndexError if the sampler gives others.
  std::vector<size_t> shuffle(uint64_t number, samplers::Sampler<>& example_sampler, size_t examples);
  /// They are waiting to be taken, apart from the first `used`.
  void add(uint64_t number, uint64_t examples, uint64_t used);
  void take(uint64_t examples);

  /// The place of the next example. Throws NotImplementedError if a sampler has no state dict.
  ChunkPosition position(samplers::Sampler<>& chunk_sampler, samplers::Sampler<>& example_sampler) const;

 private:
  struct Open {
    std::optional<StateDict> chunks, examples;  // empty: the sampler has none
    std::optional<uint64_t> added;              // how many examples
    uint64_t used = 0;
  };
  void drop_used();

  std::deque<Open> open_;
  uint64_t first_open_ = 0, next_added_ = 0;
  bool ended_ = false;
};

}  // namespace rush::data::datasets::detail
