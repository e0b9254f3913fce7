// Several tensors as one, one tensor several times over, and tensors expanded over each other's dimensions.
#pragma once
#include "core/dispatch/kernel.h"
#include "core/dispatch/op.h"
#include "core/tensor.h"

namespace rush {

using JoinOp = Op<Tensor(TensorList)>;
using JoinDimOp = Op<Tensor(TensorList, int64_t)>;

namespace ops {
inline constinit JoinDimOp cat{"aten::cat(Tensor[] tensors, int dim=0) -> Tensor"};
inline constinit JoinDimOp concat{"aten::concat(Tensor[] tensors, int dim=0) -> Tensor"};
inline constinit JoinDimOp concatenate{"aten::concatenate(Tensor[] tensors, int dim=0) -> Tensor"};
inline constinit JoinDimOp stack{"aten::stack(Tensor[] tensors, int dim=0) -> Tensor"};
inline constinit JoinOp hstack{"aten::hstack(Tensor[] tensors) -> Tensor"};
inline constinit JoinOp vstack{"aten::vstack(Tensor[] tensors) -> Tensor"};
inline constinit JoinOp row_stack{"aten::row_stack(Tensor[] tensors) -> Tensor"};
inline constinit JoinOp dstack{"aten::dstack(Tensor[] tensors) -> Tensor"};
inline constinit JoinOp column_stack{"aten::column_stack(Tensor[] tensors) -> Tensor"};
inline constinit JoinOp block_diag{"aten::block_diag(Tensor[] tensors) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef)> repeat{"aten::repeat(Tensor self, SymInt[] repeats) -> Tensor"};
inline constinit Op<Tensor(const Tensor&, IntArrayRef)> tile{"aten::tile(Tensor self, SymInt[] dims) -> Tensor"};
inline constinit Op<std::vector<Tensor>(TensorList)> meshgrid{"aten::meshgrid(Tensor[] tensors) -> Tensor[]"};
inline constinit Op<std::vector<Tensor>(TensorList, std::string_view)> meshgrid_indexing{
    "aten::meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]"};
}  // namespace ops

/// The tensors one after another along `dim`, in their common dtype. Their other sizes must agree; a one-dimensional
/// tensor without elements is left out. Throws ValueError otherwise. concat and concatenate are the same.
inline Tensor cat(TensorList tensors, int64_t dim = 0) { return ops::cat(tensors, dim); }
inline Tensor concat(TensorList tensors, int64_t dim = 0) { return ops::concat(tensors, dim); }
inline Tensor concatenate(TensorList tensors, int64_t dim = 0) { return ops::concatenate(tensors, dim); }
/// Tensors of one shape along a new dimension `dim`.
inline Tensor stack(TensorList tensors, int64_t dim = 0) { return ops::stack(tensors, dim); }
/// NumPy's: along dimension 1 (0 for vectors), along 0 of at least matrices, along 2 of at least three dimensions.
inline Tensor hstack(TensorList tensors) { return ops::hstack(tensors); }
inline Tensor vstack(TensorList tensors) { return ops::vstack(tensors); }
inline Tensor row_stack(TensorList tensors) { return ops::row_stack(tensors); }
inline Tensor dstack(TensorList tensors) { return ops::dstack(tensors); }
/// As hstack, with vectors as columns.
inline Tensor column_stack(TensorList tensors) { return ops::column_stack(tensors); }
/// The matrices along the diagonal of a matrix of zeros; vectors count as rows.
inline Tensor block_diag(TensorList tensors) { return ops::block_diag(tensors); }
/// `self` repeated repeats[d] times along each dimension; more repeats than dimensions add dimensions in front. A copy.
inline Tensor repeat(const Tensor& self, IntArrayRef repeats) { return ops::repeat(self, repeats); }
/// As repeat, but fewer repeats than dimensions count for the last ones.
inline Tensor tile(const Tensor& self, IntArrayRef dims) { return ops::tile(self, dims); }
/// Vectors v_0 .. v_{n-1} as n tensors of n dimensions, the i-th of which varies along dimension i only. With indexing
/// "xy" the first two dimensions are swapped. Views.
inline std::vector<Tensor> meshgrid(TensorList tensors) { return ops::meshgrid(tensors); }
inline std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing) {
  return ops::meshgrid_indexing(tensors, indexing);
}

namespace kernels {
// The tensors, of any dtypes, one after another along `dim` of `out`. A device without it copies them one by one.
inline constinit Kernel<void(const Tensor& out, TensorList tensors, int64_t dim)> cat{"cat"};
}  // namespace kernels

}  // namespace rush
