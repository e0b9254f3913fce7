#include "core/ops/optim/amp.h"

#include <atomic>

#include "backends/cpu/optim/chunks.h"
#include "backends/cpu/register.h"
#include "backends/functors/amp.h"
#include "core/ops/optim/foreach.h"
#include "core/ops/pointwise/cast_all.h"

namespace rush::cpu {

namespace {

// Whether all were finite.
template <class T>
RUSH_NOINLINE bool unscale_stretch(functors::Unscale<opmath_t<T>> unscale, T* grad, int64_t n) {
  unsigned finite = 1;
  for (int64_t k = 0; k < n; ++k) {
    auto value = static_cast<opmath_t<T>>(grad[k]);
    finite &= static_cast<unsigned>(unscale(value));
    grad[k] = static_cast<T>(value);
  }
  return finite != 0;
}

struct UnscaleLoop {
  template <class T>
  static void run(TensorList grads, float& found_inf, float inv_scale) {
    const functors::Unscale<opmath_t<T>> functor{static_cast<opmath_t<T>>(inv_scale)};
    std::atomic<bool> finite = true;
    for_each_chunk(grads, [&](size_t i, int64_t begin, int64_t n) {
      if (!unscale_stretch(functor, grads[i].data_ptr<T>() + begin, n)) finite.store(false, std::memory_order_relaxed);
    });
    if (!finite) found_inf = 1;
  }
};

void unscale(TensorList grads, const Tensor& found_inf, const Tensor& inv_scale) {
  pick<UnscaleLoop>(RealFloatTypes(), grads[0].scalar_type(), "_amp_foreach_non_finite_check_and_unscale_")(
      grads, *found_inf.data_ptr<float>(), *inv_scale.data_ptr<float>());
}

void update_scale(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf,
                  const ScaleUpdate& update) {
  const functors::UpdateScale functor(update);
  functor(*scale.data_ptr<float>(), *growth_tracker.data_ptr<int32_t>(), *found_inf.data_ptr<float>());
}

}  // namespace

void register_amp() {
  kernels::unscale.set(kCPU, unscale);
  kernels::update_scale.set(kCPU, update_scale);
  kernels::cast_many.set_by_parts(kCPU, native::foreach_copy_by_parts);
}

}  // namespace rush::cpu
