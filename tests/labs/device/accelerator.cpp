#include "tests/labs/device/accelerator.h"

#include "core/device/backend.h"
#include "core/dispatch/registry.h"
#include "tests/labs/device/graph.h"

namespace rush::labs {

namespace {

using EventHandle = std::shared_ptr<EventState>;

EventHandle& event_of(void* handle) { return *static_cast<EventHandle*>(handle); }

// A stream's handle is the address of its element; the default stream's is null.
char stream_names[Streams::kCount];
class EmulatedBackend final : public Backend {
 public:
  void synchronize(int /*device*/) override { streams().synchronize(); }
  DeviceProperties properties(int /*device*/) override { return {.name = "emulated"}; }
  Allocator& allocator() override { return device_memory(); }
  Allocator* pinned_allocator() override { return &pinned_memory(); }
  bool is_pinned(const void* data) override { return pinned_memory().contains(data); }

  Stream current_stream(int /*device*/) override { return stream(streams().current()); }
  void set_current_stream(const Stream& stream) override { streams().set_current(number_of(stream)); }
  Stream stream_from_pool(int /*device*/) override { return stream(streams().next_from_pool()); }
  void synchronize(const Stream& stream) override { streams().synchronize(number_of(stream)); }
  bool query(const Stream& stream) override { return streams().query(number_of(stream)); }
  void record_stream(const StorageImpl& storage, const Stream& stream) override {
    device_memory().record_stream(storage.data(), number_of(stream));
  }

  void* create_event(int /*device*/, bool /*timing*/) override {
    return new EventHandle(std::make_shared<EventState>());
  }
  void destroy_event(void* event, int /*device*/) noexcept override { delete &event_of(event); }
  void record(void* event, const Stream& stream) override { streams().record(event_of(event), number_of(stream)); }
  void wait(const Stream& stream, void* event) override { streams().wait(number_of(stream), event_of(event)); }
  bool query_event(void* event) override { return streams().query(last_mark(event)); }
  void synchronize_event(void* event) override { streams().synchronize(last_mark(event)); }

  graphs::GraphRuntime* graph_runtime() override { return &emulated_graphs(); }

 private:
  static Stream stream(size_t number) { return {emulated(), number == 0 ? nullptr : stream_names + number}; }
  static Streams::Mark last_mark(void* event) { return {event_of(event), event_of(event)->recorded}; }
};

}  // namespace

size_t number_of(const Stream& stream) {
  return stream.handle ? static_cast<size_t>(static_cast<char*>(stream.handle) - stream_names) : 0;
}

// None of these is destroyed: tensors in static variables are freed after everything else.
Streams& streams() {
  static auto& instance = *new Streams;
  return instance;
}
RaceDetector& races() {
  static auto& instance = *new RaceDetector;
  return instance;
}
BlockPool& device_memory() {
  static auto& instance = *new BlockPool(streams(), /*is_pinned=*/false);
  return instance;
}
BlockPool& pinned_memory() {
  static auto& instance = *new BlockPool(streams(), /*is_pinned=*/true);
  return instance;
}

uint64_t use_of(const void* block) {
  const uint64_t use = device_memory().use_of(block);
  return use != 0 ? use : pinned_memory().use_of(block);
}

Device emulated() {
  static const DeviceType type = [] {
    registry();  // CUDA's backend registers first: the last one that records graphs is graphs::accelerator()
    const DeviceType added = register_backend("emulated", *new EmulatedBackend);
    set_kernels(added);
    return added;
  }();
  return Device(type, 0);
}

}  // namespace rush::labs
