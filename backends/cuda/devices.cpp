#include "backends/cuda/devices.h"

#include "core/device/generator.h"

namespace rush::cuda {

namespace {
Backend& runtime() { return backend_of(kCUDA); }
int index_of(int64_t device) {
  RUSH_CHECK_VALUE(device >= -1 && device < 128, "there is no CUDA device ", device);
  return concrete_device(Device(kCUDA, static_cast<int>(device))).index;
}
void seed_generator(Device device, uint64_t seed) {
  Generator generator = default_generator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}
}  // namespace

int64_t device_count() {
  Backend* backend = backend_or_null(kCUDA);
  return backend ? backend->device_count() : 0;
}

int64_t current_device() { return runtime().current_device(); }
void set_device(int64_t device) { runtime().set_device(index_of(device)); }
void synchronize(int64_t device) { runtime().synchronize(index_of(device)); }
DeviceProperties get_device_properties(int64_t device) { return runtime().properties(index_of(device)); }
MemoryInfo mem_get_info(int64_t device) { return runtime().memory_info(index_of(device)); }

void manual_seed(uint64_t seed) {
  if (is_available()) seed_generator(kCUDA, seed);
}

void manual_seed_all(uint64_t seed) {
  for (int64_t device = 0; device < device_count(); ++device) {
    seed_generator(Device(kCUDA, static_cast<int>(device)), seed);
  }
}

}  // namespace rush::cuda
