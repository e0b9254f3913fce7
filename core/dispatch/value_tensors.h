// The tensors that a Value holds, be it one, a list of them, or a list of optional ones.
#pragma once
#include <vector>

#include "core/dispatch/value.h"

namespace rush {

/// Whether the value is of one of these kinds.
bool holds_tensors(const Value& value);
/// Its tensors, undefined ones included; none for a value of another kind.
std::vector<Tensor> tensors_of(const Value& value);
/// A value of the same kind with these tensors, undefined where there are none; another kind is returned as it is.
Value with_tensors(const Value& value, std::vector<Tensor> tensors);

}  // namespace rush
