// c10::SmallVector, a vector whose first elements lie in the object itself. Here it is std::vector: what a program saw
// of the difference is how long an allocation takes.
#pragma once
#include <initializer_list>
#include <iterator>
#include <vector>

#include "torch/types.h"

namespace c10 {

/// What functions take by reference that any number of inline elements suits.
template <class T>
class SmallVectorImpl : public std::vector<T> {
 public:
  using std::vector<T>::vector;

  using std::vector<T>::assign;
  template <class Range>
  requires requires(const Range& range) { std::begin(range); }
  void assign(const Range& range) { this->assign(std::begin(range), std::end(range)); }
  void resize_for_overwrite(size_t count) { this->resize(count); }
  template <class Range>
  void append(const Range& range) {
    append(std::begin(range), std::end(range));
  }
  void append(std::initializer_list<T> values) { append(values.begin(), values.end()); }
  template <std::input_iterator Iterator>
  void append(Iterator first, Iterator last) {
    this->insert(this->end(), first, last);
  }
  void append(size_t count, const T& value) { this->insert(this->end(), count, value); }
  T pop_back_val() {
    T last = std::move(this->back());
    this->pop_back();
    return last;
  }
  void pop_back_n(size_t count) { truncate(this->size() - count); }
  size_t size_in_bytes() const { return this->size() * sizeof(T); }
  void truncate(size_t count) { this->erase(this->begin() + count, this->end()); }
};

template <class T, unsigned inline_elements = 6>
class SmallVector : public SmallVectorImpl<T> {
 public:
  using SmallVectorImpl<T>::SmallVectorImpl;
  SmallVector() = default;
  SmallVector(ArrayRef<T> values) : SmallVectorImpl<T>(values.begin(), values.end()) {}
  SmallVector(const SmallVectorImpl<T>& other) : SmallVectorImpl<T>(other) {}
  SmallVector(SmallVectorImpl<T>&& other) : SmallVectorImpl<T>(std::move(other)) {}
};

}  // namespace c10
