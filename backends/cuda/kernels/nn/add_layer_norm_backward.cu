// The gradients of layer norm of a sum: see layer_norm_backward.h.
#include "backends/cuda/kernels/nn/layer_norm_backward.h"
#include "backends/functors/optional_data.h"
#include "core/ops/nn/fused.h"

namespace rush::cuda {

using namespace layer_norm;

namespace {

// The gradients of both addends of a normalised sum. Of rows that cannot be held in registers, by parts.
struct AddLayerNormBackwardLoop {
  template <class T>
  static void run(const Tensor& grad_self, const Tensor& grad_other, const Tensor& grad_weight, const Tensor& grad_bias,
                  const Tensor& grad_sums, const Tensor& grad_output, const Tensor& grad_sum, const Tensor& sum,
                  const Tensor& mean, const Tensor& rstd, const Tensor& weight, const Tensor& mask, int64_t columns,
                  double scale) {
    bool done = false;
    const auto in = [&](auto like, auto lowered) {
      using G = decltype(like);
      using L = decltype(lowered);
      if (done || grad_output.scalar_type() != scalar_type_of<G>) return;
      if (grad_other.defined() && grad_other.scalar_type() != scalar_type_of<L>) return;
      done = launch<T, G, L>(grad_self, grad_other, grad_weight, grad_bias, grad_sums, grad_output, grad_sum, sum, mean,
                             rstd, weight, mask, columns, scale);
    };
    in(T(), T());
    if constexpr (std::is_same_v<T, float>) {
      in(Half(), Half());
      in(BFloat16(), BFloat16());
      in(float(), Half());
      in(float(), BFloat16());
    }
    if (done) return;
    native::add_layer_norm_backward_by_parts(grad_self, grad_other, grad_weight, grad_bias, grad_sums, grad_output,
                                             grad_sum, sum, mean, rstd, weight, mask, columns, scale);
  }

 private:
  // False, with nothing done, for rows that are too long or not to be read as vectors.
  template <class T, class G, class L>
  static bool launch(const Tensor& grad_self, const Tensor& grad_other, const Tensor& grad_weight,
                     const Tensor& grad_bias, const Tensor& grad_sums, const Tensor& grad_output,
                     const Tensor& grad_sum, const Tensor& sum, const Tensor& mean, const Tensor& rstd,
                     const Tensor& weight, const Tensor& mask, int64_t columns, double scale) {
    using Math = opmath_t<T>;
    const Backward<T, G, L> call{grad_output.data_ptr<G>(),
                                 sum.data_ptr<T>(),
                                 grad_self.data_ptr<T>(),
                                 data_or_null<Math>(mean),
                                 rstd.data_ptr<Math>(),
                                 data_or_null<Math>(weight),
                                 rstd.numel(),
                                 columns,
                                 data_or_null<T>(grad_sum),
                                 data_or_null<L>(grad_other),
                                 data_or_null<bool>(mask),
                                 Scalar(scale).to<Math>()};
    // Null counts as aligned.
    const bool wide = rows_are_wide<T>(columns, call.dy, call.x, call.dx, call.through, call.lowered, call.mask);
    if (call.rows == 0 || columns == 0 || !wide || columns > RowAccess<T, true, kHold>::kLongest) return false;
    const GradientSums<Math, L> sums{data_or_null<Math>(grad_weight), data_or_null<Math>(grad_bias),
                                     data_or_null<L>(grad_sums)};
    if (!held<true, true>(kernels::add_layer_norm_backward.name(), call, sums))
      native::store_column_sums(grad_sums, grad_other);
    return true;
  }
};

}  // namespace

void register_add_layer_norm_backward() {
  set_by_dtype<kernels::add_layer_norm_backward, AddLayerNormBackwardLoop, RealFloatTypes, 7>(kCUDA);
}

}  // namespace rush::cuda
