#include "nn/functional/dropout.h"

#include "core/ops/nn/dropout.h"

namespace rush::nn::functional {

namespace {

void check_probability(double p) {
  RUSH_CHECK_VALUE(p >= 0 && p <= 1, "dropout: dropout probability has to be between 0 and 1, but got ", p);
}

void check_dimensions(const char* op, const Tensor& input, int64_t batched) {
  RUSH_CHECK_VALUE(input.dim() == batched || input.dim() == batched - 1, op, ": expected ", batched - 1, " or ",
                   batched, " dimensions, got shape ", input.sizes());
}

Tensor drop_channels(Tensor input, const DropoutFuncOptions& o) {
  return o.inplace() ? feature_dropout_(input, o.p(), o.training()) : feature_dropout(input, o.p(), o.training());
}

// The same where an input of one dimension less has no N.
Tensor drop_channels_unbatched(const char* op, const Tensor& input, int64_t batched, const DropoutFuncOptions& o) {
  check_probability(o.p());
  check_dimensions(op, input, batched);
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
  return drop_channels_unbatched("dropout1d", input, 3, o);
}
Tensor dropout2d(Tensor input, const Dropout2dFuncOptions& o) {
  check_probability(o.p());
  check_dimensions("dropout2d", input, 4);
  return drop_channels(std::move(input), o);
}
Tensor dropout3d(Tensor input, const Dropout3dFuncOptions& o) {
  return drop_channels_unbatched("dropout3d", input, 5, o);
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
