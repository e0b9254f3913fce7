#include "nn/functional/dropout.h"

#include "core/error/warning.h"
#include "core/ops/nn/dropout.h"

namespace rush::nn::functional {

namespace {

void check_probability(double p) {
  RUSH_CHECK_VALUE(p >= 0 && p <= 1, "dropout: dropout probability has to be between 0 and 1, but got ", p);
}

bool has_dimensions(const Tensor& input, int64_t batched) {
  return input.dim() == batched || input.dim() == batched - 1;
}

// PyTorch takes such inputs too, and says that it will not for long.
void warn_of_dimensions(const char* op, const Tensor& input, int64_t batched) {
  if (has_dimensions(input, batched)) return;
  RUSH_WARN_ONCE_PER_CALLER(op, ": an input of ", batched - 1, " or ", batched,
                            " dimensions has channels to drop, got shape ", input.sizes(),
                            "; use dropout for other inputs");
}

Tensor drop_channels(Tensor input, const DropoutFuncOptions& o) {
  return o.inplace() ? feature_dropout_(input, o.p(), o.training()) : feature_dropout(input, o.p(), o.training());
}

// The same where an input of other dimensions has no N.
Tensor drop_channels_unbatched(const Tensor& input, int64_t batched, const DropoutFuncOptions& o) {
  if (input.dim() == batched) return drop_channels(input, o);
  const Tensor result = drop_channels(input.unsqueeze(0), o);
  return o.inplace() ? input : result.squeeze(0);
}

}  // namespace

Tensor dropout(Tensor input, const DropoutFuncOptions& o) {
  check_probability(o.p());
  return o.inplace() ? rush::dropout_(input, o.p(), o.training()) : rush::dropout(input, o.p(), o.training());
}

Tensor dropout1d(Tensor input, const Dropout1dFuncOptions& o) {
  check_probability(o.p());
  RUSH_CHECK_VALUE(has_dimensions(input, 3), "dropout1d: expected 2 or 3 dimensions, got shape ", input.sizes());
  return drop_channels_unbatched(input, 3, o);
}
Tensor dropout2d(Tensor input, const Dropout2dFuncOptions& o) {
  check_probability(o.p());
  warn_of_dimensions("dropout2d", input, 4);
  return drop_channels(std::move(input), o);
}
Tensor dropout3d(Tensor input, const Dropout3dFuncOptions& o) {
  check_probability(o.p());
  warn_of_dimensions("dropout3d", input, 5);
  return drop_channels_unbatched(input, 5, o);
}

Tensor alpha_dropout(Tensor input, const AlphaDropoutFuncOptions& o) {
  check_probability(o.p());
  return o.inplace() ? rush::alpha_dropout_(input, o.p(), o.training())
                     : rush::alpha_dropout(input, o.p(), o.training());
}
Tensor feature_alpha_dropout(Tensor input, const FeatureAlphaDropoutFuncOptions& o) {
  check_probability(o.p());
  return o.inplace() ? rush::feature_alpha_dropout_(input, o.p(), o.training())
                     : rush::feature_alpha_dropout(input, o.p(), o.training());
}

}  // namespace rush::nn::functional
