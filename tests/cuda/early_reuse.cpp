// The caching allocator's debug mode: memory that is handed out again while another stream may still be using it. The
// device of all but the last test is only played.
#include "backends/cuda/cuda.h"
#include "backends/cuda/devices.h"
#include "backends/cuda/memory/caching_allocator.h"
#include "core/ops/factory/factories.h"
#include "core/ops/pointwise/binary.h"
#include "tests/cuda/fake_device.h"

namespace rush_tests {

namespace {

void* const kThird = reinterpret_cast<void*>(2);
constexpr const char* kEvent = "an event";

struct DebugDevice : FakeDevice {
  explicit DebugDevice(const char* settings = "debug:True") : FakeDevice(100 * kMiB, settings) {}

  Stream stream(void* handle) const { return {Device(kCUDA, 0), handle}; }
  void use(Block* block, void* handle) { allocator.note_use(*block, handle, ops::mul); }
  void record(void* handle, const void* event = kEvent) { order.recorded(event, stream(handle)); }
  void wait(void* handle, const void* event = kEvent) { order.waited(stream(handle), event); }
  // Gives the block back and asks for as much again; how many reports that makes.
  size_t reuse(Block* block, size_t nbytes = 4096) {
    const size_t before = driver.reports.size();
    give(block);
    give(take(nbytes));
    return driver.reports.size() - before;
  }
};

}  // namespace

TEST_CASE("memory that another stream was never waited for is reported when it is handed out again") {
  DebugDevice device;
  Block* block = device.take(4096);
  void* const data = block->data;
  device.use(block, kOther);
  device.give(block);
  CHECK(device.driver.reports.empty());
  CHECK(device.driver.poisoned.empty());  // the other stream may be reading it
  Block* again = device.take(4096);
  CHECK(again->data == data);
  REQUIRE(device.driver.reports.size() == 1);
  CHECK(device.allocator.early_reuses() == 1);
  const std::string& report = device.driver.reports[0];
  for (const char* part : {"on cuda:0", "4096 bytes", "aten::mul.Tensor may still be using them on stream 0x1",
                           "on the default stream", "record_stream was not called"}) {
    CHECK_MESSAGE(report.find(part) != report.npos, report);
  }
  // It is said once.
  CHECK(device.reuse(again) == 0);
  CHECK(device.driver.poisoned.size() == 2);
}

TEST_CASE("a report has the stack of the allocation while history is recorded") {
  DebugDevice device;
  device.allocator.record_history({});
  Block* block = device.take(4096);
  device.use(block, kOther);
  REQUIRE(device.reuse(block) == 1);
  const std::string& report = device.driver.reports[0];
  CHECK(std::count(report.begin(), report.end(), '\n') > 1);
}

TEST_CASE("memory is not reported whose stream has waited, in any way") {
  DebugDevice device;
  Block* block = device.take(4096);
  const auto check_quiet = [&](const char* how, const auto& wait) {
    INFO(how);
    device.use(block, kOther);
    wait();
    CHECK(device.reuse(block) == 0);
    block = device.take(4096);
  };
  check_quiet("by its own stream", [&] { device.use(block, kStream), device.record(kOther), device.wait(kStream); });
  check_quiet("for an event", [&] { device.record(kOther), device.wait(kStream); });
  check_quiet("by way of a third stream", [&] {
    device.record(kOther);
    device.wait(kThird);
    device.record(kThird, "another");
    device.wait(kStream, "another");
  });
  check_quiet("the host, for the stream", [&] { device.order.host_waited(device.stream(kOther)); });
  check_quiet("the host, for an event", [&] { device.record(kOther), device.order.host_waited(kEvent); });
  check_quiet("the host, for a stream that had waited", [&] {
    device.record(kOther);
    device.wait(kThird);
    device.order.host_waited(device.stream(kThird));
  });
  check_quiet("the host, for the device", [&] { device.order.host_waited_for_device(0); });
  check_quiet("when it is freed, because of record_stream", [&] {
    device.allocator.record_stream(block, kOther);
    device.driver.reached_events = device.driver.events.size() + 1;
  });
  CHECK(device.allocator.early_reuses() == 0);
}

TEST_CASE("waiting for something else does not help") {
  DebugDevice device;
  const auto check_reported = [&](const char* how, const auto& wait) {
    INFO(how);
    Block* block = device.take(4096);
    device.record(kOther, "earlier");
    device.use(block, kOther);
    wait(block);
    CHECK(device.reuse(block) == 1);
  };
  check_reported("for an earlier event", [&](Block*) { device.wait(kStream, "earlier"); });
  check_reported("for an event that was destroyed", [&](Block*) {
    device.record(kOther);
    device.order.destroyed(kEvent);
    device.wait(kStream);
  });
  check_reported("for another stream", [&](Block*) { device.record(kThird), device.wait(kStream); });
  check_reported("by another stream", [&](Block*) { device.record(kOther), device.wait(kThird); });
  check_reported("the host, for another device", [&](Block*) { device.order.host_waited_for_device(1); });
  check_reported("record_stream for another stream", [&](Block* block) {
    device.allocator.record_stream(block, kThird);
    device.driver.reached_events = device.driver.events.size() + 1;
  });
  check_reported("before a later use", [&](Block* block) {
    device.record(kOther);
    device.wait(kStream);
    device.use(block, kOther);
  });
}

TEST_CASE("the stream may wait after the memory was freed, which is not poisoned before") {
  DebugDevice device;
  Block* block = device.take(4096);
  device.use(block, kOther);
  device.give(block);
  CHECK(device.driver.poisoned.empty());
  device.record(kOther);
  device.wait(kStream);
  block = device.take(4096);
  CHECK(device.driver.reports.empty());
  device.give(block);
  CHECK(device.driver.poisoned.size() == 1);
}

TEST_CASE("uses stay with their addresses when blocks are split and merged") {
  DebugDevice device;
  Block *a = device.take(4096), *b = device.take(4096), *c = device.take(4096);
  char* const start = a->data;
  device.use(b, kOther);
  for (Block* block : {a, b, c}) device.give(block);
  Block* before = device.take(4096);  // a's bytes, cut from what has become one block
  CHECK(before->data == start);
  CHECK(device.driver.reports.empty());
  Block* with = device.take(512);  // the first of b's
  CHECK(device.driver.reports.size() == 1);
  device.give(with);
  device.give(before);
  Block* all = device.take(3 * 4096);
  CHECK(all->data == start);
  CHECK(device.driver.reports.size() == 1);
  device.give(all);
}

TEST_CASE("memory that went back to the driver is forgotten") {
  for (const char* settings : {"debug:True", "debug:True,expandable_segments:True"}) {
    DebugDevice device(settings);
    Block* block = device.take(20 * kMiB);
    device.use(block, kOther);
    device.give(block);
    device.allocator.empty_cache();
    CHECK(device.reserved() == 0);
    device.give(device.take(20 * kMiB));  // with expandable segments at the same addresses
    CHECK(device.driver.reports.empty());
  }
}

TEST_CASE("nothing is noted outside of debug mode") {
  DebugDevice device("");
  Block* block = device.take(4096);
  device.use(block, kOther);
  CHECK(device.reuse(block) == 0);
  CHECK(device.allocator.early_reuses() == 0);
}

// CTest runs it with RUSH_CUDA_ALLOC_CONF=debug:True.
TEST_CASE("in debug mode tensors that streams share without waiting are reported" *
          doctest::skip(!rush::cuda::is_available() || !AllocatorConfig::of_process().debug)) {
  const Tensor other = ones({1024}, TensorOptions(kCUDA));
  const CUDAStream side = getStreamFromPool();
  side.wait_stream(getCurrentCUDAStream());
  const auto reports_of = [&](const auto& order) {
    const int64_t before = device_allocator(0).early_reuses();
    Tensor shared = ones({1024}, TensorOptions(kCUDA));
    Tensor result;
    {
      const CUDAStreamGuard guard(side);
      result = shared.mul(other);
    }
    order(shared);
    shared.reset();
    const Tensor next = empty({1024}, TensorOptions(kCUDA));
    rush::cuda::synchronize();
    return device_allocator(0).early_reuses() - before;
  };
  CHECK(reports_of([](const Tensor&) {}) == 1);
  CHECK(reports_of([&](const Tensor&) { getCurrentCUDAStream().wait_stream(side); }) == 0);
  CHECK(reports_of([&](const Tensor&) { side.synchronize(); }) == 0);
  CHECK(reports_of([&](const Tensor& shared) { shared.record_stream(side); }) == 0);
}

}  // namespace rush_tests
