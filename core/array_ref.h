// ArrayRef, a view of an array that it does not own, and InlineVector, a small vector without a heap block.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "core/macros.h"

namespace rush {

template <class T, size_t N>
class InlineVector;

/// As std::span<const T>, but built from braces too. It owns nothing: it must not outlive what it was made from.
template <class T>
class ArrayRef {
 public:
  using value_type = T;

  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end) : data_(begin), size_(static_cast<size_t>(end - begin)) {}
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
  ArrayRef(const std::vector<T>& v) : data_(v.data()), size_(v.size()) {}
  template <size_t N>
  ArrayRef(const InlineVector<T, N>& v) : data_(v.data()), size_(v.size()) {}
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& array) : data_(array.data()), size_(N) {}
  template <size_t N>
  constexpr ArrayRef(const T (&array)[N]) : data_(array), size_(N) {}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
  /// The list lives until the end of the full expression, which is as long as an argument is used.
  constexpr ArrayRef(const std::initializer_list<T>& list) : data_(list.begin()), size_(list.size()) {}
#pragma GCC diagnostic pop

  /// As std::span has them; no index is checked.
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  constexpr const T& front() const { return data_[0]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  /// The part of `n` elements from `start`; the caller keeps it in range.
  constexpr ArrayRef slice(size_t start, size_t n) const { return ArrayRef(data_ + start, n); }
  constexpr ArrayRef slice(size_t start) const { return ArrayRef(data_ + start, size_ - start); }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }  // a copy
#include "core/ops/libtorch_array_ref.inc"

  friend bool operator==(ArrayRef a, ArrayRef b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {  // std::equal would call memcmp, which is dearer for a handful
      if (!(a[i] == b[i])) return false;
    }
    return true;
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

using IntArrayRef = ArrayRef<int64_t>;

/// Appends (2, 3): sizes are in so many messages that their text is made in one place. See core/str.h.
void append(std::string& out, IntArrayRef sizes);

/// A vector of trivially copyable elements. The first N need no heap block: most tensors' sizes and strides fit.
template <class T, size_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;

  InlineVector() : data_(inline_) {}
  InlineVector(size_t n, T value) : InlineVector() { resize(n, value); }
  InlineVector(ArrayRef<T> values) : InlineVector() { assign(values.begin(), values.end()); }
  InlineVector(std::initializer_list<T> values) : InlineVector() { assign(values.begin(), values.end()); }
  InlineVector(const InlineVector& other) : InlineVector() { assign(other.begin(), other.end()); }
  InlineVector(InlineVector&& other) noexcept : InlineVector() { steal(other); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) {
      free_heap();
      data_ = inline_;
      capacity_ = N;
      steal(other);
    }
    return *this;
  }
  ~InlineVector() { free_heap(); }

  template <class It>
  void assign(It first, It last) {  // as std::vector's; the range may lie in this vector
    const size_t n = static_cast<size_t>(last - first);
    if (RUSH_UNLIKELY(n > capacity_)) return assign_more(first, n);
    for (size_t i = 0; i < n; ++i) data_[i] = first[i];  // std::copy would call memmove
    size_ = n;
  }

  /// As std::vector has them; insert and erase take a pointer into the vector, which is not checked.
  void reserve(size_t n) {
    if (RUSH_UNLIKELY(n > capacity_)) grow(n);
  }
  void resize(size_t n, T value = T()) {
    reserve(n);
    for (size_t i = size_; i < n; ++i) data_[i] = value;
    size_ = n;
  }
  void push_back(T value) {
    if (RUSH_UNLIKELY(size_ == capacity_)) grow(2 * capacity_);
    data_[size_++] = value;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void insert(const T* where, T value) {
    const size_t at = static_cast<size_t>(where - data_);
    push_back(value);
    std::rotate(data_ + at, data_ + size_ - 1, data_ + size_);
  }
  void erase(const T* where) {
    std::copy(where + 1, static_cast<const T*>(end()), data_ + (where - data_));
    --size_;
  }

  /// As std::vector has them; no index is checked.
  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  friend bool operator==(const InlineVector& a, const InlineVector& b) { return ArrayRef<T>(a) == ArrayRef<T>(b); }

 private:
  RUSH_COLD void grow(size_t capacity) {
    T* grown = std::allocator<T>().allocate(capacity);
    if (size_) std::memcpy(grown, data_, size_ * sizeof(T));
    free_heap();
    data_ = grown;
    capacity_ = capacity;
  }
  void steal(InlineVector& other) noexcept {
    if (other.data_ == other.inline_) {
      std::copy(other.begin(), other.end(), data_);
    } else {
      data_ = other.data_;
      capacity_ = other.capacity_;
      other.data_ = other.inline_;
      other.capacity_ = N;
    }
    size_ = other.size_;
    other.size_ = 0;
  }
  // Copied through a temporary block, so that a range inside this vector stays valid.
  template <class It>
  RUSH_COLD void assign_more(It first, size_t n) {
    InlineVector grown;
    grown.reserve(n);
    std::copy(first, first + n, grown.data_);
    grown.size_ = n;
    *this = std::move(grown);
  }
  void free_heap() noexcept {
    if (data_ != inline_) std::allocator<T>().deallocate(data_, capacity_);
  }

  T* data_;
  size_t size_ = 0;
  size_t capacity_ = N;
  T inline_[N];
};

/// Sizes, strides, dimension numbers.
using DimVector = InlineVector<int64_t, 5>;

}  // namespace rush
