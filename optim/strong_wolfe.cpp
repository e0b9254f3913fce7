#include "optim/strong_wolfe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace rush::optim {

namespace {

constexpr double kDecrease = 1e-4;  // c1 and c2 of the conditions
constexpr double kCurvature = 0.9;

// Where the cubic through both points, with their slopes, has its minimum, kept within [low, high]; the middle of that
// if it has none. NaN comes out as NaN, as in PyTorch.
double cubic_minimum(const LinePoint& a, const LinePoint& b, double low, double high) {
  const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step);
  const double d2_square = d1 * d1 - a.slope * b.slope;
  if (!(d2_square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(d2_square);
  const LinePoint& left = a.step <= b.step ? a : b;
  const LinePoint& right = a.step <= b.step ? b : a;
  const double minimum =
      right.step - (right.step - left.step) * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2));
  return std::min(std::max(minimum, low), high);
}

class Search {
 public:
  Search(const LineFunction& evaluate, const LinePoint& start, const Tensor& direction, double tolerance_change,
         int64_t max_iterations)
      : evaluate_(evaluate),
        start_(start),
        direction_(direction),
        direction_size_(direction.abs().max().item<double>()),
        tolerance_change_(tolerance_change),
        max_iterations_(max_iterations) {}

  LineSearchResult run(double first_step) {
    bracket(first_step);
    shrink();
    return {low(), evaluations_};
  }

 private:
  LinePoint at(double step) {
    auto [loss, gradient] = evaluate_(step);
    ++evaluations_;
    return {step, loss, gradient, gradient.dot(direction_).item<double>()};
  }
  bool decreases_enough(const LinePoint& point) const {
    return !(point.loss > start_.loss + kDecrease * point.step * start_.slope);
  }
  bool is_flat_enough(const LinePoint& point) const { return std::abs(point.slope) <= -kCurvature * start_.slope; }
  LinePoint& low() { return ends_[low_]; }
  LinePoint& high() { return ends_[1 - low_]; }
  void find_low() { low_ = ends_[0].loss <= ends_[1].loss ? 0 : 1; }

  // Grows the step until a minimum must lie between it and the one before.
  void bracket(double first_step) {
    LinePoint previous = start_;
    LinePoint point = at(first_step);
    for (; iterations_ < max_iterations_; ++iterations_) {
      if (!decreases_enough(point) || (iterations_ > 1 && point.loss >= previous.loss)) break;
      if (is_flat_enough(point)) {
        done_ = true;
        previous = point;
        break;
      }
      if (point.slope >= 0) break;
      const double shortest = point.step + 0.01 * (point.step - previous.step), longest = point.step * 10;
      const double next = cubic_minimum(previous, point, shortest, longest);
      previous = std::exchange(point, at(next));
    }
    if (iterations_ >= max_iterations_) previous = start_;
    ends_ = {previous, point};
    find_low();
  }

  // Replaces an end by a point between them until that fulfils the conditions.
  void shrink() {
    bool was_near_an_end = false;
    for (; !done_ && iterations_ < max_iterations_; ++iterations_) {
      const double least = std::min(ends_[0].step, ends_[1].step), most = std::max(ends_[0].step, ends_[1].step);
      if ((most - least) * direction_size_ < tolerance_change_) return;
      double step = cubic_minimum(ends_[0], ends_[1], least, most);
      // A point near an end, twice running or at the very end, moves a tenth of the bracket away from it.
      const double margin = 0.1 * (most - least);
      bool near_an_end = std::min(most - step, step - least) < margin;
      if (near_an_end && (was_near_an_end || step >= most || step <= least)) {
        step = std::abs(step - most) < std::abs(step - least) ? most - margin : least + margin;
        near_an_end = false;
      }
      was_near_an_end = near_an_end;

      LinePoint point = at(step);
      if (!decreases_enough(point) || point.loss >= low().loss) {
        high() = std::move(point);
        find_low();
        continue;
      }
      if (is_flat_enough(point)) {
        done_ = true;
      } else if (point.slope * (high().step - low().step) >= 0) {
        high() = low();
      }
      low() = std::move(point);
    }
  }

  const LineFunction& evaluate_;
  const LinePoint& start_;
  const Tensor& direction_;
  double direction_size_, tolerance_change_;
  int64_t max_iterations_;
  int64_t iterations_ = 0, evaluations_ = 0;
  std::array<LinePoint, 2> ends_;
  size_t low_ = 0;
  bool done_ = false;
};

}  // namespace

LineSearchResult strong_wolfe(const LineFunction& evaluate, const LinePoint& start, double first_step,
                              const Tensor& direction, double tolerance_change, int64_t max_iterations) {
  return Search(evaluate, start, direction, tolerance_change, max_iterations).run(first_step);
}

}  // namespace rush::optim
