#include "nn/any_module.h"

#include "core/debug/stack_trace.h"

namespace rush::nn {

void detail::throw_other_type(std::string_view is_asked_for, const std::type_info& asked_for,
                              const std::type_info& actual) {
  RUSH_THROW(TypeError, is_asked_for, " ", demangle(asked_for.name()), ", and is ", demangle(actual.name()));
}

}  // namespace rush::nn
