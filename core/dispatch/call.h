// Calls of operators by name.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dispatch/op.h"
#include "core/dispatch/value.h"

namespace rush {

/// Calls an operator by name, as Schema::bind describes the arguments. Throws NotImplementedError for an unknown name.
Stack call_operator(std::string_view name, std::vector<Value> positional,
                    std::vector<std::pair<std::string, Value>> named = {});

}  // namespace rush
