#include "core/ops/reduce.h"

#include <algorithm>

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

struct SumLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef dims) {
    using Math = opmath_t<T>;
    // One output element a step: its input position comes from the kept dimensions, then all reduced ones are walked.
    DimVector kept_sizes, kept_strides, sizes, strides;
    for (int64_t d = 0; d < input.dim(); ++d) {
      const bool reduced = std::find(dims.begin(), dims.end(), d) != dims.end();
      (reduced ? sizes : kept_sizes).push_back(input.size(d));
      (reduced ? strides : kept_strides).push_back(input.stride(d));
    }
    const T* in = input.data_ptr<T>();
    T* out = output.data_ptr<T>();
    int64_t count = 1;
    for (int64_t size : sizes) count *= size;
    parallel_for(0, output.numel(), std::max<int64_t>(1, kGrain / std::max<int64_t>(count, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t o = begin; o < end; ++o) {
                     int64_t offset = 0, rest = o;
                     for (size_t d = kept_sizes.size(); d-- > 0;) {
                       offset += rest % kept_sizes[d] * kept_strides[d];
                       rest /= kept_sizes[d];
                     }
                     Math total(0);
                     for (int64_t i = 0; i < count; ++i) {
                       int64_t at = offset, left = i;
                       for (size_t d = sizes.size(); d-- > 0;) {
                         at += left % sizes[d] * strides[d];
                         left /= sizes[d];
                       }
                       total = total + static_cast<Math>(in[at]);
                     }
                     out[o] = static_cast<T>(total);
                   }
                 });
  }
};

void sum(const Tensor& output, const Tensor& input, IntArrayRef dims) {
  pick<SumLoop>(NumberTypes(), input.scalar_type(), "sum")(output, input, dims);
}

}  // namespace

void register_reduce() { kernels::sum.set(kCPU, sum); }

}  // namespace rush::cpu
