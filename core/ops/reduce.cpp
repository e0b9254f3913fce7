#include "core/ops/reduce.h"

#include <algorithm>

#include "core/dispatch/registry.h"
#include "core/ops/copy.h"
#include "core/ops/register.h"

namespace rush {

namespace native {

// The sizes after reducing `dims`, kept as ones or dropped.
static DimVector reduced_sizes(IntArrayRef sizes, IntArrayRef dims, bool keepdim) {
  DimVector result;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
    if (!reduced) result.push_back(sizes[d]);
    if (reduced && keepdim) result.push_back(1);
  }
  return result;
}

static Tensor sum_dim(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) {
  DimVector dims = wrap_dims(dim ? *dim : IntArrayRef(), self.dim(), "sum", true);
  if (self.dim() == 0) dims.clear();
  std::sort(dims.begin(), dims.end());
  const ScalarType type = dtype.value_or(is_integral(self.scalar_type(), true) ? kInt64 : self.scalar_type());
  const Tensor input = self.scalar_type() == type ? self : to_dtype(self, type);
  const Tensor kept = detail::empty_contiguous(reduced_sizes(self.sizes(), dims, true), type, self.device());
  kernels::sum(self.device().type, kept, input, dims);
  const DimVector sizes = reduced_sizes(self.sizes(), dims, keepdim);
  kept.impl()->set_contiguous(sizes);
  return kept;
}

static Tensor sum(const Tensor& self, std::optional<ScalarType> dtype) { return sum_dim(self, {}, false, dtype); }

}  // namespace native

Tensor sum_to_size(const Tensor& self, IntArrayRef size) {
  const size_t lead = self.sizes().size() - size.size();
  DimVector dims;
  for (size_t d = 0; d < self.sizes().size(); ++d) {
    if (d < lead || (size[d - lead] == 1 && self.sizes()[d] != 1)) dims.push_back(static_cast<int64_t>(d));
  }
  if (dims.empty()) return self;
  const Tensor kept = ops::sum_dim(self, IntArrayRef(dims), true, std::nullopt);
  return lead == 0 ? kept : kept.view(size);
}

void register_reduce_ops(Registry& r) {
  r.native(ops::sum, native::sum);
  r.native(ops::sum_dim, native::sum_dim);
}

Tensor Tensor::sum(std::optional<ScalarType> dtype) const { return ops::sum(*this, dtype); }
Tensor Tensor::sum(OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) const {
  return ops::sum_dim(*this, dim, keepdim, dtype);
}

}  // namespace rush
