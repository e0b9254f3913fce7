#include "nn/modules/dropout.h"

#include "nn/functional/dropout.h"
#include "nn/module_text.h"

namespace rush::nn {

#define RUSH_DROPOUT_BODY(Name, function)                                                                  \
  void Name##Impl::reset() {                                                                               \
    RUSH_CHECK_VALUE(options.p() >= 0 && options.p() <= 1,                                                 \
                     #Name ": dropout probability has to be between 0 and 1, but got ", options.p());      \
  }                                                                                                        \
  void Name##Impl::pretty_print(std::ostream& stream) const {                                              \
    stream << detail::module_text(#Name "(p=", options.p(), ", inplace=", options.inplace(), ")");         \
  }                                                                                                        \
  Tensor Name##Impl::forward(const Tensor& input) {                                                        \
    const ModuleScope scope(*this);                                                                        \
    const auto call =                                                                                      \
        functional::Name##FuncOptions().p(options.p()).training(is_training()).inplace(options.inplace()); \
    return functional::function(input, call);                                                              \
  }
RUSH_DROPOUT_BODY(Dropout, dropout)
RUSH_DROPOUT_BODY(Dropout1d, dropout1d)
RUSH_DROPOUT_BODY(Dropout2d, dropout2d)
RUSH_DROPOUT_BODY(Dropout3d, dropout3d)
RUSH_DROPOUT_BODY(AlphaDropout, alpha_dropout)
RUSH_DROPOUT_BODY(FeatureAlphaDropout, feature_alpha_dropout)

}  // namespace rush::nn
