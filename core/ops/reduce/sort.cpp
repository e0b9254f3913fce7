#include "core/ops/reduce/sort.h"

#include "core/ops/reduce/ordered.h"
#include "core/ops/register.h"
#include "core/ops/view/copy.h"

namespace rush {

namespace native {

static std::tuple<Tensor, Tensor> sort(const Tensor& self, int64_t dim, bool descending) {
  dim = wrap_dim(dim, self.dim(), "sort");
  check_ordered("sort", self);
  const Tensor values = detail::empty_contiguous(self.sizes(), self.scalar_type(), self.device());
  const Tensor indices = detail::empty_contiguous(self.sizes(), kInt64, self.device());
  kernels::sort(self.device().type, values, indices, contiguous(self), AlongDim(self.sizes(), dim), descending);
  return {values, indices};
}

// Sorting is always stable here.
static std::tuple<Tensor, Tensor> sort_stable(const Tensor& self, std::optional<bool> /*stable*/, int64_t dim,
                                              bool descending) {
  return native::sort(self, dim, descending);
}

static Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  return std::get<1>(ops::sort(self, dim, descending));
}

static Tensor argsort_stable(const Tensor& self, bool stable, int64_t dim, bool descending) {
  return std::get<1>(ops::sort_stable(self, stable, dim, descending));
}

static Tensor msort(const Tensor& self) { return std::get<0>(ops::sort(self, 0, false)); }

static std::tuple<Tensor, Tensor> topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted) {
  dim = wrap_dim(dim, self.dim(), "topk");
  check_ordered("topk", self);
  const AlongDim shape(self.sizes(), dim);
  RUSH_CHECK_VALUE(k >= 0 && k <= shape.size, "topk: selected index k out of range: k is ", k, ", dimension ", dim,
                   " has ", shape.size, " elements");
  DimVector sizes(self.sizes());
  if (self.dim()) sizes[dim] = k;
  if (!self.dim()) k = 1;  // a 0-dimensional tensor gives its element for any k, as in PyTorch
  const Tensor values = detail::empty_contiguous(sizes, self.scalar_type(), self.device());
  const Tensor indices = detail::empty_contiguous(sizes, kInt64, self.device());
  kernels::topk(self.device().type, values, indices, contiguous(self), shape, k, largest, sorted);
  return {values, indices};
}

}  // namespace native

void register_sort_ops(Registry& r) {
  r.native(ops::sort, native::sort);
  r.native(ops::sort_stable, native::sort_stable);
  r.composite(ops::argsort, native::argsort);
  r.composite(ops::argsort_stable, native::argsort_stable);
  r.composite(ops::msort, native::msort);
  r.native(ops::topk, native::topk);
}

std::tuple<Tensor, Tensor> Tensor::sort(int64_t dim, bool descending) const {
  return ops::sort(*this, dim, descending);
}
std::tuple<Tensor, Tensor> Tensor::sort(std::optional<bool> stable, int64_t dim, bool descending) const {
  return ops::sort_stable(*this, stable, dim, descending);
}
Tensor Tensor::argsort(int64_t dim, bool descending) const { return ops::argsort(*this, dim, descending); }
std::tuple<Tensor, Tensor> Tensor::sort(TruthValue auto stable, int64_t dim, bool descending) const {
  return ops::sort_stable(*this, stable, dim, descending);
}
template std::tuple<Tensor, Tensor> Tensor::sort(bool, int64_t, bool) const;
Tensor Tensor::argsort(TruthValue auto stable, int64_t dim, bool descending) const {
  return ops::argsort_stable(*this, stable, dim, descending);
}
template Tensor Tensor::argsort(bool, int64_t, bool) const;
Tensor Tensor::msort() const { return ops::msort(*this); }
std::tuple<Tensor, Tensor> Tensor::topk(int64_t k, int64_t dim, bool largest, bool sorted) const {
  return ops::topk(*this, k, dim, largest, sorted);
}

}  // namespace rush
