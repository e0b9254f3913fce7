#include "core/ops/linalg/factors.h"

#include "core/iterator/output_checks.h"
#include "core/print/bracketed.h"

namespace rush::native {

std::string product_text(IntArrayRef sizes) {
  std::string text;
  for (const int64_t size : sizes) text += str(text.empty() ? "" : "x", size);
  return text;
}

void check_factor_shapes(const char* op, const Tensor& a, const Tensor& b) {
  const bool a_is_vector = a.dim() == 1, b_is_vector = b.dim() == 1;
  const int64_t columns = a.sizes().back(), rows = b.size(b_is_vector ? 0 : -2);
  RUSH_CHECK_VALUE(columns == rows, op,
                   !b_is_vector   ? ": mat1 and mat2"
                   : !a_is_vector ? ": mat and vec"
                                  : ": vec1 and vec2",
                   " shapes cannot be multiplied (", product_text(a.sizes()), " and ", product_text(b.sizes()),
                   "): ", columns, a_is_vector ? " elements" : " columns", " against ", rows,
                   b_is_vector ? " elements" : " rows");
}

void check_factor_batches(const char* op, const Tensor& batch1, const Tensor& batch2) {
  RUSH_CHECK_VALUE(batch1.dim() == 3, op, ": batch1 must be a 3D tensor, got shape ", batch1.sizes());
  RUSH_CHECK_VALUE(batch2.dim() == 3, op, ": batch2 must be a 3D tensor, got shape ", batch2.sizes());
  RUSH_CHECK_VALUE(
      batch1.size(0) == batch2.size(0) && batch1.size(2) == batch2.size(1), op,
      ": Expected size for first two dimensions of batch2 tensor to be: ", bracketed({batch1.size(0), batch1.size(2)}),
      " but got: ", bracketed(batch2.sizes().slice(0, 2)), ", since batch1 has shape ", batch1.sizes());
}

void check_factor_dtypes(const char* op, const Tensor& a, const Tensor& b) {
  RUSH_CHECK_TYPE(a.scalar_type() == b.scalar_type(), op,
                  ": expected m1 and m2 to have the same dtype, but got: ", a.scalar_type(), " != ", b.scalar_type(),
                  "; convert one of them with to()");
}

void check_addend(const char* op, const Tensor& self, const Tensor& factor, IntArrayRef sizes) {
  RUSH_CHECK_TYPE(self.scalar_type() == factor.scalar_type(), op,
                  ": self and the factors must have the same dtype, but got ", self.scalar_type(), " and ",
                  factor.scalar_type());
  RUSH_CHECK_VALUE(self.device() == factor.device(), op, ": self is on ", self.device(), ", the factors are on ",
                   factor.device());
  check_expands(op, self.sizes(), sizes);
}

}  // namespace rush::native
