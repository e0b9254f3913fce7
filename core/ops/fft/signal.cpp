#include "core/ops/fft/signal.h"

#include <bit>

#include "core/iterator/tensor_iterator.h"
#include "core/ops/fft/fft.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/view/view.h"

namespace rush::signal {

namespace {

// The smallest number from n on without prime factors above 5, for which transforms are fast.
int64_t fast_length(int64_t n) {
  int64_t best = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
  for (int64_t fives = 1; fives < best; fives *= 5) {
    for (int64_t odd = fives; odd < best; odd *= 3) {
      int64_t candidate = odd;
      while (candidate < n) candidate *= 2;
      best = std::min(best, candidate);
    }
  }
  return best;
}

void check_operands(const Tensor& input, const Tensor& kernel, std::string_view mode, const DimVector& dims) {
  RUSH_CHECK_VALUE(mode == "full" || mode == "same" || mode == "valid",
                   "fftconvolve: mode must be 'full', 'same' or 'valid', got '", mode, "'");
  bool shorter = true, longer = true;
  for (const int64_t d : dims) {
    const int64_t n = input.size(d), m = kernel.size(d);
    RUSH_CHECK_VALUE(n > 0 && m > 0, "fftconvolve: dimension ", d, " of ", input.sizes(), " or ", kernel.sizes(),
                     " has no points");
    RUSH_CHECK_VALUE(std::max(n, m) <= INT64_MAX / 16, "fftconvolve: ", std::max(n, m), " points are too many");
    longer = longer && n >= m;
    shorter = shorter && n <= m;
  }
  RUSH_CHECK_VALUE(mode != "valid" || longer || shorter, "fftconvolve: with mode 'valid' one of ", input.sizes(),
                   " and ", kernel.sizes(), " must be the longer one in all dimensions ", IntArrayRef(dims));
}

}  // namespace

Tensor fftconvolve(const Tensor& input, const Tensor& kernel, std::string_view mode, IntArrayRef dim) {
  RUSH_CHECK_VALUE(input.dim() == kernel.dim() && input.dim() > 0,
                   "fftconvolve: expected operands with the same number of dimensions, got ", input.sizes(), " and ",
                   kernel.sizes());
  RUSH_CHECK_VALUE(!dim.empty(), "fftconvolve: expected a dimension to convolve along");
  const DimVector dims = wrap_dims(dim, input.dim(), "fftconvolve");
  check_operands(input, kernel, mode, dims);
  ScalarType type = result_type(input, kernel);
  if (!is_differentiable(type)) type = get_default_dtype();
  const Tensor a = input.to(type), b = kernel.to(type);
  DimVector points;
  for (const int64_t d : dims) points.push_back(fast_length(a.size(d) + b.size(d) - 1));
  Tensor out = a.is_complex() ? fft::ifftn(fft::fftn(a, points, dims) * fft::fftn(b, points, dims), points, dims)
                              : fft::irfftn(fft::rfftn(a, points, dims) * fft::rfftn(b, points, dims), points, dims);
  for (const int64_t d : dims) {
    const int64_t n = a.size(d), m = b.size(d), full = n + m - 1;
    const int64_t kept = mode == "full" ? full : mode == "same" ? n : std::max(n, m) - std::min(n, m) + 1;
    out = out.narrow(d, (full - kept) / 2, kept);
  }
  return out;
}

}  // namespace rush::signal
