// The factors of complex gradients are conjugated, as PyTorch does: the gradient of a real loss L is dL/dRe + i dL/dIm.
#include "core/ops/linalg/matmul.h"

#include "autograd/derivatives/register.h"
#include "autograd/derivatives/sparse/sparse.h"
#include "core/ops/pointwise/binary.h"
#include "core/ops/pointwise/complex.h"

namespace rush {

namespace {

Scalar conjugate(const Scalar& s) { return s.is_complex() ? Scalar(conj(s.to<complex<double>>())) : s; }
Tensor scaled(const Tensor& t, const Scalar& by) { return by.equal(1) ? t : t * conjugate(by); }

bool is_sparse_matrix(const Tensor& t) { return t.layout() != kStrided; }

// The gradient a b of a factor, of which a sparse one has its entries only.
Tensor product_for(const Saved& factor, const Tensor& a, const Tensor& b) {
  if (!factor.defined()) return a.mm(b);
  const Tensor like = factor.get();
  return is_sparse_matrix(like) ? sampled_product(like, a, b) : a.mm(b);
}

struct MmBackward final : Node {  // d(A B) = G B^H, A^H G
  Saved self, mat2;
  RUSH_SAVED(self, mat2)
  void save(const Tensor& a, const Tensor& b) {
    if (needs(1) || is_sparse_matrix(a)) self = a;
    if (needs(0) || is_sparse_matrix(b)) mat2 = b;
  }
  Tensors apply(const Tensors& g) override {
    return {needs(0) ? product_for(self, g[0], adjoint(mat2.get())) : Tensor(),
            needs(1) ? product_for(mat2, adjoint(self.get()), g[0]) : Tensor()};
  }
};

struct BmmBackward final : Node {  // the same for each matrix
  Saved self, mat2;
  RUSH_SAVED(self, mat2)
  void save(const Tensor& a, const Tensor& b) {
    if (needs(1)) self = a;
    if (needs(0)) mat2 = b;
  }
  Tensors apply(const Tensors& g) override {
    return {needs(0) ? g[0].bmm(adjoint(mat2.get())) : Tensor(), needs(1) ? adjoint(self.get()).bmm(g[0]) : Tensor()};
  }
};

struct MvBackward final : Node {  // d(A x) = g x^H, A^H g
  Saved self, vec;
  RUSH_SAVED(self, vec)
  void save(const Tensor& a, const Tensor& x) {
    if (needs(1) || is_sparse_matrix(a)) self = a;
    if (needs(0)) vec = x;
  }
  Tensors apply(const Tensors& g) override {
    return {needs(0) ? outer_for(self, g[0], vec.get().conj()) : Tensor(),
            needs(1) ? adjoint(self.get()).mv(g[0]) : Tensor()};
  }

 private:
  static Tensor outer_for(const Saved& factor, const Tensor& g, const Tensor& x) {
    if (!factor.defined()) return g.outer(x);
    const Tensor like = factor.get();
    return is_sparse_matrix(like) ? sampled_product(like, g.unsqueeze(1), x.unsqueeze(0)) : g.outer(x);
  }
};

struct DotBackward final : Node {  // d(x . y) = g y*, g x*
  Saved self, tensor;
  RUSH_SAVED(self, tensor)
  void save(const Tensor& x, const Tensor& y) {
    if (needs(1)) self = x;
    if (needs(0)) tensor = y;
  }
  Tensors apply(const Tensors& g) override {
    return {needs(0) ? g[0] * tensor.get().conj() : Tensor(), needs(1) ? g[0] * self.get().conj() : Tensor()};
  }
};

struct AddmmBackward final : Node {  // d(beta S + alpha A B) = beta* G, alpha* G B^H, alpha* A^H G
  Saved mat1, mat2;
  Scalar beta, alpha;
  RUSH_SAVED(mat1, mat2)
  void save(const Tensor&, const Tensor& a, const Tensor& b, const Scalar& keep, const Scalar& scale) {
    if (needs(2) || is_sparse_matrix(a)) mat1 = a;
    if (needs(1) || is_sparse_matrix(b)) mat2 = b;
    beta = keep;
    alpha = scale;
  }
  Tensors apply(const Tensors& g) override {
    return {needs(0) ? scaled(g[0], beta) : Tensor(),
            needs(1) ? scaled(product_for(mat1, g[0], adjoint(mat2.get())), alpha) : Tensor(),
            needs(2) ? scaled(product_for(mat2, adjoint(mat1.get()), g[0]), alpha) : Tensor()};
  }
};

struct BaddbmmBackward final : Node {  // the same for each matrix
  Saved batch1, batch2;
  Scalar beta, alpha;
  RUSH_SAVED(batch1, batch2)
  void save(const Tensor&, const Tensor& a, const Tensor& b, const Scalar& keep, const Scalar& scale) {
    if (needs(2)) batch1 = a;
    if (needs(1)) batch2 = b;
    beta = keep;
    alpha = scale;
  }
  Tensors apply(const Tensors& g) override {
    return {needs(0) ? scaled(g[0], beta) : Tensor(),
            needs(1) ? scaled(g[0].bmm(adjoint(batch2.get())), alpha) : Tensor(),
            needs(2) ? scaled(adjoint(batch1.get()).bmm(g[0]), alpha) : Tensor()};
  }
};

struct AddmvBackward final : Node {  // d(beta s + alpha A x) = beta* g, alpha* g x^H, alpha* A^H g
  Saved mat, vec;
  Scalar beta, alpha;
  RUSH_SAVED(mat, vec)
  void save(const Tensor&, const Tensor& a, const Tensor& x, const Scalar& keep, const Scalar& scale) {
    if (needs(2)) mat = a;
    if (needs(1)) vec = x;
    beta = keep;
    alpha = scale;
  }
  Tensors apply(const Tensors& g) override {
    return {needs(0) ? scaled(g[0], beta) : Tensor(), needs(1) ? scaled(g[0].outer(vec.get().conj()), alpha) : Tensor(),
            needs(2) ? scaled(adjoint(mat.get()).mv(g[0]), alpha) : Tensor()};
  }
};

}  // namespace

void register_matmul_derivatives(Registry& r) {
  derive<ops::mm, MmBackward>(r);
  derive<ops::bmm, BmmBackward>(r);
  derive<ops::mv, MvBackward>(r);
  derive<ops::dot, DotBackward>(r);
  derive_all<AddmmBackward, ops::addmm, ops::addmm_>(r);
  derive_all<BaddbmmBackward, ops::baddbmm, ops::baddbmm_>(r);
  derive_all<AddmvBackward, ops::addmv, ops::addmv_>(r);
}

}  // namespace rush
