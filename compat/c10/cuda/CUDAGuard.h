// Guards of CUDA's devices and streams, beyond CUDAGuard and CUDAStreamGuard.
#pragma once
#include <optional>
#include <vector>

#include "c10/cuda/CUDAStream.h"

namespace rush::cuda {

/// Each of the streams is the current one of its device until the end of the scope; the current device stays.
class CUDAMultiStreamGuard {
 public:
  explicit CUDAMultiStreamGuard(ArrayRef<CUDAStream> streams) {
    for (const CUDAStream& stream : streams) before_.push_back(getCurrentCUDAStream(stream.device_index()));
    for (const CUDAStream& stream : streams) setCurrentCUDAStream(stream);
  }
  ~CUDAMultiStreamGuard() {
    for (const CUDAStream& stream : before_) setCurrentCUDAStream(stream);
  }
  CUDAMultiStreamGuard(const CUDAMultiStreamGuard&) = delete;
  CUDAMultiStreamGuard& operator=(const CUDAMultiStreamGuard&) = delete;

 private:
  std::vector<CUDAStream> before_;
};

/// Guards that may have nothing to do.
class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<Device> device) { set(device); }
  explicit OptionalCUDAGuard(int device) : OptionalCUDAGuard(Device(kCUDA, device)) {}
  void set_device(Device device) { set(device); }
  void set_index(int device) { set(Device(kCUDA, device)); }
  void reset() { guard_.reset(); }

 private:
  void set(std::optional<Device> device) {
    guard_.reset();
    if (device) guard_.emplace(*device);
  }
  std::optional<CUDAGuard> guard_;
};
class OptionalCUDAStreamGuard {
 public:
  OptionalCUDAStreamGuard() = default;
  explicit OptionalCUDAStreamGuard(const std::optional<CUDAStream>& stream) {
    if (stream) reset_stream(*stream);
  }
  void reset_stream(const CUDAStream& stream) {
    guard_.reset();
    guard_.emplace(stream);
  }
  void reset() { guard_.reset(); }

 private:
  std::optional<CUDAStreamGuard> guard_;
};

}  // namespace rush::cuda
