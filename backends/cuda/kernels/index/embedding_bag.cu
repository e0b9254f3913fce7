#include "core/ops/index/embedding_bag.h"

#include "backends/cuda/device_assert.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"

namespace rush::cuda {

namespace {

// A thread computes a column of a bag. That of the first column, which there is also where the table has none, checks
// the bag, and writes its number beside its indices and how many of them count.
template <class T>
struct BagColumn {
  using Math = opmath_t<T>;
  const int64_t *indices, *offsets;
  int64_t bags, n, rows, columns, padding;
  Divider threads;          // for a bag
  const T *weight, *scale;  // scale may be null: ones
  T* out;
  int64_t *bag_of_index, *sizes, *maxima;  // bag_of_index may be null
  BagMode mode;
  DeviceCheck check_index, check_offset;

  __device__ void operator()(int64_t task) const {
    const bool narrow = bags * columns < int64_t{1} << 31;
    const int64_t b = narrow ? threads.quotient(static_cast<uint32_t>(task)) : task / columns;
    const int64_t c = task - b * std::max<int64_t>(columns, 1);
    if (c == 0) check(b);
    const int64_t counted = mode == BagMode::Max ? largest(task, b, c) : total(task, b, c);
    if (c > 0) return;
    sizes[b] = mode == BagMode::Sum ? 0 : counted;
    if (mode != BagMode::Max) maxima[b] = sizes[b];
  }

 private:
  __device__ void check(int64_t b) const {
    const int64_t offset = offsets[b], before = b == 0 ? 0 : offsets[b - 1];
    RUSH_DEVICE_CHECK(b == 0 ? offset == 0 : offset >= before && offset <= n, check_offset, offset, n);
  }
  // visit(i, row) for the indices of bag b that count; the last bag reaches to the end, whatever the offset behind it
  // says. Returns their number.
  template <class Visit>
  __device__ int64_t for_each_row(int64_t b, int64_t c, const Visit& visit) const {
    const int64_t begin = std::clamp<int64_t>(offsets[b], 0, n);
    const int64_t end = b + 1 < bags ? std::clamp<int64_t>(offsets[b + 1], 0, n) : n;
    int64_t counted = 0;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = indices[i];
      const bool exists = row >= 0 && row < rows;
      if (c == 0) {
        RUSH_DEVICE_CHECK(exists, check_index, row, rows);
        if (bag_of_index) bag_of_index[i] = b;
      }
      if (!exists || row == padding) continue;
      if (c < columns) visit(i, row);
      ++counted;
    }
    return counted;
  }
  __device__ Math element(int64_t row, int64_t c) const { return static_cast<Math>(weight[row * columns + c]); }
  __device__ int64_t total(int64_t task, int64_t b, int64_t c) const {
    Math sum(0);
    const int64_t counted = for_each_row(b, c, [&](int64_t i, int64_t row) {
      sum += (scale ? static_cast<Math>(scale[i]) : Math(1)) * element(row, c);
    });
    const bool divides = mode == BagMode::Mean && counted > 0;
    if (c < columns) out[task] = static_cast<T>(divides ? sum / static_cast<Math>(counted) : sum);
    return counted;
  }
  __device__ int64_t largest(int64_t task, int64_t b, int64_t c) const {
    Math best(0);
    int64_t from = 0;
    bool first = true;
    const int64_t counted = for_each_row(b, c, [&](int64_t, int64_t row) {
      const Math value = element(row, c);
      if (first || value > best) {
        best = value;
        from = row;
      }
      first = false;
    });
    if (c < columns) {
      out[task] = static_cast<T>(best);
      maxima[task] = from;
    }
    return counted;
  }
};

struct BagLoop {
  template <class T>
  static void run(const EmbeddingBags& call) {
    const auto data = [](const Tensor& t) { return t.numel() > 0 ? t.data_ptr<int64_t>() : nullptr; };
    const int64_t bags = call.output.size(0), columns = call.output.size(1);
    const int64_t threads = std::max<int64_t>(columns, 1);
    for_each_index(kernels::embedding_bag.name(), bags * threads,
                   BagColumn<T>{call.indices.data_ptr<int64_t>(), call.offsets.data_ptr<int64_t>(), bags,
                                call.indices.numel(), call.weight.size(0), columns, call.padding,
                                Divider(static_cast<uint32_t>(threads)), call.weight.data_ptr<T>(),
                                call.per_sample_weights.defined() ? call.per_sample_weights.data_ptr<T>() : nullptr,
                                call.output.data_ptr<T>(), data(call.bag_of_index), data(call.sizes), data(call.maxima),
                                call.mode, device_check("embedding_bag"), device_check("embedding_bag (offsets)")});
  }
};

void embedding_bag(const EmbeddingBags& call) {
  pick<BagLoop>(RealFloatTypes(), call.weight.scalar_type(), "embedding_bag")(call);
}

}  // namespace

void register_embedding_bag() { kernels::embedding_bag.set(kCUDA, embedding_bag); }

}  // namespace rush::cuda
