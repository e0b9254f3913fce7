#include "backends/cuda/graphs/graph.h"

#include <mutex>
#include <utility>

#include "backends/cuda/check.h"
#include "backends/cuda/graphs/replay_words.h"
#include "backends/cuda/memory/caching_allocator.h"
#include "backends/cuda/memory/memory.h"
#include "backends/cuda/outside_capture.h"
#include "backends/cuda/register.h"
#include "backends/cuda/stream/current_stream.h"
#include "backends/cuda/stream/stream.h"
#include "backends/cuda/thread_state.h"
#include "core/dispatch/key.h"
#include "core/dispatch/op.h"
#include "core/profiler/record.h"

namespace rush::cuda {

namespace {

std::string last_operator() {
  const OpBase* op = dispatch_state.device_op;
  return op ? str(" (the last operator was ", op->name(), ")") : std::string();
}

}  // namespace

void throw_cannot_be_captured(const char* what) {
  RUSH_THROW(CudaError, "CUDA graph: ", what, " cannot be captured", last_operator());
}

void throw_outside_of_capture(const char* what) {
  RUSH_THROW(CudaError, "CUDA graph: ", what,
             " on a stream that has not waited for the captured one cannot be captured", last_operator());
}

GraphGenerator::GraphGenerator(GeneratorImpl& drawn)
    : owner(intrusive_ptr<GeneratorImpl>::share(&drawn)),
      position(drawn.device(), kDefaultSeed),
      words(2 * sizeof(uint64_t)) {}

// ---- capture ----

void Graph::capture_begin(graphs::MempoolId_t pool, graphs::CaptureMode mode) {
  RUSH_CHECK(pool_ == 0, "CUDAGraph: capture_begin() of a graph that was captured; reset() it first");
  RUSH_CHECK(!current_capture, "CUDAGraph: this thread is capturing a graph already");
  const cudaStream_t stream = current_stream();
  RUSH_CHECK(stream, "CUDAGraph: the default stream cannot be captured; make another one current (CUDAStreamGuard)");
  RUSH_CHECK_NOT_IMPLEMENTED(uses_caching_allocator(),
                             "CUDAGraph: graphs need the caching allocator, and another allocator is in use");
  device_ = thread_state.device;
  stream_ = stream;
  pool_ = pool != 0 ? pool : make_pool_id();
  device_allocator(device_).make_group(pool_);
  device_allocator(device_).set_capturing(true);
  outer_pool_ = active_pool;
  active_pool = {device_, pool_};
  current_capture = this;
  ++captures_under_way;
  no_waits_ = std::shared_lock(captures_of(device_));
  const cudaError_t status = cudaStreamBeginCapture(stream_, static_cast<cudaStreamCaptureMode>(mode));
  if (status == cudaSuccess) return;
  leave_capture();
  reset();
  throw_error(status, "cudaStreamBeginCapture(stream)");
}

void Graph::leave_capture() {
  current_capture = nullptr;
  --captures_under_way;
  no_waits_.unlock();
  active_pool = outer_pool_;
  events_.clear();
  device_allocator(device_).set_capturing(false);
}

void Graph::capture_end() {
  RUSH_CHECK(is_capturing(), "CUDAGraph: capture_end() without a capture_begin() on this thread");
  const cudaError_t status = cudaStreamEndCapture(stream_, &graph_);
  try {
    leave_capture();
    if (status != cudaSuccess) throw_error(status, "cudaStreamEndCapture(stream)");
    RUSH_CHECK_AS(CudaError, graph_, "CUDAGraph: the capture was lost: CUDA returned no graph");
    RUSH_CUDA_CHECK(cudaGraphInstantiate(&exec_, graph_, 0));
  } catch (...) {
    reset();
    throw;
  }
}

void Graph::abandon() noexcept {
  if (!is_capturing()) return;
  // Whatever it says, the stream is no longer captured.
  if (cudaStreamEndCapture(stream_, &graph_) != cudaSuccess) cudaGetLastError();
  try {
    leave_capture();
  } catch (const Error&) {
    // A kernel has failed for good, and the next call will say so.
  }
  reset();
}

bool Graph::takes_part(cudaStream_t stream) const {
  if (stream == stream_) return true;
  if (!stream) return false;  // the default stream never does, and asking for its status is an error meanwhile
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0, captured_id = 0;
  RUSH_CUDA_CHECK(cudaStreamGetCaptureInfo(stream, &status, &id));
  if (status != cudaStreamCaptureStatusActive) return false;
  RUSH_CUDA_CHECK(cudaStreamGetCaptureInfo(stream_, &status, &captured_id));
  return id == captured_id;
}

GraphGenerator* Graph::known(const GeneratorImpl& generator) const {
  for (const auto& each : generators_) {
    if (&each->generator() == &generator) return each.get();
  }
  return nullptr;
}

GraphGenerator& Graph::made_known(GeneratorImpl& generator) {
  if (GraphGenerator* drawn = known(generator)) return *drawn;
  // Its words are written before the graph runs, so their memory may not have served the graph for something else.
  const OutsideCapture relaxed;
  return *generators_.emplace_back(std::make_unique<GraphGenerator>(generator));
}

PhiloxState Graph::reserve(GeneratorImpl& generator, uint64_t increments) {
  GraphGenerator& drawn = made_known(generator);
  const PhiloxState taken = drawn.position.GeneratorImpl::reserve(increments);
  return {0, taken.offset, drawn.words.as<uint64_t>()};
}

uint64_t Graph::position_of(const GeneratorImpl& generator) const {
  const GraphGenerator* drawn = known(generator);
  return drawn ? drawn->position.get_offset() : 0;
}

void Graph::set_position(GeneratorImpl& generator, uint64_t position) {
  if (position != position_of(generator)) made_known(generator).position.GeneratorImpl::set_offset(position);
}

void Graph::keep(const StorageImpl& storage) { kept_.push_back(Storage::share(const_cast<StorageImpl*>(&storage))); }

void Graph::recorded(void* event, cudaStream_t stream) {
  if (takes_part(stream)) {
    events_.insert(event);
  } else {
    events_.erase(event);
  }
}

// ---- replay ----

void Graph::replay() {
  check_not_capturing("the replay of a graph");
  RUSH_CHECK(exec_, "CUDAGraph: replay() of a graph that was not captured");
  const record_function range("CUDAGraph::replay");
  const DeviceGuard guard(Device(kCUDA, device_));
  const Stream now{Device(kCUDA, device_), current_stream()};
  // The last replay may still be reading the words.
  if (last_replay_ && !(*last_replay_ == now)) wait_stream(now, *last_replay_);
  last_replay_ = now;
  for (const auto& hook : hooks_) hook->before_replay();
  for (const auto& each : generators_) {
    PhiloxState start{};
    {
      const std::lock_guard lock(each->generator().mutex_);
      start = each->generator().reserve(each->position.get_offset());
    }
    set_replay_words(each->words.as<uint64_t>(), start.seed, start.offset, current_stream());
  }
  RUSH_CUDA_CHECK(cudaGraphLaunch(exec_, current_stream()));
}

void Graph::reset() noexcept {
  if (is_capturing()) return abandon();
  if (exec_ && cudaGraphExecDestroy(exec_) != cudaSuccess) cudaGetLastError();
  if (graph_ && cudaGraphDestroy(graph_) != cudaSuccess) cudaGetLastError();
  exec_ = nullptr;
  graph_ = nullptr;
  generators_.clear();
  hooks_.clear();
  kept_.clear();
  last_replay_.reset();
  if (pool_ == 0) return;
  try {
    device_allocator(device_).release_group(std::exchange(pool_, 0));
  } catch (const Error&) {
    // A kernel has failed for good, and the next call will say so.
  }
}

graphs::MempoolId_t Graph::pool() const {
  RUSH_CHECK(pool_ != 0, "CUDAGraph: pool() of a graph that was not captured");
  return pool_;
}

size_t Graph::nodes() const {
  RUSH_CHECK(graph_, "CUDAGraph: nodes() of a graph that was not captured");
  size_t count = 0;
  RUSH_CUDA_CHECK(cudaGraphGetNodes(graph_, nullptr, &count));
  return count;
}

void Graph::debug_dump(const std::string& path) const {
  RUSH_CHECK(graph_, "CUDAGraph: debug_dump() of a graph that was not captured");
  RUSH_CUDA_CHECK(cudaGraphDebugDotPrint(graph_, path.c_str(), cudaGraphDebugDotFlagsVerbose));
}

// ---- for core ----

namespace {

class Runtime final : public graphs::GraphRuntime {
 public:
  std::unique_ptr<graphs::GraphImpl> make_graph() override { return std::make_unique<Graph>(); }
  graphs::MempoolId_t make_pool_id() override { return cuda::make_pool_id(); }
  bool is_capturing() const override { return current_capture != nullptr; }
  void before_replay(std::shared_ptr<graphs::ReplayHook> hook) override { current_capture->add_hook(std::move(hook)); }
  Stream side_stream() override { return cuda::side_stream().unwrap(); }
};

}  // namespace

graphs::GraphRuntime& graph_runtime() {
  static auto& runtime = *new Runtime;  // never destroyed: graphs in static variables are
  return runtime;
}

}  // namespace rush::cuda
