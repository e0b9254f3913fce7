#include "core/distributed/reduce_op.h"

#include "core/error/error.h"

namespace rush::distributed {

namespace {
constexpr const char* kNames[] = {"sum", "avg", "product", "min", "max"};
}  // namespace

const char* name(ReduceOp op) { return kNames[static_cast<int>(op)]; }

ReduceOp reduce_op_named(std::string_view name) {
  for (int i = 0; i < 5; ++i) {
    if (kNames[i] == name) return static_cast<ReduceOp>(i);
  }
  RUSH_THROW(ValueError, "there is no reduction '", std::string(name), "'; expected sum, avg, product, min or max");
}

void check_reduction(const char* who, ReduceOp op, ScalarType dtype) {
  RUSH_CHECK_TYPE(!is_complex(dtype) || (op != ReduceOp::MIN && op != ReduceOp::MAX), who, ": there is no ", name(op),
                  " of complex numbers, and the tensor is of ", dtype);
  RUSH_CHECK_TYPE(op != ReduceOp::AVG || is_floating_point(dtype) || is_complex(dtype), who,
                  ": a mean of integers is none, and the tensor is of ", dtype, "; reduce by SUM, and divide");
}

}  // namespace rush::distributed
