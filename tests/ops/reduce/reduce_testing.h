// What the tests of reductions share: tensors of many layouts, and a reduction written as plainly as possible.
#pragma once
#include <cmath>
#include <functional>
#include <limits>

#include "tests/not_finite.h"
#include "tests/ops/index/index_testing.h"

namespace rush::testing {

// NaN equals NaN here.
inline bool close(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= tolerance * (1 + std::abs(b));
}

inline bool close(const Doubles& a, const Doubles& b, double tolerance) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!close(a[i], b[i], tolerance)) {
      MESSAGE("element ", i, ": ", a[i], " against ", b[i]);
      return false;
    }
  }
  return true;
}

// Smooth values between -1 and 1, no two alike.
inline Tensor waves(IntArrayRef sizes, ScalarType dtype = kFloat64) {
  const Tensor t = zeros(sizes, kFloat64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_ptr<double>()[i] = std::sin(1.7 * static_cast<double>(i) + 0.3);
  return t.to(dtype);
}

struct Arrangement {
  std::string name;
  Tensor tensor;
};

// The same kinds of values in memory laid out in every way that a kernel treats differently.
inline std::vector<Arrangement> arrangements(ScalarType dtype) {
  return {{"one number", waves({}, dtype)},
          {"a vector", waves(5, dtype)},
          {"a long vector", waves(3001, dtype)},
          {"a matrix", waves({3, 4}, dtype)},
          {"long rows", waves({3, 2500}, dtype)},
          {"short rows", waves({700, 3}, dtype)},
          {"wide rows", waves({70, 600}, dtype)},
          {"four dimensions", waves({2, 3, 4, 5}, dtype)},
          {"many short runs", waves({50, 3, 45}, dtype)},
          {"rows of a few, apart", waves({90, 5}, dtype).as_strided({45, 4}, {10, 1})},
          {"a dimension of one", waves({3, 1, 5}, dtype)},
          {"transposed", waves({40, 70}, dtype).transpose(0, 1)},
          {"permuted", waves({3, 40, 5}, dtype).transpose(0, 2)},
          {"channels last", waves({2, 4, 5, 3}, dtype).permute({0, 3, 1, 2})},
          {"every other column", waves({9, 80}, dtype).as_strided({9, 40}, {80, 2})},
          {"expanded inside", waves({7, 1}, dtype).expand({7, 33})},
          {"expanded outside", waves(7, dtype).expand({40, 7})},
          {"empty columns", waves({3, 0}, dtype)},
          {"empty rows", waves({0, 3}, dtype)}};
}

using NaiveFunction = std::function<double(const Doubles&)>;

// `fn` of the elements that share their position outside `dims`, for each such position in row-major order.
inline Doubles naive(const Tensor& self, const DimVector& dims, const NaiveFunction& fn) {
  const auto is_reduced = [&](int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
  int64_t outputs = 1;
  for (int64_t d = 0; d < self.dim(); ++d) outputs *= is_reduced(d) ? 1 : self.size(d);
  std::vector<Doubles> groups(static_cast<size_t>(outputs));
  const Doubles all = values(self);
  for (size_t i = 0; i < all.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), output = 0, step = 1;
    for (int64_t d = self.dim() - 1; d >= 0; --d) {
      const int64_t at = rest % self.size(d);
      rest /= self.size(d);
      if (is_reduced(d)) continue;
      output += at * step;
      step *= self.size(d);
    }
    groups[static_cast<size_t>(output)].push_back(all[i]);
  }
  Doubles results;
  for (const Doubles& group : groups) results.push_back(fn(group));
  return results;
}

// Every choice of dimensions of a tensor: none of them means all.
inline std::vector<DimVector> dimension_choices(const Tensor& self) {
  std::vector<DimVector> choices;
  for (int64_t bits = 1; bits < 1 << self.dim(); ++bits) {
    DimVector dims;
    for (int64_t d = 0; d < self.dim(); ++d) {
      if (bits >> d & 1) dims.push_back(d);
    }
    choices.push_back(dims);
  }
  if (choices.empty()) choices.push_back({});
  return choices;
}

}  // namespace rush::testing
