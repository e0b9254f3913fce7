#include "core/ops/index/embedding_bag.h"

#include <algorithm>

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

void check(const EmbeddingBags& call) {
  const int64_t* index = call.indices.data_ptr<int64_t>();
  const int64_t *offset = call.offsets.data_ptr<int64_t>(), rows = call.weight.size(0);
  const int64_t n = call.indices.numel(), count = call.offsets.numel();
  RUSH_CHECK_VALUE(count == 0 || offset[0] == 0, "embedding_bag: the first offset must be 0, got ", offset[0]);
  for (int64_t b = 0; b < count; ++b) {
    const int64_t before = b == 0 ? 0 : offset[b - 1];
    RUSH_CHECK_VALUE(offset[b] >= before && offset[b] <= n, "embedding_bag: offset ", offset[b], " follows ", before,
                     "; expected ascending offsets up to the ", n, " indices");
  }
  for (int64_t i = 0; i < n; ++i) {
    RUSH_CHECK_INDEX(index[i] >= 0 && index[i] < rows, "embedding_bag: index out of range in self: index ", index[i],
                     " is out of bounds for dimension 0 with size ", rows);
  }
}

template <class T>
struct Bag {
  using Math = opmath_t<T>;
  const EmbeddingBags& call;
  int64_t begin, end, d;

  template <class Visit>
  int64_t for_each_row(const Visit& visit) const {
    const int64_t* index = call.indices.data_ptr<int64_t>();
    const T* weight = call.weight.data_ptr<T>();
    int64_t rows = 0;
    for (int64_t i = begin; i < end; ++i) {
      if (index[i] == call.padding) continue;
      visit(i, index[i], weight + index[i] * d);
      ++rows;
    }
    return rows;
  }

  int64_t add_up(T* out, std::vector<Math>& total) const {
    std::fill(total.begin(), total.end(), Math(0));
    const T* scale = call.per_sample_weights.defined() ? call.per_sample_weights.data_ptr<T>() : nullptr;
    const int64_t rows = for_each_row([&](int64_t i, int64_t, const T* row) {
      const Math factor = scale ? static_cast<Math>(scale[i]) : Math(1);
      for (int64_t c = 0; c < d; ++c) total[static_cast<size_t>(c)] += factor * static_cast<Math>(row[c]);
    });
    const Math divisor = call.mode == BagMode::Mean && rows > 0 ? static_cast<Math>(rows) : Math(1);
    for (int64_t c = 0; c < d; ++c) out[c] = static_cast<T>(total[static_cast<size_t>(c)] / divisor);
    return rows;
  }

  int64_t maximum(T* out, int64_t* from) const {
    std::fill_n(out, d, T(0));
    std::fill_n(from, d, 0);
    bool first = true;
    return for_each_row([&](int64_t, int64_t number, const T* row) {
      for (int64_t c = 0; c < d; ++c) {
        if (!first && !(static_cast<Math>(row[c]) > static_cast<Math>(out[c]))) continue;
        out[c] = row[c];
        from[c] = number;
      }
      first = false;
    });
  }
};

struct BagLoop {
  template <class T>
  static void run(const EmbeddingBags& call) {
    const int64_t bags = call.output.size(0), d = call.output.size(1), n = call.indices.numel();
    const int64_t* offset = call.offsets.data_ptr<int64_t>();
    int64_t *bag_of = call.bag_of_index.data_ptr<int64_t>(), *sizes = call.sizes.data_ptr<int64_t>();
    T* out = call.output.data_ptr<T>();
    int64_t* maxima = call.maxima.data_ptr<int64_t>();
    const bool is_max = call.mode == BagMode::Max, has_bags = call.bag_of_index.numel() > 0;
    const int64_t work = std::max<int64_t>(1, n * d / std::max<int64_t>(bags, 1));
    parallel_for(0, bags, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
      std::vector<opmath_t<T>> total(static_cast<size_t>(d));
      for (int64_t b = begin; b < end; ++b) {
        // The last bag reaches to the end, whatever the offset behind it says.
        const Bag<T> bag{call, offset[b], b + 1 < bags ? offset[b + 1] : n, d};
        if (has_bags) std::fill(bag_of + bag.begin, bag_of + bag.end, b);
        const int64_t rows = is_max ? bag.maximum(out + b * d, maxima + b * d) : bag.add_up(out + b * d, total);
        sizes[b] = call.mode == BagMode::Sum ? 0 : rows;
        if (!is_max) maxima[b] = sizes[b];
      }
    });
  }
};

void embedding_bag(const EmbeddingBags& call) {
  check(call);
  pick<BagLoop>(RealFloatTypes(), call.weight.scalar_type(), "embedding_bag")(call);
}

}  // namespace

void register_embedding_bag() { kernels::embedding_bag.set(kCPU, embedding_bag); }

}  // namespace rush::cpu
