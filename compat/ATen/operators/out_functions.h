// add_out(result, a, b): the functions of libtorch that write into a tensor of the caller's.
#pragma once
#include <concepts>
#include <initializer_list>
#include <tuple>
#include <utility>

#include "ATen/operators/linear_algebra.h"
#include "ATen/operators/operator_names.h"
#include "ATen/operators/random_operators.h"
#include "ATen/operators/special_functions.h"
#include "ATen/operators/statistics.h"

namespace rush {
inline namespace aten {

namespace aten_detail {

/// Writes `value` into `result`, which takes its shape, and is returned; a warning says so where `result` had elements
/// of another shape. Throws TypeError where PyTorch does not cast the one dtype to the other: complex to real numbers,
/// these to integers, and any to bool; and Error where a gradient would be recorded.
Tensor& written_to(Tensor& result, const Tensor& value);

/// A tuple of that many.
template <class T, size_t num>
concept TupleOf = requires {
  requires std::tuple_size<T>::value == num;
};

/// A function whose results are written into tensors that come before its arguments. Braces are sizes, dimensions or
/// tensors, as there.
template <class Function>
struct WritesInto {
  Function function;

  /// A pointer to the function of one overload's arguments.
  template <class... Args>
  using Pointer = Tensor& (*)(Tensor&, Args...);
  template <class... Args>
  constexpr operator Pointer<Args...>() const {
    return [](Tensor& result, Args... args) -> Tensor& { return written_to(result, Function()(args...)); };
  }

  template <class... Args>
  requires std::convertible_to<std::invoke_result_t<Function, Args...>, Tensor> Tensor& operator()(
      Tensor& result, Args&&... args) const {
    return written_to(result, function(std::forward<Args>(args)...));
  }
  template <class... Args>
  Tensor& operator()(Tensor& result, std::initializer_list<int64_t> sizes, Args&&... args) const {
    return written_to(result, function(IntArrayRef(sizes), std::forward<Args>(args)...));
  }
  template <class... Args>
  Tensor& operator()(Tensor& result, std::initializer_list<Tensor> tensors, Args&&... args) const {
    return written_to(result, function(TensorList(tensors), std::forward<Args>(args)...));
  }
  template <class... Args>
  Tensor& operator()(Tensor& result, const Tensor& self, std::initializer_list<int64_t> dims, Args&&... args) const {
    return written_to(result, function(self, IntArrayRef(dims), std::forward<Args>(args)...));
  }

  template <class... Args>
  Tensor& operator()(Tensor& result, const Tensor& self, std::initializer_list<int64_t> first,
                     std::initializer_list<int64_t> second, Args&&... args) const {
    return written_to(result, function(self, IntArrayRef(first), IntArrayRef(second), std::forward<Args>(args)...));
  }
  // norm and tensordot.
  template <class Second, class... Args>
  Tensor& operator()(Tensor& result, const Tensor& self, const Second& second, std::initializer_list<int64_t> dims,
                     Args&&... args) const {
    return written_to(result, function(self, second, IntArrayRef(dims), std::forward<Args>(args)...));
  }
  Tensor& operator()(Tensor& result, const Tensor& self, const Tensor& other, std::initializer_list<int64_t> first,
                     std::initializer_list<int64_t> second) const {
    return written_to(result, function(self, other, IntArrayRef(first), IntArrayRef(second)));
  }
  template <class... Args>
  std::tuple<Tensor&, Tensor&> operator()(Tensor& first, Tensor& second, const Tensor& self,
                                          std::initializer_list<int64_t> sizes, Args&&... args) const {
    return (*this)(first, second, self, IntArrayRef(sizes), std::forward<Args>(args)...);
  }

  template <class... Args>
  requires TupleOf < std::invoke_result_t<Function, Args...>,
  2 > std::tuple<Tensor&, Tensor&> operator()(Tensor& first, Tensor& second, Args&&... args) const {
    const auto values = function(std::forward<Args>(args)...);
    return {written_to(first, std::get<0>(values)), written_to(second, std::get<1>(values))};
  }
  template <class... Args>
  requires TupleOf < std::invoke_result_t<Function, Args...>,
  3 > std::tuple<Tensor&, Tensor&, Tensor&> operator()(Tensor& first, Tensor& second, Tensor& third,
                                                       Args&&... args) const {
    const auto values = function(std::forward<Args>(args)...);
    return {written_to(first, std::get<0>(values)), written_to(second, std::get<1>(values)),
            written_to(third, std::get<2>(values))};
  }
};
template <class Function>
WritesInto(Function) -> WritesInto<Function>;

/// A factory, which makes its result in the dtype and on the device of the tensor that it is written into.
template <class Function>
struct MadeInto {
  Function function;

  template <class... Args>
  Tensor& operator()(Tensor& result, Args&&... args) const {
    const TensorOptions options = TensorOptions(result.scalar_type()).device(result.device());
    return written_to(result, function(std::forward<Args>(args)..., options));
  }
  template <class... Args>
  Tensor& operator()(Tensor& result, std::initializer_list<int64_t> sizes, Args&&... args) const {
    return (*this)(result, IntArrayRef(sizes), std::forward<Args>(args)...);
  }
  // randint: bounds before the sizes.
  template <std::integral Bound>
  Tensor& operator()(Tensor& result, Bound high, std::initializer_list<int64_t> sizes) const {
    return (*this)(result, high, IntArrayRef(sizes));
  }
  template <std::integral Low, std::integral High>
  Tensor& operator()(Tensor& result, Low low, High high, std::initializer_list<int64_t> sizes) const {
    return (*this)(result, low, high, IntArrayRef(sizes));
  }
};
template <class Function>
MadeInto(Function) -> MadeInto<Function>;

}  // namespace aten_detail

// clang-format off
#define RUSH_FORALL_OUT_FUNCTIONS(X)                                                                                   \
  X(abs) X(absolute) X(acos) X(acosh) X(adaptive_avg_pool1d) X(adaptive_avg_pool2d) X(adaptive_avg_pool3d)             \
  X(adaptive_max_pool2d) X(adaptive_max_pool3d) X(add) X(addbmm) X(addcdiv) X(addcmul) X(addmm) X(addmv) X(addr)       \
  X(all) X(amax) X(amin) X(aminmax) X(angle) X(any) X(arccos) X(arccosh) X(arcsin) X(arcsinh) X(arctan) X(arctan2)     \
  X(arctanh) X(argmax) X(argmin) X(argsort) X(asin) X(asinh) X(atan) X(atan2) X(atanh) X(avg_pool2d) X(avg_pool3d)     \
  X(baddbmm) X(bernoulli) X(binary_cross_entropy) X(bincount) X(bitwise_and) X(bitwise_left_shift) X(bitwise_not)      \
  X(bitwise_or) X(bitwise_right_shift) X(bitwise_xor) X(block_diag) X(bmm) X(bucketize) X(cat) X(ceil) X(celu)         \
  X(chain_matmul) X(cholesky) X(cholesky_inverse) X(cholesky_solve) X(clamp) X(clamp_max) X(clamp_min) X(clip)         \
  X(col2im) X(column_stack) X(complex) X(concat) X(concatenate) X(conj_physical) X(constant_pad_nd) X(copysign)        \
  X(cos) X(cosh) X(count_nonzero) X(cross) X(cummax) X(cummin) X(cumprod) X(cumsum) X(deg2rad) X(diag) X(diag_embed)   \
  X(diff) X(digamma) X(dist) X(div) X(divide) X(dot) X(dstack) X(elu) X(embedding) X(eq) X(erf) X(erfc) X(erfinv)      \
  X(exp) X(exp2) X(expm1) X(fft_fft) X(fft_fft2) X(fft_fftn) X(fft_hfft) X(fft_hfft2) X(fft_hfftn) X(fft_ifft)         \
  X(fft_ifft2) X(fft_ifftn) X(fft_ihfft) X(fft_ihfft2) X(fft_ihfftn) X(fft_irfft) X(fft_irfft2) X(fft_irfftn)          \
  X(fft_rfft) X(fft_rfft2) X(fft_rfftn) X(fix) X(flip) X(float_power) X(floor) X(floor_divide) X(fmax) X(fmin)         \
  X(fmod) X(frac) X(fractional_max_pool2d) X(fractional_max_pool3d) X(frexp) X(frobenius_norm) X(gather) X(gcd) X(ge)  \
  X(gelu) X(geqrf) X(ger) X(glu) X(greater) X(greater_equal) X(gt) X(hardshrink) X(hardsigmoid) X(hardswish)           \
  X(hardtanh) X(heaviside) X(histc) X(histogram) X(hstack) X(huber_loss) X(hypot) X(i0) X(igamma) X(igammac)           \
  X(im2col) X(index) X(index_add) X(index_copy) X(index_fill) X(index_reduce) X(index_select) X(inner) X(inverse)      \
  X(isin) X(isinf) X(isnan) X(isneginf) X(isposinf) X(kron) X(kthvalue) X(lcm) X(ldexp) X(le) X(leaky_relu) X(lerp)    \
  X(less) X(less_equal) X(lgamma) X(linalg_cholesky) X(linalg_cholesky_ex) X(linalg_cond) X(linalg_cross)              \
  X(linalg_det) X(linalg_eig) X(linalg_eigh) X(linalg_eigvals) X(linalg_eigvalsh) X(linalg_householder_product)        \
  X(linalg_inv) X(linalg_inv_ex) X(linalg_lu) X(linalg_lu_factor) X(linalg_lu_factor_ex) X(linalg_lu_solve)            \
  X(linalg_matmul) X(linalg_matrix_exp) X(linalg_matrix_norm) X(linalg_matrix_power) X(linalg_matrix_rank)             \
  X(linalg_multi_dot) X(linalg_norm) X(linalg_pinv) X(linalg_qr) X(linalg_slogdet) X(linalg_solve) X(linalg_solve_ex)  \
  X(linalg_solve_triangular) X(linalg_svd) X(linalg_svdvals) X(linalg_tensorinv) X(linalg_tensorsolve)                 \
  X(linalg_vecdot) X(linalg_vector_norm) X(linear) X(log) X(log10) X(log1p) X(log2) X(log_sigmoid) X(log_softmax)      \
  X(logaddexp) X(logaddexp2) X(logcumsumexp) X(logical_and) X(logical_not) X(logical_or) X(logical_xor) X(logit)       \
  X(logsumexp) X(lt) X(lu_solve) X(lu_unpack) X(masked_fill) X(masked_select) X(matmul) X(matrix_power) X(max)         \
  X(max_pool2d_with_indices) X(max_pool3d_with_indices) X(max_unpool2d) X(max_unpool3d) X(maximum) X(mean) X(median)   \
  X(min) X(minimum) X(mish) X(mm) X(mode) X(mse_loss) X(msort) X(mul) X(multi_margin_loss) X(multilabel_margin_loss)   \
  X(multinomial) X(multiply) X(mv) X(mvlgamma) X(nan_to_num) X(nanmean) X(nanmedian) X(nanquantile) X(nansum) X(ne)    \
  X(neg) X(negative) X(nextafter) X(nll_loss) X(nll_loss2d) X(nonzero) X(nonzero_static) X(norm) X(normal)             \
  X(not_equal) X(nuclear_norm) X(orgqr) X(ormqr) X(outer) X(pixel_shuffle) X(pixel_unshuffle) X(poisson) X(polar)      \
  X(polygamma) X(pow) X(prod) X(qr) X(quantile) X(rad2deg) X(reciprocal) X(reflection_pad1d) X(reflection_pad2d)       \
  X(reflection_pad3d) X(relu) X(remainder) X(renorm) X(repeat) X(repeat_interleave) X(replication_pad1d)               \
  X(replication_pad2d) X(replication_pad3d) X(roll) X(round) X(row_stack) X(rsqrt) X(rsub) X(scatter) X(scatter_add)   \
  X(scatter_reduce) X(searchsorted) X(select_scatter) X(sgn) X(sigmoid) X(sign) X(signbit) X(silu) X(sin) X(sinc)      \
  X(sinh) X(slice_scatter) X(slogdet) X(smooth_l1_loss) X(soft_margin_loss) X(softmax) X(softplus) X(softshrink)       \
  X(sort) X(sqrt) X(square) X(stack) X(std) X(sub) X(subtract) X(sum) X(svd) X(take) X(take_along_dim) X(tan) X(tanh)  \
  X(tensordot) X(threshold) X(topk) X(trace) X(triangular_solve) X(tril) X(triu) X(true_divide) X(trunc)               \
  X(upsample_bicubic2d) X(upsample_bilinear2d) X(upsample_linear1d) X(upsample_nearest1d) X(upsample_nearest2d)        \
  X(upsample_nearest3d) X(upsample_trilinear3d) X(var) X(vdot) X(vstack) X(where) X(xlogy)
// Those that make a tensor of none.
#define RUSH_FORALL_OUT_FACTORIES(X)                                                                                   \
  X(arange) X(empty) X(eye) X(fft_fftfreq) X(fft_rfftfreq) X(full) X(linspace) X(logspace) X(ones) X(rand) X(randint)  \
  X(randn) X(randperm) X(range) X(zeros)
// clang-format on
#define RUSH_OUT_FUNCTION_OF(Kind, name)                                                  \
  inline constexpr aten_detail::Kind name##_out{                                          \
      [](auto&&... args) -> decltype(rush::name(std::forward<decltype(args)>(args)...)) { \
        return rush::name(std::forward<decltype(args)>(args)...);                         \
      }};
#define RUSH_OUT_FUNCTION(name) RUSH_OUT_FUNCTION_OF(WritesInto, name)
#define RUSH_OUT_FACTORY(name) RUSH_OUT_FUNCTION_OF(MadeInto, name)
RUSH_FORALL_OUT_FUNCTIONS(RUSH_OUT_FUNCTION)
RUSH_FORALL_OUT_FACTORIES(RUSH_OUT_FACTORY)
#undef RUSH_OUT_FACTORY
#undef RUSH_OUT_FUNCTION
#undef RUSH_OUT_FUNCTION_OF
#undef RUSH_FORALL_OUT_FACTORIES
#undef RUSH_FORALL_OUT_FUNCTIONS

}  // namespace aten
}  // namespace rush
