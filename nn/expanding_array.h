// ExpandingArray<D>: a number for each of D dimensions, given one by one or as a single number for all of them.
#pragma once
#include <array>
#include <iosfwd>
#include <optional>
#include <string>

#include "core/array_ref.h"
#include "core/error/error.h"

namespace rush {

namespace detail {
/// What both of them have in common: D values, given one by one or as a single one for all.
template <size_t D, class T>
class ExpandedValues {
 public:
  /// As std::array has them; * and -> give that array. No index is checked.
  const T& operator[](size_t i) const { return values_[i]; }
  size_t size() const { return D; }
  std::array<T, D>& operator*() { return values_; }
  const std::array<T, D>& operator*() const { return values_; }
  std::array<T, D>* operator->() { return &values_; }
  const std::array<T, D>* operator->() const { return &values_; }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  friend bool operator==(const ExpandedValues& a, const ExpandedValues& b) { return a.values_ == b.values_; }

 protected:
  template <class Values>
  void assign(const Values& values) {
    RUSH_CHECK_VALUE(values.size() == D || values.size() == 1, "expected one number or ", D, ", got ", values.size());
    for (size_t i = 0; i < D; ++i) values_[i] = values.begin()[values.size() == 1 ? 0 : i];
  }

  std::array<T, D> values_;
};
}  // namespace detail

template <size_t D, class T = int64_t>
class ExpandingArray : public detail::ExpandedValues<D, T> {
 public:
  ExpandingArray(T all) { this->values_.fill(all); }
  ExpandingArray(std::initializer_list<T> values) { this->assign(values); }
  ExpandingArray(const std::vector<T>& values) { this->assign(values); }
  ExpandingArray(const std::array<T, D>& values) { this->values_ = values; }
  /// Throws ValueError unless there is one number, for all dimensions, or D of them.
  ExpandingArray(ArrayRef<T> values) { this->assign(values); }

  operator ArrayRef<T>() const { return ArrayRef<T>(this->values_.data(), D); }  // all values
  ArrayRef<T> ref() const { return *this; }                                      // all values
};

/// The same where a dimension may be left as it is: {7, std::nullopt}.
template <size_t D>
class ExpandingArrayWithOptionalElem : public detail::ExpandedValues<D, std::optional<int64_t>> {
 public:
  using Element = std::optional<int64_t>;
  ExpandingArrayWithOptionalElem(int64_t all) { this->values_.fill(all); }
  ExpandingArrayWithOptionalElem(std::initializer_list<Element> values) { this->assign(values); }
  /// Throws ValueError unless there is one number, for all dimensions, or D of them.
  ExpandingArrayWithOptionalElem(const std::vector<Element>& values) { this->assign(values); }
  ExpandingArrayWithOptionalElem(const std::vector<int64_t>& values) { this->assign(values); }
};

/// [3, 3]; of one dimension the number alone. What may be left out prints as None.
template <class Traits, size_t D, class T>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& stream,
                                             const detail::ExpandedValues<D, T>& values) {
  for (size_t i = 0; i < D; ++i) {
    stream << (i > 0 ? ", " : D > 1 ? "[" : "");
    if constexpr (!requires { stream << *values[i]; }) {
      stream << values[i];
    } else if (values[i]) {
      stream << *values[i];
    } else {
      stream << "None";
    }
  }
  if (D > 1) stream << ']';
  return stream;
}

}  // namespace rush
