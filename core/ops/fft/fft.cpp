// The three primitive transforms. What is made of them is in fft_composites.cpp.
#include "core/ops/fft/fft.h"

#include <cmath>

#include "core/ops/basic.h"
#include "core/ops/register.h"
#include "core/ops/view/rearrange.h"

namespace rush {

namespace native {

namespace {

// `dim` counted from the front. Throws unless `self`, whose dtype the caller names, has points along each.
DimVector fft_dims(const char* op, const Tensor& self, IntArrayRef dim, bool complex, const char* expected) {
  const ScalarType type = self.scalar_type();
  const bool fits = complex ? is_complex(type) : type == kFloat32 || type == kFloat64;
  RUSH_CHECK_TYPE(fits, op, ": expected ", expected, ", got ", type);
  RUSH_CHECK_INDEX(self.dim() > 0 || dim.empty(), op, ": a 0-dimensional tensor has no dimension ", dim[0]);
  const DimVector dims = wrap_dims(dim, self.dim(), op);
  for (const int64_t d : dims) {
    RUSH_CHECK_VALUE(self.size(d) >= 1, op, ": dimension ", d, " of ", self.sizes(), " has no points");
  }
  return dims;
}

// What the transform of a signal of these sizes is multiplied by.
double fft_scale(const char* op, IntArrayRef signal, const DimVector& dims, int64_t normalization) {
  double points = 1;
  for (const int64_t d : dims) points *= static_cast<double>(signal[static_cast<size_t>(d)]);
  RUSH_CHECK_VALUE(normalization >= 0 && normalization <= 2, op,
                   ": normalization must be 0 (none), 1 (by the root of n) or 2 (by n), got ", normalization);
  switch (static_cast<FftNorm>(normalization)) {
    case FftNorm::RootN: return 1 / std::sqrt(points);
    case FftNorm::N: return 1 / points;
    default: return 1;
  }
}

Tensor _fft_c2c(const Tensor& self, IntArrayRef dim, int64_t normalization, bool forward) {
  const DimVector dims = fft_dims("_fft_c2c", self, dim, true, "complex64 or complex128");
  if (dims.empty()) return self.clone();
  const double scale = fft_scale("_fft_c2c", self.sizes(), dims, normalization);
  const Tensor out = detail::empty_contiguous(self.sizes(), self.scalar_type(), self.device());
  if (out.numel() > 0) kernels::fft_c2c(self.device().type, out, self, dims, forward, scale);
  return out;
}

// The frequencies of a real signal from n/2 + 1 to n - 1 of the last of `dims`, from those before:
// X_(-k, -l) = conj(X_(k, l)), indices modulo the sizes.
void mirror_frequencies(const Tensor& out, const DimVector& dims) {
  const int64_t last = dims.back(), n = out.size(last), half = n / 2 + 1;
  if (n <= 2) return;
  const DimVector others = IntArrayRef(dims).slice(0, dims.size() - 1);
  const Tensor mirrored = flip(part(out, last, 1, n - half), dims);
  const Tensor source = others.empty() ? mirrored : roll(mirrored, DimVector(others.size(), 1), others);
  part(out, last, half, n - half).copy_(source.conj());
}

Tensor _fft_r2c(const Tensor& self, IntArrayRef dim, int64_t normalization, bool onesided) {
  const DimVector dims = fft_dims("_fft_r2c", self, dim, false, "float32 or float64");
  RUSH_CHECK_VALUE(!dims.empty(), "_fft_r2c: expected a dimension to transform");
  const double scale = fft_scale("_fft_r2c", self.sizes(), dims, normalization);
  const int64_t last = dims.back(), half = self.size(last) / 2 + 1;
  DimVector sizes(self.sizes());
  if (onesided) sizes[static_cast<size_t>(last)] = half;
  const Tensor out = detail::empty_contiguous(sizes, to_complex(self.scalar_type()), self.device());
  if (out.numel() == 0) return out;
  kernels::fft_r2c(self.device().type, part(out, last, 0, half), self, dims, scale);
  if (!onesided) mirror_frequencies(out, dims);
  return out;
}

Tensor _fft_c2r(const Tensor& self, IntArrayRef dim, int64_t normalization, int64_t last_dim_size) {
  const DimVector dims = fft_dims("_fft_c2r", self, dim, true, "complex64 or complex128");
  RUSH_CHECK_VALUE(!dims.empty(), "_fft_c2r: expected a dimension to transform");
  const int64_t last = dims.back();
  RUSH_CHECK_VALUE(last_dim_size >= 1 && last_dim_size / 2 + 1 == self.size(last), "_fft_c2r: ", last_dim_size,
                   " points have ", last_dim_size / 2 + 1, " frequencies, dimension ", last, " of ", self.sizes(),
                   " holds ", self.size(last));
  DimVector sizes(self.sizes());
  sizes[static_cast<size_t>(last)] = last_dim_size;
  const double scale = fft_scale("_fft_c2r", sizes, dims, normalization);
  const Tensor out = detail::empty_contiguous(sizes, to_real(self.scalar_type()), self.device());
  if (out.numel() > 0) kernels::fft_c2r(self.device().type, out, self, dims, scale);
  return out;
}

}  // namespace
}  // namespace native

void register_fft_ops(Registry& r) {
  r.native(ops::_fft_c2c, native::_fft_c2c);
  r.native(ops::_fft_r2c, native::_fft_r2c);
  r.native(ops::_fft_c2r, native::_fft_c2r);
}

}  // namespace rush
