// The transforms that programs call, made of the three primitive ones: see Note [The Fourier transforms].
#include "core/ops/factory/range.h"
#include "core/ops/fft/fft.h"
#include "core/ops/pointwise/complex.h"
#include "core/ops/register.h"
#include "core/ops/view/pad.h"
#include "core/ops/view/rearrange.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

namespace {

using FftNormName = std::optional<std::string_view>;

int64_t fft_norm(const char* op, const FftNormName& norm, bool forward) {
  if (!norm || *norm == "backward") return static_cast<int64_t>(forward ? FftNorm::None : FftNorm::N);
  if (*norm == "forward") return static_cast<int64_t>(forward ? FftNorm::N : FftNorm::None);
  RUSH_CHECK_VALUE(*norm == "ortho", op, ": norm must be 'forward', 'backward' or 'ortho', got '", *norm, "'");
  return static_cast<int64_t>(FftNorm::RootN);
}

// In a dtype that is transformed, complex where `complex`.
Tensor fft_operand(const char* op, const Tensor& self, bool complex) {
  ScalarType type = self.scalar_type();
  if (!is_differentiable(type)) type = get_default_dtype();
  if (type == kFloat16 && !self.is_cpu()) type = kFloat32;
  RUSH_CHECK_TYPE(type != kFloat16 && type != kBFloat16, op, ": not supported for ", type, " on ", self.device());
  return self.to(complex ? to_complex(type) : type);
}

Tensor real_fft_operand(const char* op, const Tensor& self) {
  RUSH_CHECK_TYPE(!self.is_complex(), op, ": expected a real tensor, got ", self.scalar_type());
  return fft_operand(op, self, false);
}

int64_t fft_dim(const char* op, const Tensor& self, int64_t dim) {
  RUSH_CHECK_INDEX(self.dim() > 0, op, ": a 0-dimensional tensor has no dimension ", dim);
  return wrap_dim(dim, self.dim(), op);
}

void check_points(const char* op, int64_t n) { RUSH_CHECK_VALUE(n >= 1, op, ": cannot transform ", n, " points"); }

// Cut, or padded with zeros, to this many points along each dimension.
Tensor with_points(const Tensor& self, IntArrayRef dims, IntArrayRef points) {
  Tensor result = self;
  DimVector padding(2 * static_cast<size_t>(self.dim()), 0);
  bool padded = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t missing = points[i] - self.size(dims[i]);
    if (missing < 0) result = result.narrow(dims[i], 0, points[i]);
    if (missing > 0) {
      padding[2 * static_cast<size_t>(self.dim() - 1 - dims[i]) + 1] = missing;
      padded = true;
    }
  }
  return padded ? constant_pad_nd(result, padding) : result;
}

// ---- one dimension --------------------------------------------------------------------------------------------------

// The transform of a complex signal, or of a real one with all its frequencies.
template <bool forward>
Tensor fft_full(const Tensor& self, std::optional<int64_t> n, int64_t dim, FftNormName norm_name) {
  constexpr const char* op = forward ? "fft_fft" : "fft_ifft";
  const Tensor operand = fft_operand(op, self, false);
  const int64_t d = fft_dim(op, self, dim), points = n.value_or(self.size(d)), norm = fft_norm(op, norm_name, forward);
  check_points(op, points);
  const Tensor x = with_points(operand, d, points);
  if (x.is_complex()) return ops::_fft_c2c(x, d, norm, forward);
  const Tensor out = ops::_fft_r2c(x, d, norm, false);
  return forward ? out : out.conj();
}

template <bool forward>
Tensor fft_of_real(const Tensor& self, std::optional<int64_t> n, int64_t dim, FftNormName norm_name) {
  constexpr const char* op = forward ? "fft_rfft" : "fft_ihfft";
  const Tensor operand = real_fft_operand(op, self);
  const int64_t d = fft_dim(op, self, dim), points = n.value_or(self.size(d));
  check_points(op, points);
  const Tensor out = ops::_fft_r2c(with_points(operand, d, points), d, fft_norm(op, norm_name, forward), true);
  return forward ? out : out.conj();
}

template <bool forward>
Tensor fft_to_real(const Tensor& self, std::optional<int64_t> n, int64_t dim, FftNormName norm_name) {
  constexpr const char* op = forward ? "fft_hfft" : "fft_irfft";
  const Tensor operand = fft_operand(op, self, true);
  const int64_t d = fft_dim(op, self, dim), points = n ? *n : multiply_sizes(op, 2, self.size(d) - 1);
  check_points(op, points);
  const Tensor x = with_points(operand, d, points / 2 + 1);
  return ops::_fft_c2r(forward ? x.conj() : x, d, fft_norm(op, norm_name, forward), points);
}

// ---- several dimensions ---------------------------------------------------------------------------------------------

struct FftPlaces {
  DimVector dims, points;
};

// Which dimensions are transformed, at how many points.
FftPlaces fft_places(const char* op, const Tensor& self, const OptionalIntArrayRef& s, const OptionalIntArrayRef& dim) {
  FftPlaces places;
  if (dim) {
    for (const int64_t d : *dim) fft_dim(op, self, d);
    places.dims = wrap_dims(*dim, self.dim(), op);
  }
  if (s) {
    const auto count = static_cast<int64_t>(s->size());
    RUSH_CHECK_VALUE(!dim || dim->size() == s->size(), op, ": s ", *s, " and dim ", dim ? *dim : IntArrayRef(),
                     " must be of one length");
    RUSH_CHECK_VALUE(count <= self.dim(), op, ": s ", *s, " has more dimensions than the tensor of sizes ",
                     self.sizes());
    for (int64_t d = self.dim() - count; d < self.dim() && !dim; ++d) places.dims.push_back(d);
  } else if (!dim) {
    for (int64_t d = 0; d < self.dim(); ++d) places.dims.push_back(d);
  }
  for (size_t i = 0; i < places.dims.size(); ++i) {
    const bool as_it_is = !s || (*s)[i] == -1;
    places.points.push_back(as_it_is ? self.size(places.dims[i]) : (*s)[i]);
    check_points(op, places.points.back());
  }
  return places;
}

FftPlaces fft_half_places(const char* op, const Tensor& self, const OptionalIntArrayRef& s,
                          const OptionalIntArrayRef& dim) {
  FftPlaces places = fft_places(op, self, s, dim);
  RUSH_CHECK_VALUE(!places.dims.empty(), op, ": expected a dimension to transform");
  return places;
}

// The same if the last dimension of `self` holds half of the frequencies: how many points these make.
int64_t points_of_half(const char* op, const FftPlaces& places, const OptionalIntArrayRef& s) {
  const bool as_it_is = !s || s->back() == -1;
  const int64_t points = as_it_is ? multiply_sizes(op, 2, places.points.back() - 1) : places.points.back();
  check_points(op, points);
  return points;
}

template <bool forward>
Tensor fftn_full(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, FftNormName norm_name) {
  constexpr const char* op = forward ? "fft_fftn" : "fft_ifftn";
  const Tensor operand = fft_operand(op, self, true);
  const FftPlaces places = fft_places(op, self, s, dim);
  const int64_t norm = fft_norm(op, norm_name, forward);
  const Tensor x = with_points(operand, places.dims, places.points);
  return ops::_fft_c2c(x, places.dims, norm, forward);
}

Tensor fft_rfftn(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, FftNormName norm_name) {
  constexpr const char* op = "fft_rfftn";
  const Tensor operand = real_fft_operand(op, self);
  const FftPlaces places = fft_half_places(op, self, s, dim);
  const int64_t norm = fft_norm(op, norm_name, true);
  return ops::_fft_r2c(with_points(operand, places.dims, places.points), places.dims, norm, true);
}

Tensor fft_irfftn(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, FftNormName norm_name) {
  constexpr const char* op = "fft_irfftn";
  const Tensor operand = fft_operand(op, self, true);
  FftPlaces places = fft_half_places(op, self, s, dim);
  const int64_t points = points_of_half(op, places, s), norm = fft_norm(op, norm_name, false);
  places.points.back() = points / 2 + 1;
  return ops::_fft_c2r(with_points(operand, places.dims, places.points), places.dims, norm, points);
}

// The last dimension is Hermitian, the others are transformed in full.
Tensor fft_hfftn(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, FftNormName norm_name) {
  constexpr const char* op = "fft_hfftn";
  const Tensor operand = fft_operand(op, self, true);
  FftPlaces places = fft_half_places(op, self, s, dim);
  const int64_t points = points_of_half(op, places, s), norm = fft_norm(op, norm_name, true);
  places.points.back() = points / 2 + 1;
  Tensor x = with_points(operand, places.dims, places.points);
  const IntArrayRef others = IntArrayRef(places.dims).slice(0, places.dims.size() - 1);
  if (!others.empty()) x = ops::_fft_c2c(x, others, norm, true);
  return ops::_fft_c2r(x.conj(), places.dims.back(), norm, points);
}

Tensor fft_ihfftn(const Tensor& self, OptionalIntArrayRef s, OptionalIntArrayRef dim, FftNormName norm_name) {
  constexpr const char* op = "fft_ihfftn";
  const Tensor operand = real_fft_operand(op, self);
  const FftPlaces places = fft_half_places(op, self, s, dim);
  const int64_t norm = fft_norm(op, norm_name, false);
  const Tensor x = with_points(operand, places.dims, places.points);
  const Tensor half = ops::_fft_r2c(x, places.dims.back(), norm, true).conj();
  const IntArrayRef others = IntArrayRef(places.dims).slice(0, places.dims.size() - 1);
  return others.empty() ? half : ops::_fft_c2c(half, others, norm, false);
}

// Two dimensions are several.
template <auto transform>
Tensor two_dimensional(const Tensor& self, OptionalIntArrayRef s, IntArrayRef dim, FftNormName norm) {
  return transform(self, s, dim, norm);
}

// ---- orders of frequencies ------------------------------------------------------------------------------------------

// Rolled by half of each size, rounded down, or up for the way back.
template <bool inverse>
Tensor fft_shift(const Tensor& self, OptionalIntArrayRef dim) {
  constexpr const char* op = inverse ? "fft_ifftshift" : "fft_fftshift";
  const DimVector dims = wrap_dims(dim ? *dim : IntArrayRef(), self.dim(), op, !dim);
  if (self.dim() == 0) return self.clone();
  DimVector shifts;
  for (const int64_t d : dims) shifts.push_back((self.size(d) + (inverse ? 1 : 0)) / 2);
  return dims.empty() ? self.clone() : roll(self, shifts, dims);
}

// 0, ..., zeros - 1, then up to -1; over (n d).
Tensor frequencies(const char* op, int64_t n, int64_t count, int64_t zeros, double d, MaybeDtype dtype,
                   MaybeDevice device) {
  check_points(op, n);
  const ScalarType type = dtype.value_or(get_default_dtype());
  RUSH_CHECK_TYPE(is_differentiable(type), op, ": expected a floating-point or complex dtype, got ", type);
  const TensorOptions options = TensorOptions(to_real(type)).device(device);
  const Tensor out = arange(count, options);
  if (zeros < count) out.narrow(0, zeros, count - zeros).copy_(arange(zeros - n, 0, options));
  return out.mul_(1.0 / (static_cast<double>(n) * d)).to(type);
}

Tensor fft_fftfreq(int64_t n, double d, MaybeDtype dtype, MaybeLayout /*layout*/, MaybeDevice device,
                   MaybePin /*pin_memory*/) {
  return frequencies("fft_fftfreq", n, n, n - n / 2, d, dtype, device);
}

Tensor fft_rfftfreq(int64_t n, double d, MaybeDtype dtype, MaybeLayout /*layout*/, MaybeDevice device,
                    MaybePin /*pin_memory*/) {
  return frequencies("fft_rfftfreq", n, n / 2 + 1, n / 2 + 1, d, dtype, device);
}

}  // namespace
}  // namespace native

void register_fft_composites(Registry& r) {
  r.composite(ops::fft_fft, native::fft_full<true>);
  r.composite(ops::fft_ifft, native::fft_full<false>);
  r.composite(ops::fft_rfft, native::fft_of_real<true>);
  r.composite(ops::fft_irfft, native::fft_to_real<false>);
  r.composite(ops::fft_hfft, native::fft_to_real<true>);
  r.composite(ops::fft_ihfft, native::fft_of_real<false>);
#define RUSH_REGISTER_FFTN(name, transform)   \
  r.composite(ops::fft_##name##n, transform); \
  r.composite(ops::fft_##name##2, native::two_dimensional<transform>);
  RUSH_REGISTER_FFTN(fft, native::fftn_full<true>)
  RUSH_REGISTER_FFTN(ifft, native::fftn_full<false>)
  RUSH_REGISTER_FFTN(rfft, native::fft_rfftn)
  RUSH_REGISTER_FFTN(irfft, native::fft_irfftn)
  RUSH_REGISTER_FFTN(hfft, native::fft_hfftn)
  RUSH_REGISTER_FFTN(ihfft, native::fft_ihfftn)
#undef RUSH_REGISTER_FFTN
  r.composite(ops::fft_fftshift, native::fft_shift<false>);
  r.composite(ops::fft_ifftshift, native::fft_shift<true>);
  r.composite(ops::fft_fftfreq, native::fft_fftfreq);
  r.composite(ops::fft_rfftfreq, native::fft_rfftfreq);
}

namespace fft {

Tensor fftfreq(int64_t n, double d, const TensorOptions& o) { return detail::call_factory(ops::fft_fftfreq, o, n, d); }
Tensor rfftfreq(int64_t n, double d, const TensorOptions& o) {
  return detail::call_factory(ops::fft_rfftfreq, o, n, d);
}

}  // namespace fft

}  // namespace rush
