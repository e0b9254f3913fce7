#include "tests/conformance/compare.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <string_view>

#include "rushlight.h"

namespace conformance {

using rush::Tensor;

namespace {

// Families whose results are sums, or solutions of linear systems, without "nn.functional." and the underscores that
// private and in-place operators have. A prefix ending in a dot stands for all below it.
constexpr std::string_view kSummingFamilies[] = {
    // reductions
    "sum", "nansum", "mean", "var", "std", "var_mean", "std_mean", "prod", "norm", "logsumexp", "cumsum", "cumprod",
    "logcumsumexp", "trace", "softmax", "log_softmax", "softmin", "renorm", "normalize", "cosine_similarity",
    "pairwise_distance", "trapezoid", "cumulative_trapezoid", "cov", "corrcoef", "segment_reduce", "embedding_bag",
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "rms_norm", "native_batch_norm", "native_group_norm",
    "native_layer_norm", "weight_norm", "weight_norm_interface",
    // losses
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy",
    "cross_entropy_loss", "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss", "nll_loss",
    "smooth_l1_loss", "triplet_margin_loss", "ctc_loss",
    // matrix products
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "cdist", "chain_matmul", "dot", "einsum", "euclidean_dist",
    "inner", "matmul", "mm", "mv", "tensordot", "vdot", "bilinear", "trilinear", "linear", "matrix_exp",
    "scaled_dot_product_attention", "scaled_dot_product_attention_math", "lstm", "gru", "rnn_tanh", "rnn_relu",
    "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell",
    // convolutions
    "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution",
    // transforms and linear algebra
    "fft.", "stft", "istft", "linalg.", "cholesky", "cholesky_inverse", "cholesky_solve", "det", "logdet", "slogdet",
    "inverse", "pinverse", "matrix_power", "qr", "svd", "lu_solve", "triangular_solve", "ormqr"};

bool sums(std::string_view family) {
  constexpr std::string_view kModule = "nn.functional.";
  if (family.starts_with(kModule)) family.remove_prefix(kModule.size());
  if (family.starts_with('_')) family.remove_prefix(1);
  if (family.ends_with('_')) family.remove_suffix(1);
  if (family.ends_with("_backward")) return true;
  return std::any_of(std::begin(kSummingFamilies), std::end(kSummingFamilies), [&](std::string_view each) {
    return each.ends_with('.') ? family.starts_with(each) : family == each;
  });
}

template <class T>
std::complex<double> to_complex(const T& value) {
  if constexpr (rush::is_complex_v<T>) {
    return {static_cast<double>(value.real()), static_cast<double>(value.imag())};
  } else if constexpr (rush::is_reduced_float_v<T>) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

bool is_finite(std::complex<double> z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }
bool is_nan(std::complex<double> z) { return std::isnan(z.real()) || std::isnan(z.imag()); }

template <class T>
bool agree(const T& actual, const T& expected, Tolerance tolerance) {
  if constexpr (std::is_integral_v<T>) {
    return actual == expected;
  } else {
    const std::complex<double> a = to_complex(actual), b = to_complex(expected);
    if (is_nan(a) || is_nan(b)) return is_nan(a) && is_nan(b);
    if (!is_finite(a) || !is_finite(b)) return a == b;
    return std::abs(a - b) <= tolerance.absolute + tolerance.relative * std::abs(b);
  }
}

template <class T>
std::string text(const T& value) {
  if constexpr (rush::is_reduced_float_v<T>) {
    return rush::str(static_cast<float>(value));
  } else {
    return rush::str(value);
  }
}

std::vector<int64_t> position(int64_t i, rush::IntArrayRef sizes) {
  std::vector<int64_t> index(sizes.size());
  for (size_t d = sizes.size(); d-- > 0; i /= sizes[d]) index[d] = i % sizes[d];
  return index;
}

template <class T>
std::optional<std::string> value_difference(const Tensor& actual, const Tensor& expected, Tolerance tolerance) {
  const T *a = actual.data_ptr<T>(), *b = expected.data_ptr<T>();
  int64_t wrong = 0, first = 0;
  for (int64_t i = expected.numel() - 1; i >= 0; --i) {
    if (!agree(a[i], b[i], tolerance)) ++wrong, first = i;
  }
  if (wrong == 0) return std::nullopt;
  return rush::str(wrong, " of ", expected.numel(), " values differ, at ", position(first, expected.sizes()), ": got ",
                   text(a[first]), ", expected ", text(b[first]));
}

}  // namespace

Tolerance tolerance_for(rush::ScalarType dtype, const std::string& family, rush::Device device) {
  switch (dtype) {
    case rush::kFloat64:
    case rush::kComplex128: return {1e-7, 1e-7};
    case rush::kFloat32:
    case rush::kComplex64: return device.is_cuda() || sums(family) ? Tolerance{1e-4, 1e-4} : Tolerance{1.3e-6, 1e-5};
    case rush::kBFloat16: return {1.6e-2, 1e-2};
    case rush::kFloat16: return {2e-3, 2e-3};
    default: return {};
  }
}

Tolerance gradient_tolerance_for(rush::ScalarType dtype, const std::string& family, rush::Device device) {
  return loosest(tolerance_for(dtype, family, device), {1e-6, 1e-7});
}

Tolerance loosest(Tolerance a, Tolerance b) {
  return {std::max(a.relative, b.relative), std::max(a.absolute, b.absolute)};
}

std::optional<std::string> difference(const Tensor& actual, const Tensor& expected, Tolerance tolerance) {
  if (!actual.defined()) return "is undefined";
  if (actual.scalar_type() != expected.scalar_type()) {
    return rush::str("has dtype ", actual.scalar_type(), ", expected ", expected.scalar_type());
  }
  if (actual.sizes() != expected.sizes())
    return rush::str("has shape ", actual.sizes(), ", expected ", expected.sizes());
  const Tensor values = actual.detach().cpu().contiguous();
  switch (expected.scalar_type()) {
#define RUSH_CASE(enumerator, type, ...) \
  case rush::ScalarType::enumerator: return value_difference<type>(values, expected, tolerance);
    RUSH_FORALL_SCALAR_TYPES(RUSH_CASE)
#undef RUSH_CASE
  }
  return std::nullopt;
}

}  // namespace conformance
