// Distinct elements or slices. How many there are depends on the values, so none of these runs on the meta device.
#pragma once
#include <tuple>

#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"

namespace rush {

namespace ops {
using TensorTriple = std::tuple<Tensor, Tensor, Tensor>;

inline constinit Op<std::tuple<Tensor, Tensor>(const Tensor&, bool, bool)> _unique{
    "aten::_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
    {Tag::DynamicOutputShape}};
inline constinit Op<TensorTriple(const Tensor&, bool, bool, bool)> _unique2{
    "aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, "
    "Tensor, Tensor)",
    {Tag::DynamicOutputShape}};
inline constinit Op<TensorTriple(const Tensor&, int64_t, bool, bool, bool)> unique_dim{
    "aten::unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
    "(Tensor, Tensor, Tensor)",
    {Tag::DynamicOutputShape}};
inline constinit Op<TensorTriple(const Tensor&, bool, bool, std::optional<int64_t>)> unique_consecutive{
    "aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> "
    "(Tensor, Tensor, Tensor)",
    {Tag::DynamicOutputShape}};
inline constinit Op<TensorTriple(const Tensor&, int64_t, bool, bool)> unique_dim_consecutive{
    "aten::unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> "
    "(Tensor, Tensor, Tensor)",
    {Tag::DynamicOutputShape}};
}  // namespace ops

/// (distinct elements in ascending order, for each element of self which of them it is, how often each occurs). What is
/// not asked for is empty. Every NaN is distinct from all others. They are sorted even where `sorted` is false.
inline ops::TensorTriple _unique2(const Tensor& self, bool sorted = true, bool return_inverse = false,
                                  bool return_counts = false) {
  return ops::_unique2(self, sorted, return_inverse, return_counts);
}
/// Its first two.
inline std::tuple<Tensor, Tensor> _unique(const Tensor& self, bool sorted = true, bool return_inverse = false) {
  return ops::_unique(self, sorted, return_inverse);
}
/// Distinct slices along `dim`, in lexicographic order. Inverse and counts are always returned. Throws ValueError where
/// slices have no elements.
inline ops::TensorTriple unique_dim(const Tensor& self, int64_t dim, bool sorted = true, bool return_inverse = false,
                                    bool return_counts = false) {
  return ops::unique_dim(self, dim, sorted, return_inverse, return_counts);
}
/// Only neighbours are compared, and nothing is sorted; of the elements in row-major order, or of slices along `dim`.
inline ops::TensorTriple unique_consecutive(const Tensor& self, bool return_inverse = false, bool return_counts = false,
                                            std::optional<int64_t> dim = std::nullopt) {
  return ops::unique_consecutive(self, return_inverse, return_counts, dim);
}

namespace kernels {
// Of the rows of `input` (n, width), the distinct ones (m, width), the number of each row's (n), how many there are of
// each (m). The kernel allocates the outputs; the last two are int64, and `inverse` may stay undefined where it is not
// needed. Without `sort` it compares neighbours only.
inline constinit Kernel<void(Tensor& rows, Tensor& inverse, Tensor& counts, const Tensor& input, bool sort,
                             bool needs_inverse)>
    unique{"unique"};
}  // namespace kernels

}  // namespace rush
