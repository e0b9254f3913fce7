// The derivative of as_strided: what is read of each element is added up.
#include "backends/cuda/kernels/launch.h"
#include "backends/cuda/kernels/pointwise/register_pointwise.h"
#include "core/ops/view/view.h"

namespace rush::cuda {

namespace {

inline constexpr int kMaxSummedDims = 32;

// The order of additions to an element that several read is not fixed, as in PyTorch (index_add_).
__device__ void add_atomically(float* to, float value) { atomicAdd(to, value); }
__device__ void add_atomically(double* to, double value) { atomicAdd(to, value); }
template <class T>
__device__ void add_atomically(complex<T>* to, complex<T> value) {
  atomicAdd(reinterpret_cast<T*>(to), value.real());
  atomicAdd(reinterpret_cast<T*>(to) + 1, value.imag());
}

template <class T>
struct StridedSum {
  T* out;
  const T* in;
  bool overlaps;
  int dims;
  int64_t sizes[kMaxSummedDims], out_strides[kMaxSummedDims], in_strides[kMaxSummedDims];
  __device__ void operator()(int64_t i) const {
    int64_t rest = i, to = 0, from = 0;
    for (int d = dims - 1; d >= 0; --d) {
      const int64_t outer = rest / sizes[d];
      const int64_t position = rest - outer * sizes[d];
      rest = outer;
      to += position * out_strides[d];
      from += position * in_strides[d];
    }
    if (overlaps) {
      add_atomically(out + to, in[from]);
    } else {
      out[to] = out[to] + in[from];
    }
  }
};

struct StridedSumLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& values, IntArrayRef strides, int64_t offset) {
    RUSH_CHECK_NOT_IMPLEMENTED(values.dim() <= kMaxSummedDims, "strided_sum: more than ", kMaxSummedDims,
                               " dimensions");
    StridedSum<T> sum;
    sum.out = out.data_ptr<T>() + offset;
    sum.in = values.data_ptr<T>();
    sum.overlaps = may_overlap(values.sizes(), strides);
    sum.dims = static_cast<int>(values.dim());
    for (int d = 0; d < sum.dims; ++d) {
      const auto at = static_cast<size_t>(d);
      sum.sizes[d] = values.sizes()[at];
      sum.out_strides[d] = strides[at];
      sum.in_strides[d] = values.strides()[at];
    }
    for_each_index("strided_sum", values.numel(), sum);
  }
};

}  // namespace

void register_strided_sum() {
  set_by_dtype<kernels::strided_sum, StridedSumLoop, TypeList<float, double, complex<float>, complex<double>>, 1>(
      kCUDA);
}

}  // namespace rush::cuda
