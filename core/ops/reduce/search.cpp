#include "core/ops/reduce/search.h"

#include "core/iterator/tensor_iterator.h"
#include "core/ops/register.h"
#include "core/ops/view/copy.h"

namespace rush {

namespace native {

static Tensor row_major(const Tensor& self, ScalarType dtype) { return contiguous(as_dtype(self, dtype)); }

// The sequence is one row for all values, or a row for each row of theirs.
static void check_rows(const Tensor& sequence, const Tensor& self) {
  RUSH_CHECK_VALUE(sequence.dim() > 0, "searchsorted: the sequence needs a dimension, got a 0-dimensional tensor");
  if (sequence.dim() == 1) return;
  const size_t lead = sequence.sizes().size() - 1;
  RUSH_CHECK_VALUE(self.sizes().size() == lead + 1 && sequence.sizes().slice(0, lead) == self.sizes().slice(0, lead),
                   "searchsorted: a sequence of shape ", sequence.sizes(),
                   " has no row for each row of values of shape ", self.sizes());
}

static void check_sorter(const Tensor& sequence, const Tensor& sorter) {
  RUSH_CHECK_VALUE(sorter.sizes() == sequence.sizes(), "searchsorted: the sorter has shape ", sorter.sizes(),
                   ", the sequence ", sequence.sizes());
  RUSH_CHECK_TYPE(sorter.scalar_type() == kInt64, "searchsorted: expected a sorter of int64, got ",
                  sorter.scalar_type());
}

static Tensor searchsorted(const Tensor& sequence, const Tensor& self, bool out_int32, bool right,
                           const std::optional<std::string_view>& side, const std::optional<Tensor>& sorter) {
  check_rows(sequence, self);
  if (side) {
    RUSH_CHECK_VALUE(*side == "left" || *side == "right", "searchsorted: side is \"", *side,
                     "\", expected \"left\" or \"right\"");
    RUSH_CHECK_VALUE(*side == "right" || !right, "searchsorted: side is \"left\" but right is true");
    right = *side == "right";
  }
  const bool has_sorter = given(sorter);
  if (has_sorter) check_sorter(sequence, *sorter);
  RUSH_CHECK_VALUE(!out_int32 || sequence.sizes()[sequence.dim() - 1] <= INT32_MAX,
                   "searchsorted: a position in a sequence of shape ", sequence.sizes(), " does not fit int32");
  RUSH_CHECK_NOT_IMPLEMENTED(!sequence.is_complex() && !self.is_complex(),
                             "searchsorted: complex numbers have no order");
  const ScalarType dtype = result_type(sequence, self);
  const Tensor output = detail::empty_contiguous(self.sizes(), out_int32 ? kInt32 : kInt64, self.device());
  kernels::searchsorted(self.device().type, output, row_major(sequence, dtype), row_major(self, dtype),
                        has_sorter ? contiguous(*sorter) : Tensor(), right);
  return output;
}

// A number beside a tensor, on its device and in the dtype that both are compared in: moved as it is, it would be a
// tensor like any other, whose dtype counts.
static Tensor number_beside(const Scalar& number, const Tensor& other) {
  const Tensor wrapped = detail::wrapped_number(number);
  return as_dtype(wrapped, result_type(wrapped, other)).to(other.device());
}

static Tensor searchsorted_Scalar(const Tensor& sequence, const Scalar& self, bool out_int32, bool right,
                                  const std::optional<std::string_view>& side, const std::optional<Tensor>& sorter) {
  RUSH_CHECK_VALUE(sequence.dim() == 1, "searchsorted: a number is looked up in one dimension, the sequence has shape ",
                   sequence.sizes());
  return native::searchsorted(sequence, number_beside(self, sequence), out_int32, right, side, sorter);
}

static Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  RUSH_CHECK_VALUE(boundaries.dim() == 1, "bucketize: expected one-dimensional boundaries, got shape ",
                   boundaries.sizes());
  return native::searchsorted(boundaries, self, out_int32, right, std::nullopt, std::nullopt);
}

static Tensor bucketize_Scalar(const Scalar& self, const Tensor& boundaries, bool out_int32, bool right) {
  return native::bucketize(number_beside(self, boundaries), boundaries, out_int32, right);
}

static Tensor isin(const Tensor& elements, const Tensor& test, bool /*assume_unique*/, bool invert) {
  RUSH_CHECK_NOT_IMPLEMENTED(!elements.is_complex() && !test.is_complex(), "isin: not implemented for complex tensors");
  const ScalarType dtype = result_type(elements, test);
  const Tensor output = detail::empty_contiguous(elements.sizes(), kBool, elements.device());
  kernels::isin(elements.device().type, output, row_major(elements, dtype), row_major(test, dtype), invert);
  return output;
}

static Tensor isin_Tensor_Scalar(const Tensor& elements, const Scalar& test, bool assume_unique, bool invert) {
  return native::isin(elements, number_beside(test, elements), assume_unique, invert);
}
static Tensor isin_Scalar_Tensor(const Scalar& element, const Tensor& test, bool assume_unique, bool invert) {
  return native::isin(number_beside(element, test), test, assume_unique, invert);
}

}  // namespace native

void register_search_ops(Registry& r) {
  r.native(ops::searchsorted, native::searchsorted);
  r.native(ops::searchsorted_Scalar, native::searchsorted_Scalar);
  r.native(ops::bucketize, native::bucketize);
  r.native(ops::bucketize_Scalar, native::bucketize_Scalar);
  r.native(ops::isin, native::isin);
  r.native(ops::isin_Tensor_Scalar, native::isin_Tensor_Scalar);
  r.native(ops::isin_Scalar_Tensor, native::isin_Scalar_Tensor);
}

}  // namespace rush
