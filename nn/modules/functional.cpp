#include "nn/modules/functional.h"

#include <ostream>

namespace rush::nn {

void FunctionalImpl::pretty_print(std::ostream& stream) const { stream << "rush::nn::Functional()"; }

}  // namespace rush::nn
