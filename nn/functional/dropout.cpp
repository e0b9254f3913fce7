#include "nn/functional/dropout.h"

#include "core/ops/dropout.h"
#include "core/ops/factories.h"

namespace rush::nn::functional {

namespace {

void check_probability(double p) {
  RUSH_CHECK_VALUE(p >= 0 && p <= 1, "dropout: the probability has to be between 0 and 1, got ", p);
}

// `spatial` dimensions follow the channels.
Tensor drop_channels(Tensor input, int64_t spatial, const DropoutFuncOptions& o) {
  check_probability(o.p());
  RUSH_CHECK_VALUE(input.dim() == spatial + 1 || input.dim() == spatial + 2, "dropout", spatial, "d: expected ",
                   spatial + 1, " or ", spatial + 2, " dimensions, got shape ", input.sizes());
  if (!o.training() || o.p() == 0) return input;
  // One number for each channel of each sample.
  DimVector sizes(input.sizes());
  for (size_t d = sizes.size() - static_cast<size_t>(spatial); d < sizes.size(); ++d) sizes[d] = 1;
  const Tensor noise = rush::dropout(ones(sizes, input.options()), o.p(), /*train=*/true);
  return o.inplace() ? input.mul_(noise) : input.mul(noise);
}

}  // namespace

Tensor dropout(Tensor input, const DropoutFuncOptions& o) {
  check_probability(o.p());
  return o.inplace() ? rush::dropout_(input, o.p(), o.training()) : rush::dropout(input, o.p(), o.training());
}

Tensor dropout1d(Tensor input, const Dropout1dFuncOptions& o) { return drop_channels(std::move(input), 1, o); }
Tensor dropout2d(Tensor input, const Dropout2dFuncOptions& o) { return drop_channels(std::move(input), 2, o); }
Tensor dropout3d(Tensor input, const Dropout3dFuncOptions& o) { return drop_channels(std::move(input), 3, o); }

}  // namespace rush::nn::functional
