// Dropout.
#pragma once
#include "nn/cloneable.h"
#include "nn/options/dropout.h"

namespace rush::nn {

// torch.nn.Dropout drops elements; Dropout1d, 2d, 3d drop whole channels. In evaluation mode they return their input.
// Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting" (2014).
#define RUSH_DROPOUT_MODULE(Name)                                                                       \
  class Name##Impl : public Cloneable<Name##Impl> {                                                     \
   public:                                                                                              \
    explicit Name##Impl(double p) : Name##Impl(DropoutOptions(p)) {}                                    \
    explicit Name##Impl(const DropoutOptions& options = {}) : options(options) { Name##Impl::reset(); } \
    void reset() override;                                                                              \
    void pretty_print(std::ostream& stream) const override;                                             \
    Tensor forward(const Tensor& input);                                                                \
                                                                                                        \
    DropoutOptions options;                                                                             \
  };                                                                                                    \
  RUSH_MODULE(Name)
RUSH_DROPOUT_MODULE(Dropout);
RUSH_DROPOUT_MODULE(Dropout1d);
RUSH_DROPOUT_MODULE(Dropout2d);
RUSH_DROPOUT_MODULE(Dropout3d);
// Drop to SELU's limit instead of zero, and keep mean and deviation: torch.nn.AlphaDropout, FeatureAlphaDropout.
RUSH_DROPOUT_MODULE(AlphaDropout);
RUSH_DROPOUT_MODULE(FeatureAlphaDropout);
#undef RUSH_DROPOUT_MODULE

}  // namespace rush::nn
