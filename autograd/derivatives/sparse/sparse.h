// What derivatives of operators on dense and on sparse tensors share.
#pragma once
#include "autograd/derive.h"

namespace rush {

template <class T>
bool is_sparse_tensor(const T& argument) {
  if constexpr (std::is_same_v<T, Tensor>) return argument.layout() != kStrided;
  return false;
}

// The Autograd kernel of an operator that has a derivative for dense tensors, and for sparse ones is made of operators
// that have theirs.
template <auto& op, class NodeT, auto sparse_body>
struct DeriveDense;

template <class... Args, Op<Tensor(const Tensor&, Args...)>& op, class NodeT, auto sparse_body>
struct DeriveDense<op, NodeT, sparse_body> {
  static Tensor call(const Tensor& self, Args... args) {
    if ((is_sparse_tensor(self) || ... || is_sparse_tensor(args)))
      return sparse_body(self, std::forward<Args>(args)...);
    return Derive<op, NodeT>::call(self, std::forward<Args>(args)...);
  }
};

template <auto& op, class NodeT, auto sparse_body>
void derive_dense(Registry& registry, SourceLocation where = SourceLocation::current()) {
  registry.kernel(op, DispatchKey::Autograd, &DeriveDense<op, NodeT, sparse_body>::call, where);
}

// The product of two matrices where `like`, a sparse matrix, has entries, in its layout.
Tensor sampled_product(const Tensor& like, const Tensor& a, const Tensor& b);

}  // namespace rush
