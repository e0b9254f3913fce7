// Checks of a result against the tensor that takes it, and of shapes that are to be expanded or broadcast.
#pragma once
#include <cstddef>

#include "core/array_ref.h"
#include "core/scalar_type.h"

namespace rush {

/// Throws TypeError unless a result of dtype `result` may be written into a tensor of dtype `output`.
void check_result_type(const char* op, ScalarType result, ScalarType output);

/// Throws ValueError unless a tensor of shape `sizes` can be expanded to `target`.
void check_expands(const char* op, IntArrayRef sizes, IntArrayRef target);

/// Throws the ValueError of shapes that do not broadcast because of the dimension `from_end`, 1 being the last.
[[noreturn]] void throw_no_broadcast(const char* op, IntArrayRef a, IntArrayRef b, size_t from_end);

}  // namespace rush
