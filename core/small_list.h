// SmallList: a list of any type whose first N elements need no heap block.
#pragma once
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace rush {

/// For the handful of objects that nearly every owner has exactly one or two of, such as a node's edges. Grows only.
template <class T, size_t N>
class SmallList {
 public:
  void push_back(T value) {  // beyond N elements, all of them move to the heap
    if (size_ < N) {
      first_[size_++] = std::move(value);
      return;
    }
    if (size_ == N) {
      all_.reserve(2 * N + 1);  // what may fail comes before the first element is moved
      all_.assign(std::make_move_iterator(first_.begin()), std::make_move_iterator(first_.end()));
    }
    all_.push_back(std::move(value));
    ++size_;
  }
  /// As std::vector has them; no index is checked.
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return size_ <= N ? first_.data() : all_.data(); }
  T* end() { return begin() + size_; }
  const T* begin() const { return size_ <= N ? first_.data() : all_.data(); }
  const T* end() const { return begin() + size_; }
  T& operator[](size_t i) { return begin()[i]; }
  const T& operator[](size_t i) const { return begin()[i]; }

 private:
  size_t size_ = 0;
  std::array<T, N> first_{};
  std::vector<T> all_;  // every element, once there are more than N
};

}  // namespace rush
