// What lab 3 adds to the library: an operator that PyTorch does not have.
#pragma once
#include "core/dispatch/registry.h"

namespace rush::labs {

/// Registers lab::isrlu and lab::isrlu_, with their derivative: the inverse square root linear unit of Carlile and
/// others (2017), x where x >= 0 and x / sqrt(1 + alpha x^2) below.
void register_isrlu(Registry& registry);

}  // namespace rush::labs
