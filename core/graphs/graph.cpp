#include "core/graphs/graph.h"

#include <atomic>
#include <exception>

#include "core/device/backend.h"
#include "core/dispatch/registry.h"
#include "core/error/error.h"

namespace rush::graphs {

namespace {

std::atomic<DeviceType> recorder = kCPU;  // which stands for none

GraphRuntime& runtime() { return *backend_of(accelerator()).graph_runtime(); }

}  // namespace

void set_accelerator(DeviceType type) { recorder.store(type, std::memory_order_release); }

DeviceType accelerator() {
  registry();  // where backends are registered
  const DeviceType type = recorder.load(std::memory_order_acquire);
  RUSH_CHECK_NOT_IMPLEMENTED(type != kCPU, "graphs: this program was built without a backend that records them");
  return type;
}

Graph::Graph() : impl_(runtime().make_graph()) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

void Graph::capture_begin(MempoolId_t pool, CaptureMode mode) { impl_->capture_begin(pool, mode); }
void Graph::capture_end() { impl_->capture_end(); }
void Graph::abandon() noexcept { impl_->abandon(); }
void Graph::replay() { impl_->replay(); }
void Graph::reset() { impl_->reset(); }
MempoolId_t Graph::pool() const { return impl_->pool(); }
size_t Graph::nodes() const { return impl_->nodes(); }
void Graph::debug_dump(const std::string& path) const { impl_->debug_dump(path); }

MempoolId_t make_pool_id() { return runtime().make_pool_id(); }

bool is_capturing() {
  // Asks nothing of the driver: programs on the CPU call it too, in every step of an optimiser.
  const DeviceType type = recorder.load(std::memory_order_acquire);
  return type != kCPU && backend_or_null(type)->graph_runtime()->is_capturing();
}

Stream capturing_stream() { return is_capturing() ? current_stream(accelerator()) : Stream(); }

void before_replay(std::shared_ptr<ReplayHook> hook) {
  RUSH_CHECK(is_capturing(), "before_replay: this thread is not capturing a graph");
  runtime().before_replay(std::move(hook));
}

Stream capture_stream() { return runtime().side_stream(); }

Capture::Capture(Graph& captured, MempoolId_t pool, std::optional<Stream> stream, CaptureMode mode)
    : graph_(captured), on_stream_(stream ? *stream : capture_stream()), exceptions_(std::uncaught_exceptions()) {
  Backend& backend = backend_of(accelerator());
  backend.synchronize(backend.current_device());
  graph_.capture_begin(pool, mode);
}

Capture::~Capture() noexcept(false) {
  if (std::uncaught_exceptions() > exceptions_) {
    graph_.abandon();
  } else {
    graph_.capture_end();
  }
}

}  // namespace rush::graphs
