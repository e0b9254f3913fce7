#include "core/ops/reduce/histogram.h"

#include <cmath>

#include "core/ops/basic.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

// Kernels find an element's bin as (x - low) bins / (high - low), in double precision only for float64.
static void check_bins(ScalarType dtype, int64_t bins, double low, double high) {
  const auto most = static_cast<double>(bins);
  const bool wide = dtype == kFloat64;
  const double width = wide ? high - low : static_cast<float>(high) - static_cast<float>(low);
  const double product = wide ? width * most : static_cast<float>(width) * static_cast<float>(most);
  RUSH_CHECK_VALUE(width > 0 && std::isfinite(product), "histc: the range [", low, ", ", high,
                   "] is too narrow or too wide for ", bins, " bins of ", dtype);
}

static Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  RUSH_CHECK_NOT_IMPLEMENTED(self.is_floating_point(), "histc: expected a floating tensor, got ", self.scalar_type());
  RUSH_CHECK_VALUE(bins > 0, "histc: expected at least one bin, got ", bins);
  Tensor output = zeros(bins, self.options());
  double low = min.toDouble(), high = max.toDouble();
  if (low == high && self.numel() > 0 && !self.is_meta()) {
    const auto [smallest, largest] = ops::aminmax(self, std::nullopt, false);
    low = smallest.item<double>();
    high = largest.item<double>();
  }
  RUSH_CHECK_VALUE(low <= high && std::isfinite(low) && std::isfinite(high), "histc: expected a finite range, got [",
                   low, ", ", high, "]");
  if (low == high) {
    low -= 1;
    high += 1;
  }
  check_bins(self.scalar_type(), bins, low, high);
  kernels::histc(self.device().type, output, contiguous(self), low, high);
  return output;
}

static Tensor bincount(const Tensor& self, const std::optional<Tensor>& weights, int64_t minlength) {
  RUSH_CHECK_NOT_IMPLEMENTED(!self.is_meta(),
                             "bincount: the shape of the result depends on values, a meta tensor has none");
  RUSH_CHECK_TYPE(is_integral(self.scalar_type(), false), "bincount: expected integers, got ", self.scalar_type());
  RUSH_CHECK_VALUE(minlength >= 0, "bincount: minlength is negative: ", minlength);
  RUSH_CHECK_VALUE(self.dim() == 1, "bincount: expected one dimension, got shape ", self.sizes());
  const bool weighted = given(weights);
  RUSH_CHECK_VALUE(!weighted || weights->sizes() == self.sizes(), "bincount: got weights of shape ",
                   weighted ? weights->sizes() : IntArrayRef(), " for elements of shape ", self.sizes());
  int64_t bins = minlength;
  if (self.numel() > 0) {
    const auto [low, high] = ops::aminmax(self, std::nullopt, false);
    const auto smallest = low.item<int64_t>(), largest = high.item<int64_t>();
    RUSH_CHECK_VALUE(smallest >= 0, "bincount: elements must not be negative, got ", smallest);
    RUSH_CHECK_VALUE(largest < INT64_MAX, "bincount: an element is too large: ", largest);
    bins = std::max(bins, largest + 1);
  }
  if (!weighted || self.numel() == 0) {
    const Tensor output = zeros(bins, self.options().dtype(kInt64));
    kernels::bincount(self.device().type, output, contiguous(self), Tensor());
    return output;
  }
  const ScalarType dtype = weights->scalar_type() == kFloat32 ? kFloat32 : kFloat64;
  const Tensor output = zeros(bins, self.options().dtype(dtype));
  kernels::bincount(self.device().type, output, contiguous(self), contiguous(as_dtype(*weights, dtype)));
  return output;
}

}  // namespace native

void register_histogram_ops(Registry& r) {
  r.native(ops::histc, native::histc);
  r.native(ops::bincount, native::bincount);
}

Tensor Tensor::histc(int64_t bins, const Scalar& min, const Scalar& max) const {
  return ops::histc(*this, bins, min, max);
}
Tensor Tensor::bincount(const std::optional<Tensor>& weights, int64_t minlength) const {
  return ops::bincount(*this, weights, minlength);
}

}  // namespace rush
