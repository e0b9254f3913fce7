// Defines the methods of core/ops/libtorch_methods.inc. Note [Methods of libtorch alone]
#include "ATen/core/DeprecatedTypeProperties.h"
#include "ATen/operators/batch_norm.h"
#include "ATen/operators/linear_algebra.h"
#include "ATen/operators/random_operators.h"
#include "ATen/operators/sparse_operators.h"
#include "ATen/operators/special_functions.h"
#include "ATen/operators/statistics.h"
#include "c10/util/MaybeOwned.h"
#include "core/iterator/output_checks.h"

namespace rush {

// What the methods call: the functions of rush, and here those that are methods only, whose first argument is the
// tensor.
namespace aten_methods {
using namespace rush;

MaybeOwned<Tensor> expect_contiguous(const Tensor& self, MemoryFormat format) {
  if (self.is_contiguous(format)) return MaybeOwned<Tensor>::borrowed(self);
  return MaybeOwned<Tensor>::owned(self.contiguous(format));
}
/// Writes into the diagonal, of equal sizes in more than two dimensions. In a tall matrix it starts again below a row
/// that it leaves out, if `wrap`.
Tensor& fill_diagonal_(Tensor& self, const Scalar& value, bool wrap) {
  RUSH_CHECK_VALUE(self.dim() >= 2, "fill_diagonal_: needs two dimensions at least, got ", self.dim());
  const int64_t rows = self.size(0), columns = self.size(1);
  int64_t step = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    step += self.stride(d);
    RUSH_CHECK_VALUE(self.dim() == 2 || self.size(d) == rows,
                     "fill_diagonal_: all dimensions must have equal sizes, got ", self.sizes());
  }
  self.as_strided({std::min(rows, columns)}, {step}).fill_(value);
  if (wrap && self.dim() == 2 && rows > columns + 1) {
    for (int64_t top = columns + 1; top < rows; top += columns + 1) self.slice(0, top).diagonal().fill_(value);
  }
  return self;
}
template <class Exponent>
Tensor& float_power_(Tensor& self, const Exponent& exponent) {
  const Tensor result = float_power(self, exponent);
  RUSH_CHECK_TYPE(result.scalar_type() == self.scalar_type(), "float_power_: the result is ", result.scalar_type(),
                  ", and the tensor ", self.scalar_type());
  return self.copy_(result);
}
Tensor hardshrink_backward(const Tensor& self, const Tensor& grad_out, const Scalar& lambd) {
  return ops::hardshrink_backward(grad_out, self, lambd);
}
DeprecatedTypeProperties& type(const Tensor& self) {
  return type_properties(self.device().type, self.scalar_type(), self.is_sparse());
}
Tensor& write(Tensor& self, const Tensor& result, const char* method) {
  check_result_type(method, result.scalar_type(), self.scalar_type());
  return self.copy_(result);
}
}  // namespace aten_methods

#define RUSH_OR(value)
#define RUSH_METHOD(result, name, parameters, ...) \
  result Tensor::name parameters const { return aten_methods::name(self() __VA_OPT__(, ) __VA_ARGS__); }
#define RUSH_METHOD_(name, parameters, ...)                                                               \
  Tensor& Tensor::name##_ parameters const {                                                              \
    return aten_methods::write(self(), aten_methods::name(self() __VA_OPT__(, ) __VA_ARGS__), #name "_"); \
  }
#include "core/ops/libtorch_methods.inc"
#undef RUSH_METHOD_
#undef RUSH_METHOD
#undef RUSH_OR

}  // namespace rush
