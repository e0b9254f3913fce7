// Products, and counts of what is not zero: any, all and count_nonzero.
#include "backends/cuda/kernels/reduce/reduce_engine.h"
#include "backends/cuda/kernels/reduce/register_reductions.h"
#include "backends/functors/reduce.h"
#include "core/ops/reduce/reduce.h"

namespace rush::cuda {

namespace {

struct ProdLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef dims) {
    if constexpr (std::is_integral_v<T>) {
      reduce_to<T, int64_t>("prod", functors::Prod<T, int64_t>(), output, input, dims);
    } else {
      reduce_to<T, T>("prod", functors::Prod<opmath_t<T>>(), output, input, dims);
    }
  }
};

enum class Ask { HowMany, Any, All };

struct StoreAnswer {
  void* out;
  Ask ask;
  int64_t all;
  __device__ void operator()(int64_t at, int64_t count) const {
    if (ask == Ask::HowMany) {
      static_cast<int64_t*>(out)[at] = count;
    } else {
      static_cast<bool*>(out)[at] = ask == Ask::Any ? count > 0 : count == all;
    }
  }
};

struct CountLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, IntArrayRef dims, Ask ask) {
    reduce_with<T>("count_nonzero", functors::CountNonzero<opmath_t<T>>(), output, input, dims,
                   StoreAnswer{output.data_ptr(), ask, functors::elements_each(input, dims)});
  }
};

template <Ask ask>
void count(const Tensor& output, const Tensor& input, IntArrayRef dims) {
  pick<CountLoop>(AllTypes(), input.scalar_type(), "count_nonzero")(output, input, dims, ask);
}

}  // namespace

void register_reduce_count() {
  set_by_dtype<kernels::prod, ProdLoop, AllTypes, 1>(kCUDA);
  kernels::any.set(kCUDA, count<Ask::Any>);
  kernels::all.set(kCUDA, count<Ask::All>);
  kernels::count_nonzero.set(kCUDA, count<Ask::HowMany>);
}

}  // namespace rush::cuda
