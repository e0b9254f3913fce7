// How libtorch prints pairs and the standard containers: elements apart by spaces, at most a hundred of them.
#pragma once
#include <map>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

namespace rush::detail {
template <class Container>
std::ostream& print_elements(std::ostream& out, const Container& container);
}  // namespace rush::detail

// Where libtorch has them too: only there are they found for types that are the standard library's alone.
namespace std {
template <class First, class Second>
ostream& operator<<(ostream& out, const pair<First, Second>& value);
template <class... Types>
ostream& operator<<(ostream& out, const vector<Types...>& values) {
  return rush::detail::print_elements(out, values);
}
template <class... Types>
ostream& operator<<(ostream& out, const map<Types...>& values) {
  return rush::detail::print_elements(out, values);
}
template <class... Types>
ostream& operator<<(ostream& out, const set<Types...>& values) {
  return rush::detail::print_elements(out, values);
}
template <class First, class Second>
ostream& operator<<(ostream& out, const pair<First, Second>& value) {
  return out << '(' << value.first << ", " << value.second << ')';
}
}  // namespace std

template <class Container>
std::ostream& rush::detail::print_elements(std::ostream& out, const Container& container) {
  int printed = 0;
  for (const auto& element : container) {
    if (printed == 100) return out << " ...";
    out << (printed++ > 0 ? " " : "") << element;
  }
  return out;
}

/// Tells a logger of libtorch's, which there is none of here.
#define C10_LOG_API_USAGE_ONCE(...)
