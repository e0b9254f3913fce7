#include "core/graphs/graph.h"

#include <atomic>
#include <exception>

#include "core/device/cuda.h"
#include "core/error/error.h"

namespace rush::cuda {

namespace detail {

namespace {
std::atomic<GraphRuntime*> runtime_in_use;
}

void set_graph_runtime(GraphRuntime* runtime) { runtime_in_use.store(runtime, std::memory_order_release); }

GraphRuntime& graph_runtime() {
  device_runtime(kCUDA);  // throws where there is no backend, and no device
  return *runtime_in_use.load(std::memory_order_acquire);
}

}  // namespace detail

CUDAGraph::CUDAGraph() : impl_(detail::graph_runtime().make_graph()) {}
CUDAGraph::~CUDAGraph() = default;
CUDAGraph::CUDAGraph(CUDAGraph&&) noexcept = default;
CUDAGraph& CUDAGraph::operator=(CUDAGraph&&) noexcept = default;

void CUDAGraph::capture_begin(MempoolId_t pool, CaptureMode mode) { impl_->capture_begin(pool, mode); }
void CUDAGraph::capture_end() { impl_->capture_end(); }
void CUDAGraph::abandon() noexcept { impl_->abandon(); }
void CUDAGraph::replay() { impl_->replay(); }
void CUDAGraph::reset() { impl_->reset(); }
MempoolId_t CUDAGraph::pool() const { return impl_->pool(); }
void CUDAGraph::debug_dump(const std::string& path) const { impl_->debug_dump(path); }

MempoolId_t graph_pool_handle() { return detail::graph_runtime().make_pool_id(); }

bool is_current_stream_capturing() {
  // Asks nothing of the driver: programs on the CPU call it too, in every step of an optimiser.
  const detail::GraphRuntime* runtime = detail::runtime_in_use.load(std::memory_order_acquire);
  return runtime && runtime->is_capturing();
}

void before_replay(std::shared_ptr<ReplayHook> hook) {
  RUSH_CHECK(is_current_stream_capturing(), "before_replay: this thread is not capturing a graph");
  detail::graph_runtime().before_replay(std::move(hook));
}

Stream capture_stream() { return detail::graph_runtime().side_stream(); }

graph::graph(CUDAGraph& captured, MempoolId_t pool, std::optional<Stream> stream, CaptureMode mode)
    : graph_(captured), on_stream_(stream ? *stream : capture_stream()), exceptions_(std::uncaught_exceptions()) {
  synchronize();
  graph_.capture_begin(pool, mode);
}

graph::~graph() noexcept(false) {
  if (std::uncaught_exceptions() > exceptions_) {
    graph_.abandon();
  } else {
    graph_.capture_end();
  }
}

}  // namespace rush::cuda
