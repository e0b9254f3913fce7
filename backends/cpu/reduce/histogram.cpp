#include "core/ops/reduce/histogram.h"

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "backends/functors/histogram.h"

namespace rush::cpu {

namespace {

struct HistcLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, double min, double max) {
    using Math = opmath_t<T>;
    const T* x = input.const_data_ptr<T>();
    const int64_t bins = output.numel();
    const functors::BinOf<T> bin_of(min, max, bins);
    std::vector<int64_t> counts(static_cast<size_t>(bins), 0);
    for (int64_t i = 0; i < input.numel(); ++i) {
      if (const int64_t bin = bin_of(x[i]); bin >= 0) ++counts[static_cast<size_t>(bin)];
    }
    T* out = output.data_ptr<T>();
    for (int64_t b = 0; b < bins; ++b) out[b] = static_cast<T>(static_cast<Math>(counts[static_cast<size_t>(b)]));
  }
};

template <class T, class Out>
void count_into(Out* out, const T* x, const Out* weights, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[x[i]] += weights ? weights[i] : Out(1);
}

struct BincountLoop {
  template <class T>
  static void run(const Tensor& output, const Tensor& input, const Tensor& weights) {
    const T* x = input.const_data_ptr<T>();
    const auto into = [&](auto* out) {
      using Out = std::remove_pointer_t<decltype(out)>;
      count_into<T, Out>(out, x, weights.defined() ? weights.data_ptr<Out>() : nullptr, input.numel());
    };
    switch (output.scalar_type()) {
      case kInt64: return into(output.data_ptr<int64_t>());
      case kFloat32: return into(output.data_ptr<float>());
      default: return into(output.data_ptr<double>());
    }
  }
};

}  // namespace

void register_histogram() {
  set_by_dtype<kernels::histc, HistcLoop, RealFloatTypes, 1>(kCPU);
  set_by_dtype<kernels::bincount, BincountLoop, IntegerTypes, 1>(kCPU);
}

}  // namespace rush::cpu
