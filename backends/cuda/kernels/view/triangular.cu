#include "core/ops/view/triangular.h"

#include <algorithm>

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"

namespace rush::cuda {

namespace {

inline constexpr int kMaxTriangularDims = 32;

// out[..., i, j] = in[..., i, j] on one side of a diagonal, 0 on the other.
template <class T>
struct Triangle {
  T* out;
  const T* in;
  int64_t diagonal;
  bool upper;
  int dims;
  int64_t sizes[kMaxTriangularDims], out_strides[kMaxTriangularDims], in_strides[kMaxTriangularDims];
  __device__ void operator()(int64_t index) const {
    int64_t rest = index, to = 0, from = 0, above = 0;  // above: j - i
    for (int d = dims - 1; d >= 0; --d) {
      const int64_t outer = rest / sizes[d];
      const int64_t position = rest - outer * sizes[d];
      rest = outer;
      to += position * out_strides[d];
      from += position * in_strides[d];
      if (d == dims - 1) above += position;
      if (d == dims - 2) above -= position;
    }
    const bool kept = upper ? above >= diagonal : above <= diagonal;
    if (!kept) {
      out[to] = T{};
    } else if (out != in) {
      out[to] = in[from];
    }
  }
};

struct TriangleLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& in, int64_t diagonal, bool upper) {
    const char* op = upper ? "triu" : "tril";
    RUSH_CHECK_NOT_IMPLEMENTED(in.dim() <= kMaxTriangularDims, op, ": more than ", kMaxTriangularDims, " dimensions");
    Triangle<T> triangle;
    triangle.out = static_cast<T*>(out.data_ptr());
    triangle.in = static_cast<const T*>(in.data_ptr());
    triangle.diagonal = diagonal;
    triangle.upper = upper;
    triangle.dims = static_cast<int>(in.dim());
    for (int d = 0; d < triangle.dims; ++d) {
      triangle.sizes[d] = in.sizes()[static_cast<size_t>(d)];
      triangle.out_strides[d] = out.strides()[static_cast<size_t>(d)];
      triangle.in_strides[d] = in.strides()[static_cast<size_t>(d)];
    }
    for_each_index(op, in.numel(), triangle);
  }
};

void triangle(const Tensor& out, const Tensor& in, int64_t diagonal, bool upper) {
  pick_bytes<TriangleLoop>(in.element_size())(out, in, diagonal, upper);
}

// Element n of a triangle's list, row by row. The widths of rows first grow or shrink by one, so that a row is found by
// bisection on how many elements lie before it.
struct TriangleRows {
  int64_t columns, offset;
  bool upper;

  // How many of the rows 0, ..., i - 1 elements there are: row r has clamp(r + offset + 1) of the lower triangle, and
  // columns - clamp(r + offset) of the upper one, clamped to [0, columns].
  // Unsigned, because twice as many as there are must not overflow.
  __device__ uint64_t before(int64_t i) const {
    return upper ? static_cast<uint64_t>(i) * static_cast<uint64_t>(columns) - clamped_sum(offset, i)
                 : clamped_sum(offset + 1, i);
  }
  __device__ int64_t first_column(int64_t i) const { return upper ? min(max(i + offset, int64_t{0}), columns) : 0; }

 private:
  // The sum of clamp(k + start, 0, columns) for k in [0, count).
  __device__ uint64_t clamped_sum(int64_t start, int64_t count) const {
    const int64_t first = min(max(-start, int64_t{0}), count);     // the values below are 0
    const int64_t last = min(max(columns - start, first), count);  // from here on they are `columns`
    const auto low = static_cast<uint64_t>(first + start), high = static_cast<uint64_t>(last - 1 + start);
    return static_cast<uint64_t>(last - first) * (low + high) / 2 +
           static_cast<uint64_t>(count - last) * static_cast<uint64_t>(columns);
  }
};

template <class T>
struct TriangleIndices {
  TriangleRows rows;
  int64_t count;
  T* out;
  __device__ void operator()(int64_t n) const {
    // The last row with at most n elements before it; empty rows before the first come out as well.
    int64_t low = 0, high = 1;
    const auto place = static_cast<uint64_t>(n);
    while (high < INT64_MAX && rows.before(high) <= place) high = high > INT64_MAX / 2 ? INT64_MAX : high * 2;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (rows.before(middle) <= place ? low : high) = middle;
    }
    out[n] = static_cast<T>(low);
    out[count + n] = static_cast<T>(rows.first_column(low) + n - static_cast<int64_t>(rows.before(low)));
  }
};

struct IndicesLoop {
  template <class T>
  static void run(const Tensor& out, int64_t columns, int64_t offset, bool upper) {
    const int64_t count = out.sizes()[1];
    for_each_index(upper ? "triu_indices" : "tril_indices", count,
                   TriangleIndices<T>{{columns, offset, upper}, count, out.data_ptr<T>()});
  }
};

void triangle_indices(const Tensor& out, int64_t columns, int64_t offset, bool upper) {
  pick<IndicesLoop>(IntegerTypes(), out.scalar_type(), upper ? "triu_indices" : "tril_indices")(out, columns, offset,
                                                                                                upper);
}

}  // namespace

void register_triangular() {
  kernels::triangle.set(kCUDA, triangle);
  kernels::triangle_indices.set(kCUDA, triangle_indices);
}

}  // namespace rush::cuda
