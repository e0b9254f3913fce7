// What has no derivative and says so, where a gradient would otherwise miss a part without a word: operators that have
// real results of real tensors, when a gradient reaches them, and arguments that others take for constants.
#include "autograd/derivatives/register.h"
#include "core/dispatch/schema.h"
#include "core/ops/factory/range.h"
#include "core/ops/nn/fused.h"
#include "core/ops/nn/fused_attention.h"
#include "core/ops/nn/grid_sampler.h"
#include "core/ops/nn/loss.h"
#include "core/ops/nn/norm.h"
#include "core/ops/nn/recurrent.h"
#include "core/ops/nn/recurrent_layer.h"
#include "core/ops/optim/foreach.h"
#include "core/ops/pointwise/power.h"
#include "core/ops/pointwise/special.h"
#include "core/ops/reduce/unique.h"

namespace rush {

void detail::throw_no_gradient_by(const OpBase& op, size_t argument) {
  RUSH_THROW(NotImplementedError, op.name(), ": there is no derivative by '",
             Schema::parse(op.schema()).arguments[argument].name, "', which must not require a gradient");
}

namespace {

template <auto& op>
struct NoDerivative final : Node {
  Tensors apply(const Tensors&) override {
    RUSH_THROW(NotImplementedError, "the derivative of ", op.name(), " is not implemented");
  }
};

template <auto&... ops>
void refuse(Registry& r) {
  (derive<ops, NoDerivative<ops>>(r), ...);
}

}  // namespace

void register_missing_derivatives(Registry& r) {
  // PyTorch has none of these either.
  refuse<ops::heaviside, ops::heaviside_, ops::nextafter, ops::nextafter_>(r);
  refuse<ops::special_airy_ai, ops::special_bessel_j0, ops::special_bessel_j1, ops::special_bessel_y0,
         ops::special_bessel_y1, ops::special_spherical_bessel_j0>(r);
  refuse<ops::special_modified_bessel_k0, ops::special_modified_bessel_k1, ops::special_scaled_modified_bessel_k0,
         ops::special_scaled_modified_bessel_k1>(r);
  refuse<ops::linspace_Tensor_Tensor, ops::linspace_Tensor_Scalar, ops::linspace_Scalar_Tensor>(r);
  refuse<ops::logspace_Tensor_Tensor, ops::logspace_Tensor_Scalar, ops::logspace_Scalar_Tensor>(r);
  refuse<ops::_unique, ops::_unique2, ops::unique_dim, ops::unique_consecutive, ops::unique_dim_consecutive>(r);
  // Second derivatives go by other operators: Note [Fused backward passes].
  refuse<ops::native_layer_norm_backward, ops::_fused_rms_norm_backward, ops::native_group_norm_backward,
         ops::native_batch_norm_backward, ops::native_batch_norm_relu_backward>(r);
  refuse<ops::add_layer_norm_backward, ops::gelu_perceptron_backward, ops::linear_parameter_gradients, ops::linear_gelu,
         ops::gelu_bias_backward_>(r);
  refuse<ops::cross_entropy_backward, ops::grid_sampler_2d_backward, ops::grid_sampler_3d_backward,
         ops::recurrent_layer_backward>(r);
  refuse<ops::_scaled_dot_product_flash_attention_for_cpu_backward,
         ops::_scaled_dot_product_efficient_attention_backward, ops::_scaled_dot_product_cudnn_attention_backward>(r);
  refuse<ops::lstm_gates, ops::gru_gates>(r);
  refuse<ops::foreach_norms, ops::foreach_total_norm, ops::foreach_to_copy>(r);
}

}  // namespace rush
