// Fourier transforms. They are linear, so the gradient of each is the adjoint of its matrix applied to the gradient.
#include "core/ops/fft/fft.h"

#include "autograd/derivatives/register.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/view/pad.h"
#include "core/ops/view/view.h"

namespace rush {

namespace {

struct FftC2cBackward final : Node {  // the transform in the other direction, scaled alike
  DimVector dim;
  int64_t normalization = 0;
  bool forward = false;
  auto saved_arguments() { return std::tie(std::ignore, dim, normalization, forward); }
  Tensors apply(const Tensors& g) override { return {ops::_fft_c2c(g[0], dim, normalization, !forward)}; }
};

// Frequencies that the one-sided form leaves out have no gradient: they are filled with zeros, and then the gradient is
// the real part of that of the complex transform.
struct FftR2cBackward final : Node {
  SavedSizes sizes;
  DimVector dim;
  int64_t normalization = 0;
  auto saved_arguments() { return std::tie(sizes, dim, normalization, std::ignore); }
  Tensors apply(const Tensors& g) override {
    const int64_t last = wrap_dim(dim.back(), g[0].dim(), "_fft_r2c");
    const int64_t missing = sizes[static_cast<size_t>(last)] - g[0].size(last);
    DimVector padding(2 * static_cast<size_t>(g[0].dim() - last), 0);
    padding.back() = missing;
    const Tensor full = missing > 0 ? constant_pad_nd(g[0], padding) : g[0];
    return {real(ops::_fft_c2c(full, dim, normalization, false))};
  }
};

// Each frequency between the first and the middle stands for its conjugate too, and counts twice.
struct FftC2rBackward final : Node {
  DimVector dim;
  int64_t normalization = 0;
  auto saved_arguments() { return std::tie(std::ignore, dim, normalization, std::ignore); }
  Tensors apply(const Tensors& g) override {
    const Tensor half = ops::_fft_r2c(g[0], dim, normalization, true);
    const int64_t last = wrap_dim(dim.back(), half.dim(), "_fft_c2r");
    const int64_t frequencies = half.size(last), twice = g[0].size(last) - frequencies;
    if (twice == 0) return {half};
    const Tensor counts = ones(frequencies, g[0].options());
    counts.narrow(0, 1, twice).fill_(2);
    DimVector along(static_cast<size_t>(half.dim() - last), 1);
    along[0] = frequencies;
    return {half * counts.view(along)};
  }
};

}  // namespace

void register_fft_derivatives(Registry& r) {
  derive<ops::_fft_c2c, FftC2cBackward>(r);
  derive<ops::_fft_r2c, FftR2cBackward>(r);
  derive<ops::_fft_c2r, FftC2rBackward>(r);
}

}  // namespace rush
