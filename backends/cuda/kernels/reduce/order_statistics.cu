// kthvalue, median and mode, from the order of each line.
#include "core/ops/reduce/order_statistics.h"

#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/line_order.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/cuda/kernels/reduce/short_lines.h"
#include "backends/functors/first_where.h"
#include "backends/functors/reduce.h"

namespace rush::cuda {

namespace {

template <class T>
struct Lines {
  using Math = opmath_t<T>;
  T* values;
  int64_t* indices;
  const T* x;
  const int64_t* order;
  LinePlaces places;

  __device__ Math sorted(int64_t line, int64_t k) const {
    return static_cast<Math>(x[places.of(order[line * places.size + k])]);
  }
  // The element that comes k-th in its line.
  __device__ void store(int64_t line, int64_t k) const {
    const int64_t number = order[line * places.size + k];
    values[line] = x[places.of(number)];
    indices[line] = number % places.size;
  }
};

template <class T>
struct KthValue : Lines<T> {
  int64_t k;
  __device__ void operator()(int64_t line) const { this->store(line, k - 1); }
};

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

template <class T>
struct Median : Lines<T> {
  bool ignore_nan;
  __device__ void operator()(int64_t line) const {
    // NaNs come last, the first of them first.
    const int64_t size = this->places.size;
    const int64_t numbers =
        functors::first_where(size, [&](int64_t i) { return functors::is_nan(this->sorted(line, i)); });
    const bool has_nan = numbers < size;
    this->store(line, has_nan && !ignore_nan ? numbers : std::max<int64_t>(numbers - 1, 0) / 2);
  }
};

template <class T>
struct Mode : Lines<T> {
  __device__ void operator()(int64_t line) const {
    int64_t best = 0, longest = 0;
    for (int64_t i = 0, first = 0; i < this->places.size; ++i) {
      if (i + 1 < this->places.size && same(this->sorted(line, i), this->sorted(line, i + 1))) continue;
      if (i + 1 - first > longest) {
        longest = i + 1 - first;
        best = i;
      }
      first = i + 1;
    }
    this->store(line, best);
  }
  // All NaNs count as one value.
  __device__ static bool same(opmath_t<T> a, opmath_t<T> b) {
    return a == b || (functors::is_nan(a) && functors::is_nan(b));
  }
};

template <template <class> class Find>
struct FindLoop {
  template <class T, class... Rest>
  static void find(const char* op, const Tensor& values, const Tensor& indices, const Tensor& input,
                   const AlongDim& shape, Rest... rest) {
    const LineOrder sorted(op, input, shape, false);
    const Lines<T> lines{values.data_ptr<T>(), indices.data_ptr<int64_t>(), input.data_ptr<T>(), sorted.order(),
                         LinePlaces(shape)};
    for_each_index(op, shape.outer * shape.inner, Find<T>{lines, rest...});
  }
};

struct KthValueLoop : FindLoop<KthValue> {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape, int64_t k) {
    if (shape.size > kShortLine) return find<T>("kthvalue", values, indices, input, shape, k);
    const Scratch room(ShortLines<T>::nbytes(shape));
    for_each_index("kthvalue", shape.outer * shape.inner,
                   ShortKthValue<T>{values.data_ptr<T>(), indices.data_ptr<int64_t>(), {input, shape, room}, k});
  }
};
struct MedianLoop : FindLoop<Median> {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape,
                  bool ignore_nan) {
    find<T>("median", values, indices, input, shape, ignore_nan);
  }
};
struct ModeLoop : FindLoop<Mode> {
  template <class T>
  static void run(const Tensor& values, const Tensor& indices, const Tensor& input, const AlongDim& shape) {
    find<T>("mode", values, indices, input, shape);
  }
};

}  // namespace

void register_order_statistics() {
  set_by_dtype<kernels::kthvalue, KthValueLoop, RealAndBoolTypes, 2>(kCUDA);
  set_by_dtype<kernels::median, MedianLoop, RealAndBoolTypes, 2>(kCUDA);
  set_by_dtype<kernels::mode, ModeLoop, RealAndBoolTypes, 2>(kCUDA);
}

}  // namespace rush::cuda
