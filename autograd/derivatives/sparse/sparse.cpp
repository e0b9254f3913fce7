// Derivatives of the construction, the values and the conversion of sparse tensors. Other operators are made of
// operators on values, or share the derivative of the dense operator. The gradient of a sparse tensor is sparse where
// it can be, and need not have the tensor's entries: every derivative takes it as any tensor of the same sizes.
#include "autograd/derivatives/sparse/sparse.h"

#include "autograd/derivatives/register.h"
#include "core/ops/basic.h"
#include "core/ops/sparse/semi_structured.h"
#include "core/ops/sparse/sparse_parts.h"

namespace rush {

Tensor sampled_product(const Tensor& like, const Tensor& a, const Tensor& b) {
  if (a.layout() != kStrided || b.layout() != kStrided) return a.mm(b).sparse_mask(like);
  // The pattern's values are not read.
  const Tensor pattern = like.detach().to_sparse_csr();
  const Tensor sampled = sparse_sampled_addmm(pattern, a, b, 0, 1);
  if (is_blocked(like.layout())) return sampled.to_sparse(like.layout(), like.values().sizes().slice(1, 2));
  return sampled.to_sparse(like.layout());
}

namespace {

struct SparseCooTensorUnsafeBackward final : Node {  // the gradient at the entries
  Saved indices;
  RUSH_SAVED(indices)
  auto saved_arguments() {
    return std::tie(indices, std::ignore, std::ignore, std::ignore, std::ignore, std::ignore, std::ignore, std::ignore);
  }
  Tensors apply(const Tensors& g) override {
    return {Tensor(), ops::sparse_values_at(g[0], indices.get().to(TensorOptions(kInt64).device(g[0].device())))};
  }
};

struct SparseCompressedTensorUnsafeBackward final : Node {
  Saved result;
  RUSH_SAVED(result)
  void save_output(const Tensor& made) { result = made.detach(); }
  Tensors apply(const Tensors& g) override { return {Tensor(), Tensor(), g[0].sparse_mask(result.get())._values()}; }
};

// Zero except at the entries, in the layout of a tensor that these are the values of.
struct SparseValuesBackward final : Node {
  Saved self;
  RUSH_SAVED(self)
  void save(const Tensor& tensor) { self = tensor; }
  Tensors apply(const Tensors& g) override {
    const Tensor like = self.get();
    if (like.layout() == kSparse) {
      RUSH_CHECK(like.is_coalesced(),
                 "_values: the values of a tensor that is not coalesced have no derivative, since "
                 "the tensor does not tell the entries of one place apart; call coalesce() first");
      return {_sparse_coo_tensor_unsafe(like._indices(), g[0], like.sizes(), {}, like.is_coalesced())};
    }
    const bool rows = compresses_rows(like.layout());
    return {_sparse_compressed_tensor_unsafe(rows ? like.crow_indices() : like.ccol_indices(),
                                             rows ? like.col_indices() : like.row_indices(), g[0], like.sizes(),
                                             TensorOptions().layout(like.layout()))};
  }
};

struct SparseValuesAtBackward final : Node {  // sums what came from one place
  Saved indices;
  DimVector sizes;
  Layout layout = kStrided;
  RUSH_SAVED(indices)
  void save(const Tensor& self, const Tensor& at) {
    indices = at;
    sizes = DimVector(self.sizes());
    layout = self.layout();
  }
  Tensors apply(const Tensors& g) override {
    const Tensor grad = _sparse_coo_tensor_unsafe(indices.get(), g[0], sizes);
    return {layout == kStrided ? grad.to_dense() : grad};
  }
};

struct CoalesceBackward final : Node {
  Tensors apply(const Tensors& g) override { return {g[0]}; }
};

struct ToDenseBackward final : Node {
  Saved self;
  RUSH_SAVED(self)
  void save(const Tensor& tensor, std::optional<ScalarType>, std::optional<bool> masked) {
    if (masked.value_or(true)) self = tensor.detach();
  }
  Tensors apply(const Tensors& g) override { return {self.defined() ? g[0].sparse_mask(self.get()) : g[0]}; }
};

// In the layout that the tensor had.
struct ToSparseBackward final : Node {
  Layout layout = kStrided;
  DimVector blocks;
  void save(const Tensor& self, std::optional<Layout>, OptionalIntArrayRef, std::optional<int64_t>) {
    layout = self.layout();
    blocks = native::block_sizes(self);
  }
  Tensors apply(const Tensors& g) override {
    if (layout == kStrided) return {g[0].to_dense()};
    if (g[0].layout() == kStrided) return {g[0]};
    return {is_blocked(layout) ? g[0].to_sparse(layout, IntArrayRef(blocks)) : g[0].to_sparse(layout)};
  }
};

struct ToSparseDimBackward final : Node {
  bool dense = false;
  void save(const Tensor& self, int64_t) { dense = self.layout() == kStrided; }
  Tensors apply(const Tensors& g) override { return {dense ? g[0].to_dense() : g[0]}; }
};

struct SparseSampledAddmmBackward final : Node {  // beta* G, alpha* (G masked) B^H, alpha* A^H (G masked)
  Saved self, mat1, mat2;
  Scalar beta, alpha;
  RUSH_SAVED(self, mat1, mat2)
  void save(const Tensor& pattern, const Tensor& a, const Tensor& b, const Scalar& keep, const Scalar& scale) {
    self = pattern.detach();
    if (needs(2)) mat1 = a;
    if (needs(1)) mat2 = b;
    beta = keep.conj();
    alpha = scale.conj();
  }
  Tensors apply(const Tensors& g) override {
    const Tensor grad = g[0].sparse_mask(self.get());
    return {needs(0) ? grad * beta : Tensor(), needs(1) ? grad.mm(adjoint(mat2.get())) * alpha : Tensor(),
            needs(2) ? adjoint(mat1.get()).mm(grad) * alpha : Tensor()};
  }
};

// What a 2:4 matrix is compressed to, or made of again, has no gradient: Note [Semi-structured matrices].
template <class... Rest>
struct CompressedBackward final : Node {
  void save(const Tensor&, Rest...) {
    RUSH_THROW(NotImplementedError, "a semi-structured matrix has no gradient: compress x.detach() instead of x");
  }
  Tensors apply(const Tensors&) override { return {Tensor()}; }
};

struct CsltSparseMmBackward final : Node {  // A^T (alpha G), the sums of G's rows
  Saved packed, alpha;
  int64_t columns = 0;
  bool transposed = false;
  RUSH_SAVED(packed, alpha)
  void save(const Tensor& a, const Tensor& b, const std::optional<Tensor>&, const std::optional<Tensor>& scale,
            std::optional<ScalarType>, bool transpose_result, int64_t, int64_t, int64_t) {
    RUSH_CHECK_NOT_IMPLEMENTED(!needs(0), "_cslt_sparse_mm: a compressed matrix has no gradient");
    RUSH_CHECK_NOT_IMPLEMENTED(!needs(3), "_cslt_sparse_mm: there is no gradient by alpha");
    if (needs(1)) packed = a;
    if (needs(1) && given(scale)) alpha = *scale;
    columns = b.size(0);
    transposed = transpose_result;
  }
  Tensors apply(const Tensors& g) override {
    const Tensor grad = transposed ? g[0].t() : g[0];  // (m, n)
    return {Tensor(), needs(1) ? by_dense(grad) : Tensor(), needs(2) ? grad.sum(1) : Tensor(), Tensor()};
  }

 private:
  Tensor by_dense(const Tensor& grad) const {
    const Tensor a = _cslt_decompress(packed.get(), columns);
    if (!alpha.defined()) return a.t().mm(grad);
    return a.t().mm((grad * alpha.get().view({-1, 1}).to(grad.device())).to(grad.scalar_type()));
  }
};

}  // namespace

void register_sparse_derivatives(Registry& r) {
  derive<ops::_sparse_coo_tensor_unsafe, SparseCooTensorUnsafeBackward>(r);
  derive<ops::_sparse_compressed_tensor_unsafe, SparseCompressedTensorUnsafeBackward>(r);
  derive<ops::_values, SparseValuesBackward>(r);
  derive<ops::sparse_values_at, SparseValuesAtBackward>(r);
  derive<ops::_coalesce, CoalesceBackward>(r);
  derive<ops::_to_dense, ToDenseBackward>(r);
  derive<ops::_to_sparse, ToSparseBackward>(r);
  derive<ops::_to_sparse_sparse_dim, ToSparseDimBackward>(r);
  derive<ops::sparse_sampled_addmm, SparseSampledAddmmBackward>(r);
  derive<ops::_cslt_compress, CompressedBackward<>>(r);
  derive<ops::_cslt_decompress, CompressedBackward<int64_t>>(r);
  derive<ops::_cslt_sparse_mm, CsltSparseMmBackward>(r);
}

}  // namespace rush
