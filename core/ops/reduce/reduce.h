// Reductions to sums: sum, nansum, mean, prod, any, all, count_nonzero, logsumexp, and the parts that all reductions
// share. Those that pick an element are in extrema.h and select.h, var and std in statistics.h, norms in vector_norm.h.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
using ReduceAllOp = Op<Tensor(const Tensor&)>;
using ReduceAllTypedOp = Op<Tensor(const Tensor&, std::optional<ScalarType>)>;
using ReduceDimOp = Op<Tensor(const Tensor&, int64_t, bool)>;
using ReduceDimsOp = Op<Tensor(const Tensor&, OptionalIntArrayRef, bool)>;
using ReduceDimsTypedOp = Op<Tensor(const Tensor&, OptionalIntArrayRef, bool, std::optional<ScalarType>)>;

inline constinit ReduceAllTypedOp sum{"aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor"};
inline constinit ReduceDimsTypedOp sum_dim{
    "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"};
inline constinit ReduceDimsTypedOp nansum{
    "aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"};
inline constinit ReduceAllTypedOp mean{"aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor"};
inline constinit ReduceDimsTypedOp mean_dim{
    "aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"};
inline constinit ReduceAllTypedOp prod{"aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, int64_t, bool, std::optional<ScalarType>)> prod_dim{
    "aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"};
inline constinit ReduceAllOp any{"aten::any(Tensor self) -> Tensor"};
inline constinit ReduceDimOp any_dim{"aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor"};
inline constinit ReduceDimsOp any_dims{"aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"};
inline constinit ReduceAllOp all{"aten::all(Tensor self) -> Tensor"};
inline constinit ReduceDimOp all_dim{"aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor"};
inline constinit ReduceDimsOp all_dims{"aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, std::optional<int64_t>)> count_nonzero{
    "aten::count_nonzero(Tensor self, int? dim=None) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef)> count_nonzero_dim{
    "aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor"};
inline constinit ReduceAllOp trace{"aten::trace(Tensor self) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef, bool)> logsumexp{
    "aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor"};
}  // namespace ops

// Where `dim` is left out or empty, all dimensions are reduced; `keepdim` keeps them with size one. Dimensions out of
// range throw IndexError, given twice ValueError.

/// The sum of all elements, or over the given dimensions; 0 of none. Integers and bool are summed as int64 unless a
/// dtype is given, to which elements are cast first.
inline Tensor sum(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt) { return ops::sum(self, dtype); }
inline Tensor sum(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false,
                  std::optional<ScalarType> dtype = std::nullopt) {
  return ops::sum_dim(self, dim, keepdim, dtype);
}
/// The sum, with NaN counted as 0. Not for complex tensors.
inline Tensor nansum(const Tensor& self, OptionalIntArrayRef dim = std::nullopt, bool keepdim = false,
                     std::optional<ScalarType> dtype = std::nullopt) {
  return ops::nansum(self, dim, keepdim, dtype);
}
/// The mean; NaN of none. Throws TypeError for integers unless a floating dtype is given.
inline Tensor mean(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt) {
  return ops::mean(self, dtype);
}
inline Tensor mean(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false,
                   std::optional<ScalarType> dtype = std::nullopt) {
  return ops::mean_dim(self, dim, keepdim, dtype);
}
/// The product of all elements, or along one dimension; 1 of none. dtype as for sum.
inline Tensor prod(const Tensor& self, std::optional<ScalarType> dtype = std::nullopt) {
  return ops::prod(self, dtype);
}
inline Tensor prod(const Tensor& self, int64_t dim, bool keepdim = false,
                   std::optional<ScalarType> dtype = std::nullopt) {
  return ops::prod_dim(self, dim, keepdim, dtype);
}
/// Whether some element is not zero (NaN is not). bool; uint8 for uint8. Here an empty `dim` reduces nothing.
inline Tensor any(const Tensor& self) { return ops::any(self); }
inline Tensor any(const Tensor& self, int64_t dim, bool keepdim = false) { return ops::any_dim(self, dim, keepdim); }
inline Tensor any(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false) {
  return ops::any_dims(self, dim, keepdim);
}
inline Tensor any(const Tensor& self, std::initializer_list<int64_t> dim, bool keepdim = false) {
  return ops::any_dims(self, dim, keepdim);
}
/// Whether every element is not zero; likewise.
inline Tensor all(const Tensor& self) { return ops::all(self); }
inline Tensor all(const Tensor& self, int64_t dim, bool keepdim = false) { return ops::all_dim(self, dim, keepdim); }
inline Tensor all(const Tensor& self, OptionalIntArrayRef dim, bool keepdim = false) {
  return ops::all_dims(self, dim, keepdim);
}
inline Tensor all(const Tensor& self, std::initializer_list<int64_t> dim, bool keepdim = false) {
  return ops::all_dims(self, dim, keepdim);
}
/// How many elements are not zero, as int64.
inline Tensor count_nonzero(const Tensor& self, OptionalIntArrayRef dim = std::nullopt) {
  return self.count_nonzero(dim);
}
/// The sum of a matrix's diagonal. Throws ValueError for another number of dimensions.
inline Tensor trace(const Tensor& self) { return ops::trace(self); }
/// log(sum(exp(self))), without overflow: the largest element is taken out first. -inf of none.
inline Tensor logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim = false) {
  return ops::logsumexp(self, dim, keepdim);
}
/// Sums over the dimensions along which `size` broadcasts to self's sizes.
Tensor sum_to_size(const Tensor& self, IntArrayRef size);

namespace native {

// Which dimensions a reduction covers, and the shape that it leaves.
struct Reduction {
  // All dimensions where `dim` is missing or empty. Throws IndexError and ValueError naming `op`.
  Reduction(const char* op, const Tensor& self, OptionalIntArrayRef dim, bool keepdim);
  // Throws IndexError when a reduced dimension is empty, for operators that have no answer then.
  void check_not_empty(const char* op, const Tensor& self) const;
  // A tensor for a kernel to fill, and then in its final shape.
  Tensor allocate(const Tensor& self, ScalarType dtype) const {
    return detail::empty_contiguous(kept, dtype, self.device());
  }
  Tensor finish(const Tensor& output) const {
    output.impl()->set_contiguous(sizes);
    return output;
  }

  DimVector dims;   // sorted, counted from the front; none for a 0-dimensional tensor
  DimVector kept;   // self's sizes, those of `dims` as one
  DimVector sizes;  // the result's
};

}  // namespace native

namespace kernels {
// Reduces `dims` (sorted) of `input` into `output`, which has input's dimensions with the reduced ones of size one, and
// is row-major.
using ReduceKernel = Kernel<void(const Tensor& output, const Tensor& input, IntArrayRef dims)>;
inline constinit ReduceKernel sum{"sum"}, prod{"prod"};  // the output is int64 for integers and bool
inline constinit ReduceKernel nansum{"nansum"}, mean{"mean"};
inline constinit ReduceKernel any{"any"}, all{"all"};          // the output is bool
inline constinit ReduceKernel count_nonzero{"count_nonzero"};  // the output is int64
}  // namespace kernels

}  // namespace rush
