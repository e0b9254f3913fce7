// Snapshots of memory are what PyTorch's memory_viz reads. They are those of a played device: these tests need no GPU.
#include "backends/cuda/memory/snapshot.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/error/error.h"
#include "tests/cuda/fake_device.h"

namespace rush_tests {

namespace {

// The exit status of read_snapshot.py on the pickle; RUSH_TORCH_PYTHON names a Python that has PyTorch.
int status_of_reading(const std::string& pickle) {
  const auto file = std::filesystem::temp_directory_path() / ("rush_snapshot_" + std::to_string(getpid()) + ".pickle");
  std::ofstream(file, std::ios::binary) << pickle;
  const char *root = std::getenv("RUSH_ROOT"), *python = std::getenv("RUSH_TORCH_PYTHON");
  const std::string command = std::string(python ? python : "python3") + " '" + (root ? root : ".") +
                              "/tests/cuda/read_snapshot.py' '" + file.string() + "'";
  const int status = std::system(command.c_str());
  std::filesystem::remove(file);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void check_reading(const std::string& pickle) {
  const int status = status_of_reading(pickle);
  if (status == 77) MESSAGE("without PyTorch only the file's structure is checked");
  if (status == 127) MESSAGE("skipped: there is no Python");
  CHECK((status == 0 || status == 77 || status == 127));
}

// Everything that a trace may hold, but for a long history.
void fill(FakeDevice& device) {
  device.allocator.record_history({});
  Block *small = device.take(1000), *large = device.take(30 * kMiB), *shared = device.take(4096);
  device.give(large);
  device.take(3 * kMiB);
  device.allocator.record_stream(shared, kOther);
  device.give(shared);  // waits for the other stream
  CHECK_THROWS_AS(device.take(1024 * kMiB), rush::OutOfMemoryError);
  device.allocator.empty_cache();
  device.give(small);
  device.take(700, kOther);
}

}  // namespace

TEST_CASE("PyTorch reads our memory snapshots") {
  for (const char* settings : {"", "expandable_segments:True"}) {
    CAPTURE(settings);
    FakeDevice device(200 * kMiB, settings);
    fill(device);
    const DeviceSnapshot snapshot = device.allocator.snapshot();
    check_reading(snapshot_as_pickle({snapshot}));
  }
}

TEST_CASE("a long history does not overtax memory_viz's reader") {
  FakeDevice device(200 * kMiB);
  fill(device);
  device.allocator.record_history({.stacks = false});
  for (int i = 0; i < 20000; ++i) device.give(device.take(static_cast<size_t>(1 + i)));
  CHECK_THROWS_AS(device.take(1024 * kMiB), rush::OutOfMemoryError);
  device.take(20 * kMiB);
  check_reading(snapshot_as_pickle({device.allocator.snapshot()}));
}

}  // namespace rush_tests
