// ReduceOp: how a collective makes one element of those that the processes hold.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/scalar_type.h"

namespace rush::distributed {

/// c10d::ReduceOp. AVG is the sum, divided by the number of processes.
enum class ReduceOp : uint8_t { SUM, AVG, PRODUCT, MIN, MAX };

/// "sum", "avg", "product", "min" or "max", as operators are given it.
const char* name(ReduceOp op);
/// The other way. Throws ValueError for another name.
ReduceOp reduce_op_named(std::string_view name);

/// Throws TypeError, which begins with `who`, unless elements of the dtype can be reduced so: complex numbers have no
/// order, and a mean is a number in floating point or complex.
void check_reduction(const char* who, ReduceOp op, ScalarType dtype);

}  // namespace rush::distributed
