// Loops over the planes of images, and the gradient of a plane that windows overlap in.
#pragma once
#include <algorithm>
#include <vector>

#include "core/scalar_type.h"
#include "core/threads/parallel.h"

namespace rush::cpu {

// A range of the inner dimension (1, or the channels of channels-last data) of one plane.
struct PlanePart {
  int64_t plane, begin, end;
  int64_t width() const { return end - begin; }
};

// Calls body(part) for parts of `outer` planes whose elements are rows of `inner` numbers. Loops that scatter are split
// so: outputs of a plane may write the same element, but channels are independent. `cost` is the work of a plane, in
// elements.
template <class Body>
void for_each_plane_part(int64_t outer, int64_t inner, int64_t cost, const Body& body) {
  constexpr int64_t kWidth = 64;
  const int64_t parts = (inner + kWidth - 1) / kWidth;
  const int64_t work = std::max<int64_t>(1, cost * std::min(inner, kWidth));
  parallel_for(0, outer * parts, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = i % parts * kWidth;
      body(PlanePart{i / parts, from, std::min(from + kWidth, inner)});
    }
  });
}

// Calls body(plane, d, h) for every row of outputs of a pooling or a resizing. `cost` is the work of a row, in
// elements.
template <class Geometry, class Body>
void for_each_output_row(const Geometry& g, int64_t cost, const Body& body) {
  const int64_t depth = g.axis[0].output, height = g.axis[1].output;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(cost, 1));
  parallel_for(0, g.outer * depth * height, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row / (depth * height), row / height % depth, row % height);
  });
}

// The number of a row's first element.
template <class Geometry>
int64_t output_row(const Geometry& g, int64_t plane, int64_t d, int64_t h) {
  return ((plane * g.axis[0].output + d) * g.axis[1].output + h) * g.axis[2].output * g.inner;
}

// The sums of one part of a plane, zero at first, in the type that arithmetic on T is done in. They are in the plane
// when `store` returns.
template <class T>
class PlaneSums {
 public:
  using Math = opmath_t<T>;

  // `plane` is the first of `positions` rows of `inner` elements.
  PlaneSums(T* plane, int64_t positions, int64_t inner, const PlanePart& part)
      : to_(plane + part.begin), positions_(positions), inner_(inner), width_(part.width()) {
    if constexpr (std::is_same_v<T, Math>) {
      sums_ = to_;
      stride_ = inner;
      for_each_run([](Math* sums, T*, int64_t n) { std::fill_n(sums, n, Math(0)); });
    } else {
      wide_.assign(static_cast<size_t>(positions * width_), Math(0));
      sums_ = wide_.data();
      stride_ = width_;
    }
  }
  Math* at(int64_t position) { return sums_ + position * stride_; }
  int64_t width() const { return width_; }
  // Whether neighbouring positions are neighbours in memory, as all of a whole plane are.
  bool contiguous() const { return stride_ == width_; }
  void store() {
    if constexpr (std::is_same_v<T, Math>) return;
    for_each_run([](const Math* sums, T* to, int64_t n) {
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(sums[i]);
    });
  }

 private:
  // Calls body(sums, plane, n) for what is contiguous in both: everything, or one position.
  template <class Body>
  void for_each_run(const Body& body) {
    if (width_ == inner_) return body(sums_, to_, positions_ * inner_);
    for (int64_t i = 0; i < positions_; ++i) body(at(i), to_ + i * inner_, width_);
  }

  T* to_;
  int64_t positions_, inner_, width_;
  Math* sums_;
  int64_t stride_;
  std::vector<Math> wide_;
};

}  // namespace rush::cpu
