// Graphs: work that is recorded once and then given to the device again and again, in one call each time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/device/guard.h"

namespace rush::graphs {

// Note [CUDA graphs]
// A training step of a small model is hundreds of launches of a few microseconds each, and the host cannot give them to
// a fast GPU quickly enough. While a stream is being captured, what it is given is not run but recorded, as a graph of
// kernels and copies with their arguments; replay() then runs all of it with one call. Nothing of the host's part is
// repeated: every kernel finds its tensors at the addresses that they had during the capture. So:
//   - what the graph reads lies in tensors that live as long as it, and new data is copied into them before a replay;
//   - what is allocated during a capture comes from a private pool, which is the graph's as long as it lives: no other
//     work gets that memory. Results lie there, and the next replay overwrites them. Graphs that are replayed in the
//     order in which they were captured, never at the same time, may share a pool;
//   - random numbers: kernels read seed and offset from two words in device memory. Each replay fills them from the
//     generator, which it advances as the same calls outside of a graph would: Note [Random numbers in graphs];
//   - numbers of the host's that change, such as learning rates, are kept on the device and brought up to date before a
//     replay by a ReplayHook;
//   - the host cannot wait for the device, since nothing runs. What would wait (item(), nonzero(), a copy to memory
//     that is not pinned, synchronize(), empty_cache()), and work on streams that have not waited for the captured one,
//     is refused with a CudaError that names the last operator, before CUDA sees it: the capture goes on undisturbed.
//
// These classes are part of every build; without a backend that records graphs they throw NotImplementedError. CUDA's
// names for them, cuda::CUDAGraph and the like, are in backends/cuda/devices.h.

// Names a private pool, as MemPool::id(); 0 means one of the graph's own.
using MempoolId_t = uint64_t;

// Which calls of CUDA's that are unsafe during a capture fail: those of any thread, those of the capturing thread, or
// none. cudaStreamCaptureMode's values.
enum class CaptureMode : int { Global = 0, ThreadLocal = 1, Relaxed = 2 };

// Something of the host's that a graph must be told of before it runs again.
struct ReplayHook {
  virtual ~ReplayHook() = default;
  // Work that it gives to the current stream comes before the graph's.
  virtual void before_replay() = 0;
};

// One graph, as the backend makes it.
class GraphImpl {
 public:
  virtual ~GraphImpl() = default;
  // As Graph's functions of these names do.
  virtual void capture_begin(MempoolId_t pool, CaptureMode mode) = 0;
  virtual void capture_end() = 0;
  // Ends a capture whose work is not wanted. Does nothing when there is none.
  virtual void abandon() noexcept = 0;
  virtual void replay() = 0;                                   // as Graph's
  virtual void reset() noexcept = 0;                           // as Graph's
  virtual MempoolId_t pool() const = 0;                        // as Graph's
  virtual size_t nodes() const = 0;                            // as Graph's
  virtual void debug_dump(const std::string& path) const = 0;  // as Graph's
};

// What a backend knows about graphs, see Backend::graph_runtime.
class GraphRuntime {
 public:
  virtual ~GraphRuntime() = default;
  virtual std::unique_ptr<GraphImpl> make_graph() = 0;  // without any work
  virtual MempoolId_t make_pool_id() = 0;               // another one at each call
  // Whether this thread is capturing.
  virtual bool is_capturing() const = 0;
  virtual void before_replay(std::shared_ptr<ReplayHook> hook) = 0;  // each of the graph that this thread captures
  // A stream of the current device for captures alone; where threads capture at the same time, each has its own.
  virtual Stream side_stream() = 0;
};

// The type of device whose work graphs record. Throws NotImplementedError where there is none.
DeviceType accelerator();
// Called by register_backend for a backend that has a GraphRuntime.
void set_accelerator(DeviceType type);

// torch.cuda.CUDAGraph. Its functions throw Error when they are called out of order: a graph is captured, replayed as
// often as wanted, and reset before it is captured again.
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;

  // Begins to record the current stream, which must not be the default one. A thread records one graph at a time.
  void capture_begin(MempoolId_t pool = 0, CaptureMode mode = CaptureMode::Global);
  // Ends it, on the same thread. Throws CudaError when CUDA found something that cannot be recorded; the graph is then
  // as before capture_begin.
  void capture_end();
  // Ends it without a graph. Does nothing outside of a capture.
  void abandon() noexcept;
  // Runs the graph on the current stream, of the device that it was captured on.
  void replay();
  // Frees the graph, and its pool unless other graphs or tensors use it.
  void reset();
  // The pool that it was given, or its own. Throws Error before a capture.
  MempoolId_t pool() const;
  // How many kernels, copies and the like a replay is. Throws Error before a capture.
  size_t nodes() const;
  // Writes the nodes as a GraphViz file. Throws Error before a capture, CudaError if the file cannot be written.
  void debug_dump(const std::string& path) const;

 private:
  std::unique_ptr<GraphImpl> impl_;
};

// A pool for several graphs, see Graph::capture_begin. torch.cuda.graph_pool_handle.
MempoolId_t make_pool_id();

// Whether what this thread gives to the GPU is being recorded by a Graph. Captures begun with
// calls of CUDA's own are not seen. torch.cuda.is_current_stream_capturing.
bool is_capturing();
// The stream that this thread is capturing; one that is no queue when it is not.
Stream capturing_stream();

// Calls `hook` before each replay of the graph that this thread is capturing. Throws Error outside of a capture.
void before_replay(std::shared_ptr<ReplayHook> hook);

// A stream of the current device to capture on: this thread's alone, and the same one at each call.
Stream capture_stream();

// Captures what is done until the end of the scope, on `stream` (by default capture_stream()):
//   { const rush::graphs::Capture capture(g); y = net(x); }
// The device is waited for first. When the scope is left by an exception, the graph stays as it was; otherwise the
// destructor throws what capture_end throws. torch.cuda.graph.
class Capture {
 public:
  explicit Capture(Graph& captured, MempoolId_t pool = 0, std::optional<Stream> stream = std::nullopt,
                   CaptureMode mode = CaptureMode::Global);
  ~Capture() noexcept(false);
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  Graph& graph_;
  StreamGuard on_stream_;
  int exceptions_;  // in flight when the scope began
};

}  // namespace rush::graphs
