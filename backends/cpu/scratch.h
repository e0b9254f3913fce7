// Memory for the length of a scope, from the CPU allocator.
#pragma once
#include "core/device/allocator.h"

namespace rush::cpu {

template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count)
      : nbytes_(static_cast<size_t>(count) * sizeof(T)), data_(static_cast<T*>(allocator(kCPU).allocate(nbytes_))) {}
  ~Scratch() { allocator(kCPU).deallocate(data_, nbytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  size_t nbytes_;
  T* data_;
};

}  // namespace rush::cpu
