// What autocast does to which operator: PyTorch's lists
// (https://docs.pytorch.org/docs/stable/amp.html#autocast-op-reference).
#include "core/amp/autocast_kernel.h"
#include "core/amp/register.h"
#include "core/ops/basic.h"
#include "core/ops/index/index.h"
#include "core/ops/linalg/distance.h"
#include "core/ops/linalg/einsum.h"
#include "core/ops/linalg/least_squares.h"
#include "core/ops/linalg/linalg.h"
#include "core/ops/nn/attention.h"
#include "core/ops/nn/conv.h"
#include "core/ops/nn/ctc_loss.h"
#include "core/ops/nn/fractional_pool.h"
#include "core/ops/nn/fused.h"
#include "core/ops/nn/grid_sampler.h"
#include "core/ops/nn/linear.h"
#include "core/ops/nn/loss.h"
#include "core/ops/nn/norm.h"
#include "core/ops/nn/pool.h"
#include "core/ops/nn/recurrent.h"
#include "core/ops/nn/softmax.h"
#include "core/ops/nn/upsample.h"
#include "core/ops/pointwise/activation.h"
#include "core/ops/pointwise/power.h"
#include "core/ops/reduce/order_statistics.h"
#include "core/ops/reduce/scan.h"
#include "core/ops/reduce/vector_norm.h"
#include "core/ops/view/pad.h"

namespace rush::autocast {

namespace {

// norm without a `dtype` argument: as Output32, through the overload that has one.
template <auto& op, auto& with_dtype, class... Rest>
Tensor norm_on_accelerator(const Tensor& self, Rest... rest) {
  const Device device = self.device();
  const bool is_on = device.is_accelerator() && is_autocast_enabled(device.type) && is_eligible(self, device.type);
  if (!is_on) return op.call_without(DispatchKey::Autocast, self, rest...);
  const Off off;
  return with_dtype(self, rest..., kFloat32);
}

void list_products(Registry& r) {
  list<Cast::Lower, Cast::Lower, ops::addbmm, ops::addmm, ops::baddbmm, ops::bmm, ops::conv1d, ops::conv2d, ops::conv3d,
       ops::conv_transpose1d, ops::conv_transpose2d, ops::conv_transpose3d, ops::linear, ops::matmul, ops::mm,
       ops::prelu, ops::scaled_dot_product_attention, ops::gelu_perceptron>(r);
  list<Cast::Lower, Cast::None, ops::conv1d_padding, ops::conv2d_padding, ops::conv3d_padding>(r);
  list<Cast::None, Cast::Lower, ops::addmv, ops::addr, ops::convolution, ops::einsum, ops::mv>(r);
}

// In PyTorch the products within them are lowered on the CPU, and the whole of them on CUDA, by cuDNN.
void list_recurrent(Registry& r) {
  list<Cast::Lower, Cast::Lower, ops::gru, ops::gru_data, ops::gru_cell, ops::lstm, ops::lstm_data, ops::lstm_cell,
       ops::rnn_relu, ops::rnn_relu_data, ops::rnn_relu_cell, ops::rnn_tanh, ops::rnn_tanh_data, ops::rnn_tanh_cell>(r);
}

void list_losses(Registry& r) {
  list<Cast::Float32, Cast::Float32, ops::binary_cross_entropy_with_logits, ops::cdist, ops::cosine_embedding_loss,
       ops::hinge_embedding_loss, ops::huber_loss, ops::kl_div, ops::l1_loss, ops::margin_ranking_loss, ops::mse_loss,
       ops::multi_margin_loss, ops::multilabel_margin_loss, ops::nll_loss, ops::nll_loss2d, ops::poisson_nll_loss,
       ops::smooth_l1_loss, ops::soft_margin_loss, ops::triplet_margin_loss>(r);
  list<Cast::Float32, Cast::Refuse, ops::binary_cross_entropy>(r);
  // On an accelerator it is made of operators that are on the list: log_softmax and nll_loss, as in PyTorch, or the
  // fused one, which computes in float32 whatever it is given, see Note [Fused cross entropy].
  list<Cast::Float32, Cast::None, ops::cross_entropy_loss>(r);
  list<Cast::None, Cast::Output32, ops::cross_entropy_forward>(r);
  list<Cast::Float32, Cast::None, ops::ctc_loss, ops::ctc_loss_IntList>(r);
}

// Operators that have no 16-bit kernel of their own in PyTorch.
void list_float32_on_cpu(Registry& r) {
  list<Cast::Float32, Cast::None, ops::adaptive_avg_pool3d, ops::adaptive_max_pool3d, ops::avg_pool3d,
       ops::fractional_max_pool2d, ops::fractional_max_pool3d, ops::grid_sampler_2d, ops::grid_sampler_3d,
       ops::max_pool3d, ops::max_unpool2d, ops::max_unpool3d, ops::nanquantile, ops::nanquantile_scalar, ops::polar,
       ops::quantile, ops::quantile_scalar, ops::reflection_pad1d, ops::reflection_pad2d, ops::replication_pad1d,
       ops::replication_pad2d, ops::replication_pad3d, ops::trace, ops::view_as_complex>(r);
  list<Cast::Float32, Cast::None, ops::linalg_cholesky, ops::linalg_eig, ops::linalg_eigh, ops::linalg_eigvals,
       ops::linalg_eigvalsh, ops::linalg_inv, ops::linalg_lstsq, ops::lu_solve, ops::pinverse, ops::linalg_qr,
       ops::linalg_solve, ops::linalg_svd, ops::linalg_svdvals>(r);
}

void list_float32_on_accelerators(Registry& r) {
  list<Cast::None, Cast::Float32, ops::acos, ops::asin, ops::cosh, ops::erfinv, ops::exp, ops::expm1, ops::log,
       ops::log10, ops::log1p, ops::log2, ops::pow, ops::pow_scalar, ops::pow_Scalar, ops::reciprocal, ops::rsqrt,
       ops::sinh, ops::softplus, ops::tan>(r);
  list<Cast::None, Cast::Float32, ops::cosine_similarity, ops::dist, ops::group_norm, ops::layer_norm, ops::logsumexp,
       ops::native_layer_norm, ops::pdist, ops::renorm>(r);
  list<Cast::None, Cast::Float32, ops::upsample_nearest1d, ops::upsample_nearest2d, ops::upsample_nearest3d,
       ops::_upsample_nearest_exact1d, ops::_upsample_nearest_exact2d, ops::_upsample_nearest_exact3d,
       ops::upsample_linear1d, ops::upsample_bilinear2d, ops::upsample_bicubic2d, ops::upsample_trilinear3d,
       ops::_upsample_bilinear2d_aa, ops::_upsample_bicubic2d_aa>(r);
  list<Cast::None, Cast::Output32, ops::cumprod, ops::cumsum, ops::linalg_matrix_norm, ops::linalg_matrix_norm_str_ord,
       ops::linalg_vector_norm, ops::log_softmax, ops::softmax, ops::sum, ops::sum_dim>(r);
  list<Cast::Float32, Cast::Output32, ops::prod, ops::prod_dim>(r);
  list<Cast::None, Cast::OutputLower, ops::add_layer_norm>(r);
  r.kernel(ops::norm, DispatchKey::Autocast, norm_on_accelerator<ops::norm, ops::norm_dtype, const Scalar&>);
  r.kernel(ops::norm_dim, DispatchKey::Autocast,
           norm_on_accelerator<ops::norm_dim, ops::norm_dim_dtype, const std::optional<Scalar>&, IntArrayRef, bool>);
}

void list_widest(Registry& r) {
  list<Cast::Widest, Cast::None, ops::cat, ops::index_copy, ops::stack>(r);
  list<Cast::None, Cast::Widest, ops::addcdiv, ops::addcmul, ops::atan2, ops::bilinear, ops::cross, ops::dot,
       ops::index_put, ops::scatter_add, ops::tensordot, ops::vdot>(r);
  list<Cast::Float32, Cast::Widest, ops::grid_sampler>(r);
}

}  // namespace

}  // namespace rush::autocast

namespace rush {

void register_autocast(Registry& registry) {
  autocast::list_products(registry);
  autocast::list_recurrent(registry);
  autocast::list_losses(registry);
  autocast::list_float32_on_cpu(registry);
  autocast::list_float32_on_accelerators(registry);
  autocast::list_widest(registry);
}

}  // namespace rush
