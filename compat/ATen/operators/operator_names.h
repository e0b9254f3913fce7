// Second names that ATen has for operators. Note [Operators of libtorch alone]
// What ATen has beyond our operators stands in the headers beside this one: second names, and functions that other
// operators make in a few lines, whose derivatives follow from theirs. `aten` is an inline namespace of rush, so that
// torch::, at:: and argument-dependent lookup find these functions as they find rush's, and only in programs that
// include libtorch's headers.
#pragma once
#include <rushlight.h>

#include "core/ops/nn/cudnn_rnn.h"

namespace rush {
inline namespace aten {

// ---- element-wise ----
#define RUSH_UNARY_NAME(second, first)                              \
  inline Tensor second(const Tensor& self) { return self.first(); } \
  inline Tensor& second##_(Tensor& self) { return self.first##_(); }
RUSH_UNARY_NAME(arccos, acos)
RUSH_UNARY_NAME(arccosh, acosh)
RUSH_UNARY_NAME(arcsin, asin)
RUSH_UNARY_NAME(arcsinh, asinh)
RUSH_UNARY_NAME(arctan, atan)
RUSH_UNARY_NAME(arctanh, atanh)
RUSH_UNARY_NAME(fix, trunc)
RUSH_UNARY_NAME(negative, neg)
#undef RUSH_UNARY_NAME

#define RUSH_COMPARISON_NAME(second, first)                                                   \
  inline Tensor second(const Tensor& self, const Tensor& other) { return self.first(other); } \
  inline Tensor second(const Tensor& self, const Scalar& other) { return self.first(other); }
RUSH_COMPARISON_NAME(greater, gt)
RUSH_COMPARISON_NAME(greater_equal, ge)
RUSH_COMPARISON_NAME(less, lt)
RUSH_COMPARISON_NAME(less_equal, le)
RUSH_COMPARISON_NAME(not_equal, ne)
#undef RUSH_COMPARISON_NAME

inline Tensor arctan2(const Tensor& self, const Tensor& other) { return self.atan2(other); }
/// self * 2^other, as a floating point number.
Tensor ldexp(const Tensor& self, const Tensor& other);
inline Tensor& ldexp_(Tensor& self, const Tensor& other) { return self.mul_(rush::pow(2.0, other)); }

/// (mantissa, exponent) with self = mantissa * 2^exponent and 1/2 <= |mantissa| < 1; of 0, infinity and NaN themselves
/// and 0. The exponent is int32.
std::tuple<Tensor, Tensor> frexp(const Tensor& self);

// ---- Fourier transforms ----
#define RUSH_FFT_NAMES(name)                                                                                        \
  inline Tensor fft_##name(const Tensor& self, std::optional<int64_t> n = std::nullopt, int64_t dim = -1,           \
                           std::optional<std::string_view> norm = std::nullopt) {                                   \
    return fft::name(self, n, dim, norm);                                                                           \
  }                                                                                                                 \
  inline Tensor fft_##name##2(const Tensor& self, OptionalIntArrayRef s = std::nullopt, IntArrayRef dim = {-2, -1}, \
                              std::optional<std::string_view> norm = std::nullopt) {                                \
    return fft::name##2(self, s, dim, norm);                                                                        \
  }                                                                                                                 \
  inline Tensor fft_##name##n(const Tensor& self, OptionalIntArrayRef s = std::nullopt,                             \
                              OptionalIntArrayRef dim = std::nullopt,                                               \
                              std::optional<std::string_view> norm = std::nullopt) {                                \
    return fft::name##n(self, s, dim, norm);                                                                        \
  }
RUSH_FFT_NAMES(fft)
RUSH_FFT_NAMES(ifft)
RUSH_FFT_NAMES(rfft)
RUSH_FFT_NAMES(irfft)
RUSH_FFT_NAMES(hfft)
RUSH_FFT_NAMES(ihfft)
#undef RUSH_FFT_NAMES
Tensor fft_fftshift(const Tensor& self, OptionalIntArrayRef dim = std::nullopt);
Tensor fft_ifftshift(const Tensor& self, OptionalIntArrayRef dim = std::nullopt);
Tensor fft_fftfreq(int64_t n, double d = 1.0, const TensorOptions& options = {});
inline Tensor fft_fftfreq(int64_t n, const TensorOptions& options) { return fft::fftfreq(n, options); }
Tensor fft_rfftfreq(int64_t n, double d = 1.0, const TensorOptions& options = {});
inline Tensor fft_rfftfreq(int64_t n, const TensorOptions& options) { return fft::rfftfreq(n, options); }

// ---- convolutions, padding and samplers, each of one number of dimensions ----
#define RUSH_PAD_NAMES(mode)                                                                                       \
  inline Tensor mode##_pad1d(const Tensor& self, IntArrayRef padding) { return ops::mode##_pad1d(self, padding); } \
  inline Tensor mode##_pad2d(const Tensor& self, IntArrayRef padding) { return ops::mode##_pad2d(self, padding); } \
  inline Tensor mode##_pad3d(const Tensor& self, IntArrayRef padding) { return ops::mode##_pad3d(self, padding); }
RUSH_PAD_NAMES(reflection)
RUSH_PAD_NAMES(replication)
#undef RUSH_PAD_NAMES
Tensor pad_sequence(TensorList sequences, bool batch_first = false, double padding_value = 0,
                    std::string_view padding_side = "right");
inline Tensor native_channel_shuffle(const Tensor& self, int64_t groups) { return channel_shuffle(self, groups); }
Tensor grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                       bool align_corners);
Tensor grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                       bool align_corners);
// PyTorch's slow_ and thnn_ convolutions are its methods without a library for them; the results are conv's.
Tensor thnn_conv2d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                   const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1, IntArrayRef padding = 0);
Tensor slow_conv3d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                   const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1, IntArrayRef padding = 0);
Tensor slow_conv3d_forward(const Tensor& self, const Tensor& weight, IntArrayRef kernel_size,
                           const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding);
Tensor slow_conv_dilated2d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                           const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1, IntArrayRef padding = 0,
                           IntArrayRef dilation = 1);
Tensor slow_conv_dilated3d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                           const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1, IntArrayRef padding = 0,
                           IntArrayRef dilation = 1);
Tensor conv_depthwise3d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                        const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                        IntArrayRef dilation);
Tensor slow_conv_transpose2d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                             const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1, IntArrayRef padding = 0,
                             IntArrayRef output_padding = 0, IntArrayRef dilation = 1);
Tensor slow_conv_transpose3d(const Tensor& self, const Tensor& weight, IntArrayRef /*kernel_size*/,
                             const std::optional<Tensor>& bias = {}, IntArrayRef stride = 1, IntArrayRef padding = 0,
                             IntArrayRef output_padding = 0, IntArrayRef dilation = 1);
/// (T, B, C_in) with weight (K, C_in, C_out) -> (T + 2 pad - K + 1, B, C_out).
Tensor conv_tbc(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad = 0);

// ---- losses and the like, with what their derivatives need ----
std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor& self, const Tensor& target,
                                            const std::optional<Tensor>& weight, int64_t reduction,
                                            int64_t ignore_index);
std::tuple<Tensor, Tensor> nll_loss2d_forward(const Tensor& self, const Tensor& target,
                                              const std::optional<Tensor>& weight, int64_t reduction,
                                              int64_t ignore_index);
inline std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor& self) { return ops::log_sigmoid_forward(self); }

/// (the loss, where each element of self is a target): the targets of a sample end before its first -1.
std::tuple<Tensor, Tensor> multilabel_margin_loss_forward(const Tensor& self, const Tensor& target, int64_t reduction);

/// The derivative of glu(x) = a sigmoid(b) in the direction dx; (a, b) are the halves of x along `dim`.
Tensor glu_jvp(const Tensor& glu, const Tensor& x, const Tensor& dx, int64_t dim);
/// The rows of an embedding that `indices` name are scaled down to the p-norm `max_norm` where theirs is larger.
Tensor& embedding_renorm_(Tensor& self, const Tensor& indices, double max_norm, double norm_type);
Tensor embedding_renorm(const Tensor& self, const Tensor& indices, double max_norm, double norm_type);

// ---- random numbers, in a new tensor of self's shape ----
#define RUSH_FRESH_RANDOM(name, declared, passed)                                                           \
  inline Tensor name(const Tensor& self, RUSH_UNPACKED declared, const OptionalGenerator& generator = {}) { \
    return empty_like(self).name##_(RUSH_UNPACKED passed, generator);                                       \
  }
#define RUSH_UNPACKED(...) __VA_ARGS__
RUSH_FRESH_RANDOM(cauchy, (double median = 0, double sigma = 1), (median, sigma))
RUSH_FRESH_RANDOM(exponential, (double lambd = 1), (lambd))
RUSH_FRESH_RANDOM(geometric, (double p), (p))
RUSH_FRESH_RANDOM(log_normal, (double mean = 1, double std = 2), (mean, std))
RUSH_FRESH_RANDOM(random, (int64_t from, std::optional<int64_t> to), (from, to))
RUSH_FRESH_RANDOM(random, (int64_t to), (to))
RUSH_FRESH_RANDOM(uniform, (double from = 0, double to = 1), (from, to))
#undef RUSH_FRESH_RANDOM
#undef RUSH_UNPACKED
Tensor random(const Tensor& self, const OptionalGenerator& generator = {});

// ---- casts ----
#define RUSH_CAST_NAME(Name) \
  inline Tensor _cast_##Name(const Tensor& self, bool non_blocking = false) { return self.to(k##Name, non_blocking); }
RUSH_CAST_NAME(Byte)
RUSH_CAST_NAME(Char)
RUSH_CAST_NAME(Double)
RUSH_CAST_NAME(Float)
RUSH_CAST_NAME(Half)
RUSH_CAST_NAME(Int)
RUSH_CAST_NAME(Long)
RUSH_CAST_NAME(Short)
#undef RUSH_CAST_NAME

// ---- other ----
inline bool is_nonzero(const Tensor& self) { return self.is_nonzero(); }
inline bool is_same_size(const Tensor& self, const Tensor& other) { return self.is_same_size(other); }
inline bool is_distributed(const Tensor& /*self*/) { return false; }
inline bool cudnn_is_acceptable(const Tensor& self) { return ops::cudnn_is_acceptable(self); }
inline bool is_vulkan_available() { return false; }
inline int64_t size(const Tensor& self, int64_t dim) { return self.size(dim); }
inline int64_t stride(const Tensor& self, int64_t dim) { return self.stride(dim); }
inline Tensor& zero_(Tensor& self) { return self.zero_(); }
inline Tensor zero(const Tensor& self) { return zeros_like(self); }
Tensor copy(const Tensor& self, const Tensor& src, bool non_blocking = false);
const Tensor& resize_as_(const Tensor& self, const Tensor& the_template,
                         std::optional<MemoryFormat> memory_format = std::nullopt);
Tensor resize(const Tensor& self, IntArrayRef size, std::optional<MemoryFormat> memory_format = std::nullopt);
inline Tensor set(const Tensor& self, const Tensor& source) { return self.detach().clone().set_(source); }
inline Tensor set(const Tensor& self) { return self.detach().clone().set_(); }
Tensor resize_as(const Tensor& self, const Tensor& the_template,
                 std::optional<MemoryFormat> memory_format = std::nullopt);
// Conjugates and negatives are computed at once here: no tensor has them pending.
inline Tensor resolve_conj(const Tensor& self) { return self; }
inline Tensor resolve_neg(const Tensor& self) { return self; }
// PyTorch's graph transforms need these; outside of them they are what their names say.
inline Tensor lift(const Tensor& self) { return self; }
inline Tensor lift_fresh(const Tensor& self) { return self; }
inline Tensor lift_fresh_copy(const Tensor& self) { return self.clone(); }
std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& self, int64_t dim, bool return_inverse = false,
                                                          bool return_counts = false);
/// `size` rows of nonzero's result: its first ones, and after its last one rows of `fill_value`.
Tensor nonzero_static(const Tensor& self, int64_t size, int64_t fill_value = -1);
Tensor flatten_dense_tensors(TensorList tensors);
std::vector<Tensor> unflatten_dense_tensors(const Tensor& flat, TensorList tensors);
/// Row-major in the order of dimensions that `physical_layout` gives, the outermost first.
Tensor empty_permuted(IntArrayRef size, IntArrayRef physical_layout, const TensorOptions& options = {});
/// start, start + step, ... up to and including `end`, as floating point numbers unless the options say otherwise.
Tensor range(const Scalar& start, const Scalar& end, const Scalar& step, const TensorOptions& options = {});
Tensor range(const Scalar& start, const Scalar& end, const TensorOptions& options = {});

}  // namespace aten
}  // namespace rush
