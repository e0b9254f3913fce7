// The graphs of core/graphs/graph.h, by the CUDA runtime.
#pragma once
#include <cuda_runtime_api.h>

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "backends/cuda/generator.h"
#include "backends/cuda/graphs/capture.h"
#include "backends/cuda/memory/active_pool.h"
#include "backends/cuda/memory/scratch.h"
#include "core/graphs/graph.h"

namespace rush::cuda {

// Note [Random numbers in graphs]
// A kernel outside of a graph is given the seed and its offset by value. In a graph these would be the same at every
// replay, so it is given a pointer to two words of device memory and an offset that counts from there (PhiloxState).
// The graph remembers how far its calls went from its beginning. A replay takes as much from the generator, as one call
// of reserve, and writes the seed and the offset that it got into the words before the graph runs: the numbers are
// those that the same calls would have drawn outside of a graph, and seeding works between replays. A generator cannot
// be seeded during a capture. Its state is then how far the calls have come, which a checkpoint goes back to.
struct GraphGenerator {
  explicit GraphGenerator(GeneratorImpl& drawn);
  GeneratorImpl& generator() const { return *owner; }

  intrusive_ptr<GeneratorImpl> owner;
  CUDAGeneratorImpl position;  // counts the words that the graph's calls take
  Scratch words;
};

class Graph final : public graphs::GraphImpl, private Capture {
 public:
  Graph() = default;
  ~Graph() override { reset(); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void capture_begin(graphs::MempoolId_t pool, graphs::CaptureMode mode) override;
  void capture_end() override;
  void abandon() noexcept override;
  void replay() override;
  void reset() noexcept override;
  graphs::MempoolId_t pool() const override;
  size_t nodes() const override;
  void debug_dump(const std::string& path) const override;

 private:
  bool is_capturing() const { return current_capture == this; }
  // Null where no call has drawn from it.
  GraphGenerator* known(const GeneratorImpl& generator) const;
  GraphGenerator& made_known(GeneratorImpl& generator);
  // What capture_begin changed for the thread and the allocator is put back.
  void leave_capture();

  int device() const override { return device_; }
  bool takes_part(cudaStream_t stream) const override;
  PhiloxState reserve(GeneratorImpl& generator, uint64_t increments) override;
  uint64_t position_of(const GeneratorImpl& generator) const override;
  void set_position(GeneratorImpl& generator, uint64_t position) override;
  void keep(const StorageImpl& storage) override;
  void add_hook(std::shared_ptr<graphs::ReplayHook> hook) override { hooks_.push_back(std::move(hook)); }
  void recorded(void* event, cudaStream_t stream) override;
  void destroyed(const void* event) override { events_.erase(event); }
  bool has_event(const void* event) const override { return events_.count(event) > 0; }

  int device_ = -1;
  cudaStream_t stream_ = nullptr;  // the captured one
  graphs::MempoolId_t pool_ = 0;   // 0: nothing has been captured
  ActivePool outer_pool_;
  std::unordered_set<const void*> events_;  // recorded in the graph
  std::vector<std::unique_ptr<GraphGenerator>> generators_;
  std::vector<std::shared_ptr<graphs::ReplayHook>> hooks_;
  std::vector<Storage> kept_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  std::optional<Stream> last_replay_;
  std::shared_lock<std::shared_mutex> no_waits_;  // during the capture: see captures_of
};

// The backend's.
graphs::GraphRuntime& graph_runtime();

}  // namespace rush::cuda
