#include "core/ops/view/triangular.h"

#include <algorithm>

#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "backends/cuda/kernels/positions.h"
#include "backends/cuda/kernels/rows.h"

namespace rush::cuda {

namespace {

// Matrices that are walked together: where their rows start, and the strides along a row.
struct TriangleShape {
  Positions rows;  // the stride is the input's, the other one the output's
  int64_t height, columns, in_stride, out_stride;
};

// out[..., i, j] = in[..., i, j] on one side of a diagonal, 0 on the other. A row of threads has a row, in accesses of
// kLanes elements; for more than one, rows are contiguous and consist of aligned accesses.
template <class T, int kLanes>
__global__ void __launch_bounds__(1024)
    triangle_rows(T* out, const T* in, const __grid_constant__ TriangleShape shape, int64_t diagonal, bool upper) {
  const auto kept = [=](int64_t above) { return upper ? above >= diagonal : above <= diagonal; };
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.y;
  for (int64_t r = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; r < shape.rows.count; r += step) {
    int64_t from = 0, to = 0;
    shape.rows.locate(r, from, to);
    const int64_t i = r % shape.height;
    for (int64_t j = threadIdx.x * kLanes; j < shape.columns; j += blockDim.x * kLanes) {
      const int64_t last = j + kLanes - 1;
      Lanes<T, kLanes> values = {};
      if (kept((upper ? last : j) - i)) {                         // at least one of them
        if (out == in && kept((upper ? j : last) - i)) continue;  // all, and they are in place
        values = *reinterpret_cast<const Lanes<T, kLanes>*>(in + from + j * shape.in_stride);
#pragma unroll
        for (int l = 0; l < kLanes; ++l) {
          if (!kept(j + l - i)) values.lane[l] = T{};
        }
      }
      *reinterpret_cast<Lanes<T, kLanes>*>(out + to + j * shape.out_stride) = values;
    }
  }
}

// Whether the rows may be read and written in accesses of `lanes` elements.
template <int lanes, class T>
bool has_wide_rows(const TriangleShape& shape, const T* out, const T* in) {
  bool wide = shape.in_stride == 1 && shape.out_stride == 1 && shape.columns % lanes == 0 &&
              reinterpret_cast<uintptr_t>(out) % 16 == 0 && reinterpret_cast<uintptr_t>(in) % 16 == 0;
  for (int d = 0; d < shape.rows.dims; ++d) {
    const WalkDim& dim = shape.rows.dim[d];
    wide = wide && dim.stride % lanes == 0 && dim.other_stride % lanes == 0;
  }
  return wide;
}

struct TriangleLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& in, int64_t diagonal, bool upper) {
    if (in.numel() == 0) return;
    const char* op = upper ? "triu" : "tril";
    TriangleShape shape{{}, in.size(-2), in.size(-1), in.stride(-1), out.stride(-1)};
    for (int64_t d = in.dim() - 1; d-- > 0;) shape.rows.append(op, {in.size(d), in.stride(d), out.stride(d)});
    shape.rows.prepare();
    T* to = static_cast<T*>(out.data_ptr());
    const T* from = static_cast<const T*>(in.data_ptr());
    constexpr int kLanes = 16 / sizeof(T);
    const bool wide = has_wide_rows<kLanes>(shape, to, from);
    const int lanes = wide ? kLanes : 1;
    const auto l = RowLaunch::of_short_rows(shape.rows.count, shape.columns, lanes, lanes);
    launch_kernel(op, wide ? triangle_rows<T, kLanes> : triangle_rows<T, 1>, {l.grid, l.block}, to, from, shape,
                  diagonal, upper);
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
