#include "nn/modules/functional.h"

#include "nn/module_text.h"

namespace rush::nn {

void FunctionalImpl::pretty_print(std::ostream& stream) const { stream << detail::module_text("Functional()"); }

}  // namespace rush::nn
