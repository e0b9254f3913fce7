// Comparisons of two tensors, the larger and the smaller, and whether two tensors are equal or close.
#pragma once
#include "core/ops/pointwise/pointwise.h"

namespace rush {

namespace ops {
#define RUSH_DECLARE_OPS(name)                                                                                      \
  inline constinit BinaryOp name{"aten::" #name ".Tensor(Tensor self, Tensor other) -> Tensor"};                    \
  inline constinit ScalarOp name##_Scalar{"aten::" #name ".Scalar(Tensor self, Scalar other) -> Tensor"};           \
  inline constinit BinaryInplaceOp name##_{"aten::" #name "_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"}; \
  inline constinit ScalarInplaceOp name##_Scalar_{"aten::" #name                                                    \
                                                  "_.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)"};
RUSH_FORALL_COMPARISONS(RUSH_DECLARE_OPS)
#undef RUSH_DECLARE_OPS
inline constinit BinaryOp fmax{"aten::fmax(Tensor self, Tensor other) -> Tensor"};
inline constinit BinaryOp fmin{"aten::fmin(Tensor self, Tensor other) -> Tensor"};
inline constinit BinaryOp maximum{"aten::maximum(Tensor self, Tensor other) -> Tensor"};
inline constinit BinaryOp minimum{"aten::minimum(Tensor self, Tensor other) -> Tensor"};
inline constinit BinaryOp max_other{"aten::max.other(Tensor self, Tensor other) -> Tensor"};
inline constinit BinaryOp min_other{"aten::min.other(Tensor self, Tensor other) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, const Tensor&, double, double, bool)> isclose{
    "aten::isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool "
    "equal_nan=False) -> Tensor"};
inline constinit Op<bool(const Tensor&, const Tensor&, double, double, bool)> allclose{
    "aten::allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool "
    "equal_nan=False) -> bool"};
inline constinit Op<bool(const Tensor&, const Tensor&)> equal{"aten::equal(Tensor self, Tensor other) -> bool"};
}  // namespace ops

// Comparisons: the result is bool, of the broadcast shape. Only eq and ne take complex numbers.
#define RUSH_DEFINE_FUNCTIONS(name)                                                              \
  inline Tensor name(const Tensor& self, const Tensor& other) { return ops::name(self, other); } \
  inline Tensor name(const Tensor& self, const Scalar& other) { return self.name(other); }
RUSH_FORALL_COMPARISONS(RUSH_DEFINE_FUNCTIONS)
#undef RUSH_DEFINE_FUNCTIONS
/// The same as eq, ne, lt, le, gt and ge: tensors are compared element by element.
#define RUSH_DEFINE_OPERATOR(symbol, name, mirrored)                                          \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return ops::name(a, b); } \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) { return a.name(b); }       \
  inline Tensor operator symbol(const Scalar& a, const Tensor& b) { return b.mirrored(a); }
RUSH_DEFINE_OPERATOR(==, eq, eq)
RUSH_DEFINE_OPERATOR(!=, ne, ne)
RUSH_DEFINE_OPERATOR(<, lt, gt)
RUSH_DEFINE_OPERATOR(<=, le, ge)
RUSH_DEFINE_OPERATOR(>, gt, lt)
RUSH_DEFINE_OPERATOR(>=, ge, le)
#undef RUSH_DEFINE_OPERATOR

/// The larger and the smaller of each two elements. maximum and minimum give NaN where one is NaN, fmax and fmin only
/// where both are.
inline Tensor fmax(const Tensor& self, const Tensor& other) { return ops::fmax(self, other); }
inline Tensor fmin(const Tensor& self, const Tensor& other) { return ops::fmin(self, other); }
inline Tensor maximum(const Tensor& self, const Tensor& other) { return ops::maximum(self, other); }
inline Tensor minimum(const Tensor& self, const Tensor& other) { return ops::minimum(self, other); }
inline Tensor max(const Tensor& self, const Tensor& other) { return ops::maximum(self, other); }
inline Tensor min(const Tensor& self, const Tensor& other) { return ops::minimum(self, other); }
/// |self - other| <= atol + rtol * |other|, element by element; infinities are close to themselves, NaN to NaN if
/// `equal_nan`. Throws ValueError on a negative tolerance, TypeError when the dtypes differ.
inline Tensor isclose(const Tensor& self, const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                      bool equal_nan = false) {
  return ops::isclose(self, other, rtol, atol, equal_nan);
}
/// Whether all elements are close.
inline bool allclose(const Tensor& self, const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                     bool equal_nan = false) {
  return ops::allclose(self, other, rtol, atol, equal_nan);
}
/// Whether both have the same shape and the same elements, compared in their common dtype.
inline bool equal(const Tensor& self, const Tensor& other) { return ops::equal(self, other); }

namespace kernels {
inline constinit PointwiseKernel eq{"eq"}, ge{"ge"}, gt{"gt"}, le{"le"}, lt{"lt"}, ne{"ne"};
inline constinit PointwiseKernel fmax{"fmax"}, fmin{"fmin"}, maximum{"maximum"}, minimum{"minimum"};
// Whether all elements of a bool tensor are true.
inline constinit Kernel<void(const Tensor& self, bool& result)> all_true{"all_true"};
}  // namespace kernels

namespace native {
// The fronts that are templates. The others are in compare.cpp.
template <class R>
void register_compare_fronts(R& r) {
  r.native(ops::fmax, binary<kernels::fmax, Promotion::Common>);
  r.native(ops::fmin, binary<kernels::fmin, Promotion::Common>);
  r.native(ops::maximum, binary<kernels::maximum, Promotion::Common>);
  r.native(ops::minimum, binary<kernels::minimum, Promotion::Common>);
  r.composite(ops::max_other, same_as<ops::maximum>);
  r.composite(ops::min_other, same_as<ops::minimum>);
}
}  // namespace native

}  // namespace rush
