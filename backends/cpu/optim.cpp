#include "core/ops/optim.h"

#include <algorithm>

#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "backends/functors/optim.h"

namespace rush::cpu {

namespace {

// Calls body(i, begin, end) for stretches of tensor number i, so that threads share the elements of all tensors evenly.
template <class Body>
void for_each_stretch(TensorList tensors, const Body& body) {
  std::vector<int64_t> starts = {0};
  for (const Tensor& tensor : tensors) starts.push_back(starts.back() + tensor.numel());
  parallel_for(0, starts.back(), kGrain, [&](int64_t begin, int64_t end) {
    auto next = static_cast<size_t>(std::upper_bound(starts.begin(), starts.end(), begin) - starts.begin());
    for (size_t i = next - 1; i < tensors.size() && starts[i] < end; ++i) {
      body(i, std::max(begin, starts[i]) - starts[i], std::min(end, starts[i + 1]) - starts[i]);
    }
  });
}

struct SgdLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList buffers, const SgdStep& step) {
    using Math = opmath_t<T>;
    const functors::Sgd<Math> sgd(step);
    for_each_stretch(params, [&](size_t i, int64_t begin, int64_t end) {
      T* p = params[i].data_ptr<T>();
      const T* g = grads[i].data_ptr<T>();
      if (!sgd.has_momentum) {
#pragma GCC ivdep
        for (int64_t k = begin; k < end; ++k) {
          Math param = static_cast<Math>(p[k]), unused(0);
          sgd(param, static_cast<Math>(g[k]), unused);
          p[k] = static_cast<T>(param);
        }
        return;
      }
      T* b = buffers[i].data_ptr<T>();
#pragma GCC ivdep
      for (int64_t k = begin; k < end; ++k) {
        Math param = static_cast<Math>(p[k]), buffer = static_cast<Math>(b[k]);
        sgd(param, static_cast<Math>(g[k]), buffer);
        p[k] = static_cast<T>(param);
        b[k] = static_cast<T>(buffer);
      }
    });
  }
};

struct AdamLoop {
  template <class T>
  static void run(TensorList params, TensorList grads, TensorList means, TensorList squares, TensorList max_squares,
                  ArrayRef<int64_t> steps, const AdamStep& step) {
    using Math = opmath_t<T>;
    for_each_stretch(params, [&](size_t i, int64_t begin, int64_t end) {
      const functors::Adam<Math> adam(step, steps[i]);
      T *p = params[i].data_ptr<T>(), *m = means[i].data_ptr<T>(), *v = squares[i].data_ptr<T>();
      T* largest = step.amsgrad ? max_squares[i].data_ptr<T>() : nullptr;
      const T* g = grads[i].data_ptr<T>();
#pragma GCC ivdep
      for (int64_t k = begin; k < end; ++k) {
        Math param = static_cast<Math>(p[k]), mean = static_cast<Math>(m[k]), square = static_cast<Math>(v[k]);
        Math max_square = largest ? static_cast<Math>(largest[k]) : Math(0);
        adam(param, static_cast<Math>(g[k]), mean, square, max_square);
        p[k] = static_cast<T>(param);
        m[k] = static_cast<T>(mean);
        v[k] = static_cast<T>(square);
        if (largest) largest[k] = static_cast<T>(max_square);
      }
    });
  }
};

void fused_sgd(TensorList params, TensorList grads, TensorList buffers, const SgdStep& step) {
  if (params.empty()) return;
  pick<SgdLoop>(RealFloatTypes(), params[0].scalar_type(), "SGD")(params, grads, buffers, step);
}

void fused_adam(TensorList params, TensorList grads, TensorList means, TensorList squares, TensorList max_squares,
                ArrayRef<int64_t> steps, const AdamStep& step) {
  if (params.empty()) return;
  pick<AdamLoop>(RealFloatTypes(), params[0].scalar_type(), "Adam")(params, grads, means, squares, max_squares, steps,
                                                                    step);
}

}  // namespace

void register_optim() {
  kernels::fused_sgd.set(kCPU, fused_sgd);
  kernels::fused_adam.set(kCPU, fused_adam);
}

}  // namespace rush::cpu
