// Hashes of pairs, tuples and vectors for the standard library's maps and sets.
#pragma once
#include <cstddef>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

namespace c10 {

/// The hash of what `seed` and `value` are hashes of.
inline size_t hash_combine(size_t seed, size_t value) {
  return seed ^ (value + 0x9e3779b9 + (seed << 6U) + (seed >> 2U));
}

/// As std::hash, and also of pairs, tuples and vectors of what it takes. The order of elements counts.
template <class T>
struct hash : std::hash<T> {};
template <class... Types>
struct hash<std::tuple<Types...>> {
  size_t operator()(const std::tuple<Types...>& values) const {
    size_t seed = 0;
    std::apply([&](const Types&... each) { ((seed = hash_combine(seed, hash<Types>()(each))), ...); }, values);
    return seed;
  }
};
template <class First, class Second>
struct hash<std::pair<First, Second>> {
  size_t operator()(const std::pair<First, Second>& pair) const {
    return hash<std::tuple<First, Second>>()({pair.first, pair.second});
  }
};
template <class T>
struct hash<std::vector<T>> {
  size_t operator()(const std::vector<T>& values) const {
    size_t seed = 0;
    for (const T& each : values) seed = hash_combine(seed, hash<T>()(each));
    return seed;
  }
};

/// Of several values.
template <class... Types>
size_t get_hash(const Types&... values) {
  return hash<std::tuple<Types...>>()(std::make_tuple(values...));
}

}  // namespace c10
