#include "core/ops/index/embedding_bag.h"

#include "backends/cuda/device_assert.h"
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"

namespace rush::cuda {

namespace {

// What all columns of a bag share.
struct Bags {
  const int64_t *indices, *offsets;
  int64_t count, n, rows, padding;

  // The indices of bag b; the last bag reaches to the end, whatever the offset behind it says.
  __device__ int64_t begin(int64_t b) const { return std::clamp<int64_t>(offsets[b], 0, n); }
  __device__ int64_t end(int64_t b) const { return b + 1 < count ? std::clamp<int64_t>(offsets[b + 1], 0, n) : n; }
  __device__ bool counts(int64_t i) const { return indices[i] != padding && indices[i] >= 0 && indices[i] < rows; }
};

// Checks a bag, and writes its number beside its indices and how many of them count.
struct MeasureBag {
  Bags bags;
  int64_t *bag_of_index, *sizes;
  DeviceCheck check_index, check_offset;
  __device__ void operator()(int64_t b) const {
    const int64_t offset = bags.offsets[b], before = b == 0 ? 0 : bags.offsets[b - 1];
    RUSH_DEVICE_CHECK(b == 0 ? offset == 0 : offset >= before && offset <= bags.n, check_offset, offset, bags.n);
    int64_t size = 0;
    for (int64_t i = bags.begin(b); i < bags.end(b); ++i) {
      const int64_t index = bags.indices[i];
      RUSH_DEVICE_CHECK(index >= 0 && index < bags.rows, check_index, index, bags.rows);
      bag_of_index[i] = b;
      size += bags.counts(i);
    }
    sizes[b] = size;
  }
};

template <class T>
struct BagColumn {
  using Math = opmath_t<T>;
  Bags bags;
  const T *weight, *scale;  // scale may be null: ones
  T* out;
  int64_t* maxima;  // for BagMode::Max
  const int64_t* sizes;
  int64_t d;
  BagMode mode;

  __device__ Math element(int64_t i, int64_t c) const { return static_cast<Math>(weight[bags.indices[i] * d + c]); }
  __device__ void operator()(int64_t task) const {
    const int64_t b = task / d, c = task % d;
    mode == BagMode::Max ? largest(task, b, c) : total(task, b, c);
  }
  __device__ void total(int64_t task, int64_t b, int64_t c) const {
    Math sum(0);
    for (int64_t i = bags.begin(b); i < bags.end(b); ++i) {
      if (bags.counts(i)) sum += (scale ? static_cast<Math>(scale[i]) : Math(1)) * element(i, c);
    }
    out[task] = static_cast<T>(mode == BagMode::Mean && sizes[b] > 0 ? sum / static_cast<Math>(sizes[b]) : sum);
  }
  __device__ void largest(int64_t task, int64_t b, int64_t c) const {
    Math best(0);
    int64_t from = 0;
    bool first = true;
    for (int64_t i = bags.begin(b); i < bags.end(b); ++i) {
      if (!bags.counts(i)) continue;
      const Math value = element(i, c);
      if (first || value > best) {
        best = value;
        from = bags.indices[i];
      }
      first = false;
    }
    out[task] = static_cast<T>(best);
    maxima[task] = from;
  }
};

struct BagLoop {
  template <class T>
  static void run(const EmbeddingBags& call) {
    const char* op = kernels::embedding_bag.name();
    const int64_t d = call.output.size(1);
    const Bags bags{call.indices.data_ptr<int64_t>(),
                    call.offsets.data_ptr<int64_t>(),
                    call.output.size(0),
                    call.indices.numel(),
                    call.weight.size(0),
                    call.padding};
    int64_t* sizes = call.sizes.data_ptr<int64_t>();
    for_each_index(op, bags.count,
                   MeasureBag{bags, call.bag_of_index.data_ptr<int64_t>(), sizes, device_check("embedding_bag"),
                              device_check("embedding_bag (offsets)")});
    for_each_index(
        op, call.output.numel(),
        BagColumn<T>{bags, call.weight.data_ptr<T>(),
                     call.per_sample_weights.defined() ? call.per_sample_weights.data_ptr<T>() : nullptr,
                     call.output.data_ptr<T>(), call.mode == BagMode::Max ? call.maxima.data_ptr<int64_t>() : nullptr,
                     sizes, d, call.mode});
  }
};

void embedding_bag(const EmbeddingBags& call) {
  pick<BagLoop>(RealFloatTypes(), call.weight.scalar_type(), "embedding_bag")(call);
}

}  // namespace

void register_embedding_bag() { kernels::embedding_bag.set(kCUDA, embedding_bag); }

}  // namespace rush::cuda
