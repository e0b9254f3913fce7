// kthvalue, median and mode, from the order of each line.
#include "core/ops/reduce/order_statistics.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/line_order.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/cuda/kernels/reduce/short_lines.h"
#include "backends/cuda/kernels/rows.h"
#include "backends/functors/first_where.h"
#include "backends/functors/sort_key.h"

namespace rush::cuda {

namespace {

template <class T>
struct ShortKthValue {
  T* values;
  int64_t* indices;
  ShortLines<T> lines;
  int64_t k;
  __device__ void operator()(int64_t line) const {
    const int64_t at = functors::quick_select(lines.load(line, false), lines.places.size, k - 1);
    values[line] = lines.value(line, at);
    indices[line] = at;
  }
};

struct KthValueLoop {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape, int64_t k) {
    const Scratch room(ShortLines<T>::nbytes(shape));
    for_each_index("kthvalue", shape.outer * shape.inner,
                   ShortKthValue<T>{values.data_ptr<T>(), indices.data_ptr<int64_t>(), {input, shape, room}, k});
  }
};

void kthvalue(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape, int64_t k) {
  const char* op = kernels::kthvalue.name();
  if (shape.size > kShortLine) return take_sorted(op, values, indices, input, shape, false, {k - 1, 1});
  pick<KthValueLoop>(RealAndBoolTypes(), input.scalar_type(), op)(values, indices, input, shape, k);
}

void median(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape, bool ignore_nan) {
  take_sorted(kernels::median.name(), values, indices, input, shape, false, Ranks::of_median(ignore_nan));
}

// The end of a group of equal elements in a sorted line, and how many they are.
struct Group {
  int64_t length, last;
};
struct Longest {
  __device__ Group combine(const Group& a, const Group& b) const {
    return a.length > b.length || (a.length == b.length && a.last < b.last) ? a : b;
  }
};

// The last element of the longest group, of the smallest one of several. A row of threads takes a line.
template <class T>
__global__ void __launch_bounds__(1024)
    mode_kernel(T* values, int64_t* indices, const T* x, const int64_t* order, int64_t lines, const LinePlaces places) {
  const int64_t line = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y, size = places.size;
  const int64_t* numbers = order + line * size;
  const auto key = [&](int64_t k) { return functors::sort_key(x[places.of(numbers[k])]); };
  Group best{0, 0};
  for (int64_t k = threadIdx.x; line < lines && k < size; k += blockDim.x) {
    const auto own = key(k);
    if (k + 1 < size && key(k + 1) == own) continue;
    if (k < best.length || key(k - best.length) != own) continue;  // not longer than the best so far
    best = {k + 1 - functors::first_where(k, [&](int64_t i) { return key(i) == own; }), k};
  }
  best = combine_row(best, Longest());
  if (threadIdx.x != 0 || line >= lines) return;
  values[line] = x[places.of(numbers[best.last])];
  indices[line] = numbers[best.last] % size;
}

struct ModeLoop {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape) {
    const int64_t lines = shape.outer * shape.inner;
    if (lines == 0) return;
    const char* op = kernels::mode.name();
    const LineOrder sorted(op, input, shape, false);
    const RowLaunch launch(lines, shape.size, 4);
    launch_kernel(op, mode_kernel<T>, {launch.grid, launch.block}, values.data_ptr<T>(), indices.data_ptr<int64_t>(),
                  input.data_ptr<T>(), sorted.order(), lines, LinePlaces(shape));
  }
};

}  // namespace

void register_order_statistics() {
  kernels::kthvalue.set(kCUDA, kthvalue);
  kernels::median.set(kCUDA, median);
  set_by_dtype<kernels::mode, ModeLoop, RealAndBoolTypes, 2>(kCUDA);
}

}  // namespace rush::cuda
