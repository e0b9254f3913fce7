#include "core/ops/linalg/distance.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/linalg/gemm_pack.h"
#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "backends/cpu/scratch.h"
#include "backends/functors/distance.h"

namespace rush::cpu {

namespace {

// x1's vectors, whose numbers are contiguous, against those of x2, of which `lanes` are packed as columns of a product
// are: [depth][lane], see Note [How a product is computed]. The innermost loop is a vector's, and the sums stay in
// registers. Distances are symmetric, so that either side can have the lanes.
template <class T, int lanes, class Norm>
class PairDistances {
 public:
  using Math = opmath_t<T>;

  PairDistances(MatrixRef<T> out, const T* x1, const T* x2, int64_t depth, const Norm& norm)
      : out_(out), x1_(x1), x2_(x2), depth_(depth), norm_(norm) {}

  // Of rows [row, end) of `out` and up to `lanes` columns.
  void operator()(int64_t row, int64_t end, int64_t column, int64_t columns) const {
    const Scratch<Math> panel(lanes * depth_);
    const MatrixSource<T> source(x2_, depth_, 1);
    source.pack(source, column, columns, 0, depth_, lanes, panel.data());
    for (; row + kRows <= end; row += kRows) tile<kRows>(row, column, columns, panel.data());
    for (; row < end; ++row) tile<1>(row, column, columns, panel.data());
  }

 private:
  static constexpr int kRows = 4;

  template <int rows>
  void tile(int64_t row, int64_t column, int64_t columns, const Math* panel) const {
    const T* a = x1_ + row * depth_;
    Math sums[rows][lanes] = {};
    for (int64_t k = 0; k < depth_; ++k, panel += lanes) {
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const auto x = static_cast<Math>(a[r * depth_ + k]);
        for (int l = 0; l < lanes; ++l) sums[r][l] = norm_.add(sums[r][l], std::abs(x - panel[l]));
      }
    }
    for (int r = 0; r < rows; ++r) {
      for (int l = 0; l < lanes; ++l) sums[r][l] = norm_.finish(sums[r][l]);
      T* to = out_.at(row + r, column).data;
      if (out_.column_stride == 1) {
        for (int64_t l = 0; l < columns; ++l) to[l] = static_cast<T>(sums[r][l]);
      } else {
        for (int64_t l = 0; l < columns; ++l) to[l * out_.column_stride] = static_cast<T>(sums[r][l]);
      }
    }
  }

  MatrixRef<T> out_;
  const T *x1_, *x2_;
  int64_t depth_;
  const Norm& norm_;
};

struct CdistLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& x1, const Tensor& x2, double p) {
    using Math = opmath_t<T>;
    constexpr int lanes = TileShape<Math>::NR;
    if (p == 0) return pairs<T, lanes>(out, x1, x2, functors::DistanceZero<Math>());
    if (p == 1) return pairs<T, lanes>(out, x1, x2, functors::DistanceOne<Math>());
    if (p == 2) return pairs<T, lanes>(out, x1, x2, functors::DistanceTwo<Math>());
    if (std::isinf(p)) return pairs<T, lanes>(out, x1, x2, functors::DistanceInfinity<Math>());
    // Powers are computed number by number, which padded lanes would waste.
    pairs<T, 1>(out, x1, x2, functors::DistanceP<Math>{static_cast<Math>(p)});
  }

  template <class T, int lanes, class Norm>
  static void pairs(const Tensor& out, const Tensor& x1, const Tensor& x2, const Norm& norm) {
    int64_t n = x1.size(1), m = x2.size(1);
    const int64_t d = x1.size(2), size1 = n * d, size2 = m * d, size = n * m;
    const T *first = x1.data_ptr<T>(), *second = x2.data_ptr<T>();
    T* to = out.data_ptr<T>();
    const bool swapped = m < lanes && m < n;  // few lanes would be used
    if (swapped) std::swap(n, m);
    constexpr int64_t kRowBlock = 256;
    const int64_t row_blocks = (n + kRowBlock - 1) / kRowBlock, panels = (m + lanes - 1) / lanes;
    const int64_t work = std::min(n, kRowBlock) * lanes * std::max<int64_t>(d, 1);
    const auto block = [&](int64_t i) {
      const int64_t b = i / panels / row_blocks, row = i / panels % row_blocks * kRowBlock, column = i % panels * lanes;
      const T *a = first + b * size1, *other = second + b * size2;
      if (swapped) std::swap(a, other);
      const MatrixRef<T> result{to + b * size, swapped ? 1 : m, swapped ? n : 1};
      PairDistances<T, lanes, Norm>(result, a, other, d, norm)(row, std::min(row + kRowBlock, n), column,
                                                               std::min<int64_t>(lanes, m - column));
    };
    parallel_for(0, out.size(0) * row_blocks * panels, std::max<int64_t>(1, 16 * kGrain / std::max<int64_t>(work, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) block(i);
                 });
  }
};

}  // namespace

void register_distance() { set_by_dtype<kernels::cdist, CdistLoop, RealFloatTypes>(kCPU); }

}  // namespace rush::cpu
