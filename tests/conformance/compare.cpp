#include "tests/conformance/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <string_view>

#include "rushlight.h"

namespace conformance {

using rush::Tensor;

namespace {

// Families whose results are sums, or solutions of linear systems. A prefix ending in a dot stands for all below it.
constexpr std::array<std::string_view, 72> kSummingFamilies = {
    // reductions
    "sum", "nansum", "mean", "var", "std", "var_mean", "std_mean", "prod", "norm", "logsumexp", "cumsum", "cumprod",
    "logcumsumexp", "trace", "softmax", "log_softmax", "renorm", "nn.functional.softmin", "nn.functional.normalize",
    "nn.functional.cosine_similarity", "nn.functional.pairwise_distance", "nn.functional.avg_pool1d",
    "nn.functional.avg_pool2d", "nn.functional.avg_pool3d", "nn.functional.adaptive_avg_pool1d",
    "nn.functional.adaptive_avg_pool2d", "nn.functional.batch_norm", "nn.functional.group_norm",
    "nn.functional.instance_norm", "nn.functional.layer_norm", "nn.functional.rms_norm", "nn.functional.embedding_bag",
    "nn.functional.binary_cross_entropy", "nn.functional.binary_cross_entropy_with_logits",
    "nn.functional.cosine_embedding_loss", "nn.functional.cross_entropy", "nn.functional.huber_loss",
    "nn.functional.kl_div", "nn.functional.l1_loss", "nn.functional.margin_ranking_loss", "nn.functional.mse_loss",
    "nn.functional.nll_loss", "nn.functional.smooth_l1_loss", "nn.functional.triplet_margin_loss",
    // matrix products
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "cdist", "dot", "einsum", "inner", "matmul", "mm", "mv",
    "tensordot", "vdot", "nn.functional.bilinear", "nn.functional.linear", "nn.functional.scaled_dot_product_attention",
    // convolutions
    "nn.functional.conv1d", "nn.functional.conv2d", "nn.functional.conv3d", "nn.functional.conv_transpose1d",
    "nn.functional.conv_transpose2d", "nn.functional.conv_transpose3d",
    // transforms and linear algebra
    "fft.", "stft", "istft", "linalg."};

bool sums(const std::string& family) {
  return std::any_of(kSummingFamilies.begin(), kSummingFamilies.end(), [&](std::string_view each) {
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
