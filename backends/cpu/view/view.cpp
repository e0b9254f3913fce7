#include "core/ops/view/view.h"

#include <algorithm>

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"

namespace rush::cpu {

namespace {

struct Dimension {
  int64_t size, out_stride, in_stride;
};

template <class T>
void add_strided(T* out, const T* in, const Dimension* dims, size_t count) {
  if (count == 0) {
    *out = *out + *in;
    return;
  }
  const auto [size, out_stride, in_stride] = *dims;
  if (count > 1) {
    for (int64_t i = 0; i < size; ++i) add_strided(out + i * out_stride, in + i * in_stride, dims + 1, count - 1);
    return;
  }
  for (int64_t i = 0; i < size; ++i) out[i * out_stride] = out[i * out_stride] + in[i * in_stride];
}

struct StridedSumLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& values, IntArrayRef strides, int64_t offset) {
    if (values.numel() == 0) return;
    std::vector<Dimension> dims;
    for (size_t d = 0; d < strides.size(); ++d) {
      if (values.sizes()[d] > 1) dims.push_back({values.sizes()[d], strides[d], values.strides()[d]});
    }
    std::stable_sort(dims.begin(), dims.end(),
                     [](const Dimension& a, const Dimension& b) { return a.out_stride > b.out_stride; });
    T* to = out.data_ptr<T>() + offset;
    const T* from = values.data_ptr<T>();
    // Threads may share the outermost dimension when its steps do not touch what another step touches.
    int64_t reach = 0;
    for (size_t d = 1; d < dims.size(); ++d) reach += (dims[d].size - 1) * dims[d].out_stride;
    if (dims.empty() || dims[0].out_stride <= reach) return add_strided(to, from, dims.data(), dims.size());
    const Dimension outer = dims[0];
    const int64_t grain = std::max<int64_t>(1, kGrain * outer.size / values.numel());
    parallel_for(0, outer.size, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        add_strided(to + i * outer.out_stride, from + i * outer.in_stride, dims.data() + 1, dims.size() - 1);
      }
    });
  }
};

}  // namespace

void register_view() {
  set_by_dtype<kernels::strided_sum, StridedSumLoop, TypeList<float, double, complex<float>, complex<double>>, 1>(kCPU);
}

}  // namespace rush::cpu
