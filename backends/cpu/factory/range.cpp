#include "core/ops/factory/range.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "backends/functors/range.h"

namespace rush::cpu {

namespace {

struct Generate {
  template <class T, class F>
  static void run(const char* /*op*/, const Tensor& out, const F& f) {
    T* data = out.data_ptr<T>();
    parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) data[i] = f(i);
    });
  }
};

}  // namespace

void register_range() { functors::set_ranges<Generate>(kCPU); }

}  // namespace rush::cpu
