// c10::ExclusivelyOwned: a handle that says it is the only one.
#pragma once
#include <utility>

#include "torch/types.h"

namespace c10 {

/// Holds a T until it is moved out. libtorch leaves the reference count untouched in doing so; here it counts as usual.
template <class T>
class ExclusivelyOwned {
 public:
  ExclusivelyOwned() = default;
  explicit ExclusivelyOwned(T&& value) : value_(std::move(value)) {}
  template <class... Args>
  explicit ExclusivelyOwned(std::in_place_t, Args&&... args) : value_(std::forward<Args>(args)...) {}
  ExclusivelyOwned(ExclusivelyOwned&&) = default;
  ExclusivelyOwned& operator=(ExclusivelyOwned&&) = default;
  ExclusivelyOwned& operator=(T&& value) {
    value_ = std::move(value);
    return *this;
  }

  T take() && { return std::move(value_); }
  T* get() { return &value_; }
  const T* get() const { return &value_; }
  T* operator->() { return &value_; }
  const T* operator->() const { return &value_; }
  T& operator*() { return value_; }
  const T& operator*() const { return value_; }

 private:
  T value_;
};

}  // namespace c10
