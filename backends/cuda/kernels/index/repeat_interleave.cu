#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/read_back.h"
#include "backends/cuda/kernels/reduce/reduce_engine.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/functors/first_where.h"
#include "backends/functors/reduce.h"
#include "core/ops/index/index_select.h"
#include "core/ops/reduce/scan.h"

namespace rush::cuda {

namespace {

// Element t belongs to the first i that ends after it.
struct RepeatOf {
  int64_t* out;
  const int64_t* ends;
  int64_t n;
  __device__ void operator()(int64_t t) const {
    out[t] = functors::first_where(n, [&](int64_t i) { return ends[i] > t; });
  }
};

void repeat_interleave(const Tensor& repeats, std::optional<int64_t> output_size, Tensor& out) {
  const int64_t n = repeats.numel();
  int64_t total = 0;
  const Tensor ends = rush::detail::empty_contiguous(n, kInt64, repeats.device());
  if (n > 0) {
    using Smallest = functors::Min<int64_t>;
    const Scratch smallest(sizeof(int64_t));
    reduce_dims("repeat_interleave", repeats.data_ptr<int64_t>(), Smallest(),
                StoreResult<int64_t, Smallest>{smallest.as<int64_t>(), Smallest()}, {{n, 1, 0, true}});
    const int64_t least = read_back(smallest.as<int64_t>());
    RUSH_CHECK_VALUE(least >= 0, "repeat_interleave: cannot repeat ", least, " times");
    kernels::cumsum(kCUDA, ends, repeats, AlongDim(1, n, 1));
    total = read_back(ends.data_ptr<int64_t>() + n - 1);
    RUSH_CHECK_VALUE(total >= 0, "repeat_interleave: the repeats are too many");
  }
  RUSH_CHECK_VALUE(!output_size || *output_size == total, "repeat_interleave: output_size is ", *output_size,
                   ", the repeats sum to ", total);
  out = rush::detail::empty_contiguous(total, kInt64, repeats.device());
  for_each_index("repeat_interleave", total, RepeatOf{out.data_ptr<int64_t>(), ends.data_ptr<int64_t>(), n});
}

}  // namespace

void register_repeat_interleave() { kernels::repeat_interleave.set(kCUDA, repeat_interleave); }

}  // namespace rush::cuda
