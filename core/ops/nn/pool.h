// Pooling: the largest or the mean value in each window of a (N, C, ...) or (C, ...) tensor.
#pragma once
#include <tuple>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/macros.h"

namespace rush {

using PoolResult = std::tuple<Tensor, Tensor>;  // values, and where in its plane each was found
using MaxPoolOp = Op<Tensor(const Tensor&, IntArrayRef, IntArrayRef, IntArrayRef, IntArrayRef, bool)>;
using MaxPoolIndicesOp = Op<PoolResult(const Tensor&, IntArrayRef, IntArrayRef, IntArrayRef, IntArrayRef, bool)>;
using MaxPoolBackwardOp =
    Op<Tensor(const Tensor&, const Tensor&, IntArrayRef, IntArrayRef, IntArrayRef, IntArrayRef, bool, const Tensor&)>;
using AvgPool1dOp = Op<Tensor(const Tensor&, IntArrayRef, IntArrayRef, IntArrayRef, bool, bool)>;
using AvgPoolOp = Op<Tensor(const Tensor&, IntArrayRef, IntArrayRef, IntArrayRef, bool, bool, std::optional<int64_t>)>;
using AvgPoolBackwardOp =
    Op<Tensor(const Tensor&, const Tensor&, IntArrayRef, IntArrayRef, IntArrayRef, bool, bool, std::optional<int64_t>)>;
using AdaptiveAvgPoolOp = Op<Tensor(const Tensor&, IntArrayRef)>;
using AdaptiveAvgPoolBackwardOp = Op<Tensor(const Tensor&, const Tensor&)>;
using AdaptiveMaxPoolOp = Op<PoolResult(const Tensor&, IntArrayRef)>;
using AdaptiveMaxPoolBackwardOp = Op<Tensor(const Tensor&, const Tensor&, const Tensor&)>;

#define RUSH_MAX_POOL_SCHEMA(n, zero, one)                                                                            \
  "(Tensor self, int[" n "] kernel_size, int[" n "] stride=[], int[" n "] padding=" zero ", int[" n "] dilation=" one \
  ", bool ceil_mode=False) -> "
#define RUSH_MAX_POOL_BACKWARD_SCHEMA(n)                                                                    \
  "(Tensor grad_output, Tensor self, int[" n "] kernel_size, int[" n "] stride, int[" n "] padding, int[" n \
  "] dilation, bool ceil_mode, Tensor indices) -> Tensor"
#define RUSH_AVG_POOL_SCHEMA(n, zero)                                                    \
  "(Tensor self, int[" n "] kernel_size, int[" n "] stride=[], int[" n "] padding=" zero \
  ", bool ceil_mode=False, bool count_include_pad=True"
#define RUSH_AVG_POOL_BACKWARD_SCHEMA(n)                                                \
  "(Tensor grad_output, Tensor self, int[" n "] kernel_size, int[" n "] stride, int[" n \
  "] padding, bool "                                                                    \
  "ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor"

namespace ops {
inline constinit MaxPoolOp max_pool1d{"aten::max_pool1d" RUSH_MAX_POOL_SCHEMA("1", "[0]", "[1]") "Tensor"};
inline constinit MaxPoolOp max_pool2d{"aten::max_pool2d" RUSH_MAX_POOL_SCHEMA("2", "0", "1") "Tensor"};
inline constinit MaxPoolOp max_pool3d{"aten::max_pool3d" RUSH_MAX_POOL_SCHEMA("3", "0", "1") "Tensor"};
inline constinit MaxPoolIndicesOp max_pool1d_with_indices{
    "aten::max_pool1d_with_indices" RUSH_MAX_POOL_SCHEMA("1", "[0]", "[1]") "(Tensor, Tensor)"};
inline constinit MaxPoolIndicesOp max_pool2d_with_indices{
    "aten::max_pool2d_with_indices" RUSH_MAX_POOL_SCHEMA("2", "0", "1") "(Tensor, Tensor)"};
inline constinit MaxPoolIndicesOp max_pool3d_with_indices{
    "aten::max_pool3d_with_indices" RUSH_MAX_POOL_SCHEMA("3", "0", "1") "(Tensor, Tensor)"};
inline constinit MaxPoolBackwardOp max_pool2d_with_indices_backward{
    "aten::max_pool2d_with_indices_backward" RUSH_MAX_POOL_BACKWARD_SCHEMA("2")};
inline constinit MaxPoolBackwardOp max_pool3d_with_indices_backward{
    "aten::max_pool3d_with_indices_backward" RUSH_MAX_POOL_BACKWARD_SCHEMA("3")};

inline constinit AvgPool1dOp avg_pool1d{"aten::avg_pool1d" RUSH_AVG_POOL_SCHEMA("1", "[0]") ") -> Tensor"};
inline constinit AvgPoolOp avg_pool2d{
    "aten::avg_pool2d" RUSH_AVG_POOL_SCHEMA("2", "0") ", int? divisor_override=None) -> Tensor"};
inline constinit AvgPoolOp avg_pool3d{
    "aten::avg_pool3d" RUSH_AVG_POOL_SCHEMA("3", "0") ", int? divisor_override=None) -> Tensor"};
inline constinit AvgPoolBackwardOp avg_pool2d_backward{"aten::avg_pool2d_backward" RUSH_AVG_POOL_BACKWARD_SCHEMA("2")};
inline constinit AvgPoolBackwardOp avg_pool3d_backward{"aten::avg_pool3d_backward" RUSH_AVG_POOL_BACKWARD_SCHEMA("3")};

inline constinit AdaptiveAvgPoolOp adaptive_avg_pool1d{
    "aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor"};
inline constinit AdaptiveAvgPoolOp adaptive_avg_pool2d{
    "aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor"};
inline constinit AdaptiveAvgPoolOp adaptive_avg_pool3d{
    "aten::adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor"};
inline constinit AdaptiveAvgPoolOp _adaptive_avg_pool2d{
    "aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor"};
inline constinit AdaptiveAvgPoolOp _adaptive_avg_pool3d{
    "aten::_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor"};
inline constinit AdaptiveAvgPoolBackwardOp _adaptive_avg_pool2d_backward{
    "aten::_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor"};
inline constinit AdaptiveAvgPoolBackwardOp _adaptive_avg_pool3d_backward{
    "aten::_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor"};

inline constinit AdaptiveMaxPoolOp adaptive_max_pool1d{
    "aten::adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)"};
inline constinit AdaptiveMaxPoolOp adaptive_max_pool2d{
    "aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)"};
inline constinit AdaptiveMaxPoolOp adaptive_max_pool3d{
    "aten::adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)"};
inline constinit AdaptiveMaxPoolBackwardOp adaptive_max_pool2d_backward{
    "aten::adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor"};
inline constinit AdaptiveMaxPoolBackwardOp adaptive_max_pool3d_backward{
    "aten::adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor"};

inline constinit Op<Tensor(const Tensor&, const Tensor&, IntArrayRef)> max_unpool2d{
    "aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, IntArrayRef, IntArrayRef, IntArrayRef)> max_unpool3d{
    "aten::max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> Tensor"};
}  // namespace ops

#undef RUSH_MAX_POOL_SCHEMA
#undef RUSH_MAX_POOL_BACKWARD_SCHEMA
#undef RUSH_AVG_POOL_SCHEMA
#undef RUSH_AVG_POOL_BACKWARD_SCHEMA

/// Max pooling over windows of `kernel_size` that are `stride` apart (kernel_size where none is given), with elements
/// of a window `dilation` apart and `padding` elements of minus infinity around the input. Sizes count one for each of
/// the 1, 2 or 3 last dimensions, or one for all; the output has, in each,
///   floor((input + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1
/// positions, or with `ceil_mode` the ceiling, as far as windows start inside the input or its left padding. Throws
/// ValueError on a wrong number of dimensions or sizes, or when nothing would be left. torch.nn.functional.max_pool2d.
/// With indices: as well the position of each maximum, int64, row-major within its plane of the last 1, 2 or 3
/// dimensions.
#define RUSH_MAX_POOL(name)                                                                                          \
  inline Tensor name(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {}, IntArrayRef padding = 0,  \
                     IntArrayRef dilation = 1, bool ceil_mode = false) {                                             \
    return ops::name(self, kernel_size, stride, padding, dilation, ceil_mode);                                       \
  }                                                                                                                  \
  inline PoolResult name##_with_indices(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {},        \
                                        IntArrayRef padding = 0, IntArrayRef dilation = 1, bool ceil_mode = false) { \
    return ops::name##_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode);                        \
  }
RUSH_MAX_POOL(max_pool1d)
RUSH_MAX_POOL(max_pool2d)
RUSH_MAX_POOL(max_pool3d)
#undef RUSH_MAX_POOL

/// The mean of each window, sizes as for max pooling. A window's sum is divided by `divisor_override` where it is
/// given, else by its number of elements, in which those of the padding count when `count_include_pad`. avg_pool2d.
inline Tensor avg_pool1d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {}, IntArrayRef padding = 0,
                         bool ceil_mode = false, bool count_include_pad = true) {
  return ops::avg_pool1d(self, kernel_size, stride, padding, ceil_mode, count_include_pad);
}
inline Tensor avg_pool2d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {}, IntArrayRef padding = 0,
                         bool ceil_mode = false, bool count_include_pad = true,
                         std::optional<int64_t> divisor_override = std::nullopt) {
  return ops::avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override);
}
inline Tensor avg_pool3d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride = {}, IntArrayRef padding = 0,
                         bool ceil_mode = false, bool count_include_pad = true,
                         std::optional<int64_t> divisor_override = std::nullopt) {
  return ops::avg_pool3d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override);
}

/// Pooling to a given output size: output o of a dimension looks at inputs floor(o in / out) up to ceil((o + 1) in /
/// out).
#define RUSH_ADAPTIVE_POOL(dims)                                                           \
  inline Tensor adaptive_avg_pool##dims(const Tensor& self, IntArrayRef output_size) {     \
    return ops::adaptive_avg_pool##dims(self, output_size);                                \
  }                                                                                        \
  inline PoolResult adaptive_max_pool##dims(const Tensor& self, IntArrayRef output_size) { \
    return ops::adaptive_max_pool##dims(self, output_size);                                \
  }
RUSH_ADAPTIVE_POOL(1d)
RUSH_ADAPTIVE_POOL(2d)
RUSH_ADAPTIVE_POOL(3d)
#undef RUSH_ADAPTIVE_POOL

/// Undoes max pooling as far as can be: planes of `output_size` that are zero but where `indices`, as max pooling
/// returned them, put the values. Throws IndexError for an index outside a plane, ValueError for shapes that do not
/// fit.
inline Tensor max_unpool2d(const Tensor& self, const Tensor& indices, IntArrayRef output_size) {
  return ops::max_unpool2d(self, indices, output_size);
}
/// `stride` and `padding` are checked only: the indices say all.
inline Tensor max_unpool3d(const Tensor& self, const Tensor& indices, IntArrayRef output_size, IntArrayRef stride,
                           IntArrayRef padding) {
  return ops::max_unpool3d(self, indices, output_size, stride, padding);
}

/// The windows along one dimension. A kernel works with an Index of 32 bits where that holds all numbers.
template <class Index>
struct PoolAxisOf {
  Index input = 1, output = 1;
  Index kernel = 1, stride = 1, padding = 0, dilation = 1;
  bool adaptive = false;  // the windows divide the input evenly; kernel, stride and padding do not count

  // The first position of window `o` that lies inside the input, and one past the last. Steps between are `dilation`.
  RUSH_HD Index begin(Index o) const {
    if (adaptive) return o * input / output;
    const Index start = o * stride - padding;
    return start >= 0 ? start : start + (-start + dilation - 1) / dilation * dilation;
  }
  RUSH_HD Index end(Index o) const {
    if (adaptive) return ((o + 1) * input + output - 1) / output;
    const Index stop = o * stride - padding + (kernel - 1) * dilation + 1;
    return stop < input ? stop : input;
  }
  // How many positions window `o` has; with those in the padding, of the excess that ceil_mode allows none.
  RUSH_HD int64_t count(Index o) const { return end(o) - begin(o); }
  RUSH_HD int64_t padded_count(Index o) const {
    if (adaptive) return count(o);
    const Index start = o * stride - padding;
    const Index stop = start + kernel;
    return (stop < input + padding ? stop : input + padding) - start;
  }

  template <class To>
  PoolAxisOf<To> as() const {  // in 32-bit integers, where they suffice
    const auto to = [](Index n) { return static_cast<To>(n); };
    return {to(input), to(output), to(kernel), to(stride), to(padding), to(dilation), adaptive};
  }
};

/// The windows of a tensor laid out as outer x depth x height x width x inner. Row-major tensors have their planes in
/// `outer` and 1 in `inner`; channels-last ones have the batch in `outer` and the channels in `inner`.
template <class Index>
struct PoolGeometryOf {
  Index outer = 1, inner = 1;
  PoolAxisOf<Index> axis[3];  // depth, height, width; those that the operator lacks have size 1

  /// Elements of one plane: depth x height x width.
  RUSH_HD Index input_plane() const { return axis[0].input * axis[1].input * axis[2].input; }
  RUSH_HD Index output_plane() const { return axis[0].output * axis[1].output * axis[2].output; }

  template <class To>
  PoolGeometryOf<To> as() const {  // in 32-bit integers, where they suffice
    return {static_cast<To>(outer),
            static_cast<To>(inner),
            {axis[0].template as<To>(), axis[1].template as<To>(), axis[2].template as<To>()}};
  }
};
using PoolAxis = PoolAxisOf<int64_t>;
using PoolGeometry = PoolGeometryOf<int64_t>;

/// What the sum of a window is divided by.
struct PoolDivisor {
  bool count_include_pad = false;
  int64_t divisor_override = 0;  // 0: none

  /// How many elements of window `o` count along one dimension, and the divisor of a window with `elements` that do.
  template <class Index>
  RUSH_HD int64_t count(const PoolAxisOf<Index>& axis, Index o) const {
    return count_include_pad ? axis.padded_count(o) : axis.count(o);
  }
  RUSH_HD int64_t of(int64_t elements) const { return divisor_override != 0 ? divisor_override : elements; }
  /// The divisor of window (d, h, w).
  template <class Index>
  RUSH_HD int64_t operator()(const PoolGeometryOf<Index>& g, Index d, Index h, Index w) const {
    return of(count(g.axis[0], d) * count(g.axis[1], h) * count(g.axis[2], w));
  }
};

namespace kernels {
// All tensors are dense, in the layout that the geometry describes. grad_input need not be initialised.
inline constinit Kernel<void(const Tensor& output, const Tensor& indices, const Tensor& input, const PoolGeometry&)>
    max_pool{"max_pool"};
inline constinit Kernel<void(const Tensor& grad_input, const Tensor& grad_output, const Tensor& indices,
                             const PoolGeometry&)>
    max_pool_backward{"max_pool_backward"};
inline constinit Kernel<void(const Tensor& output, const Tensor& input, const PoolGeometry&, const PoolDivisor&)>
    avg_pool{"avg_pool"};
inline constinit Kernel<void(const Tensor& grad_input, const Tensor& grad_output, const PoolGeometry&,
                             const PoolDivisor&)>
    avg_pool_backward{"avg_pool_backward"};
}  // namespace kernels

}  // namespace rush
