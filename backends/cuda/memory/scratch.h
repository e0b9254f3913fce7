// Temporary device memory of a kernel or a library call.
#pragma once
#include <cstddef>

namespace rush::cuda {

// Memory of the current device from the caching allocator, ordered with the current stream: the destructor may run
// while kernels that use it are still queued there, because kernels of the block's next owner are queued behind them.
// At least 512-byte aligned; null for zero bytes. Throws OutOfMemoryError.
class Scratch {
 public:
  explicit Scratch(size_t nbytes);
  ~Scratch();
  Scratch(Scratch&& other) noexcept;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void* data() const { return data_; }
  size_t size() const { return nbytes_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  size_t nbytes_ = 0;
  void* context_ = nullptr;  // the allocator's
};

}  // namespace rush::cuda
