// What every reader of arrays checks before it believes a header.
#pragma once

#include <cstdint>
#include <optional>

#include "core/tensor.h"

namespace rush::io {

/// The bytes of an array of these sizes; nothing if it, or its strides, would have more than 2^63. Strides are products
/// in which an empty dimension counts as one.
std::optional<uint64_t> array_bytes(IntArrayRef sizes, ScalarType dtype);

/// Whether every value is valid for its dtype. Only a bool may be invalid: it must be 0 or 1.
bool values_valid(const void* bytes, size_t size, ScalarType dtype);

}  // namespace rush::io
