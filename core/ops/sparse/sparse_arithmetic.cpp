// Sums, products and reductions of sparse tensors.
#include <algorithm>

#include "core/iterator/output_checks.h"
#include "core/iterator/tensor_iterator.h"
#include "core/ops/basic.h"
#include "core/ops/index/index.h"
#include "core/ops/pointwise/sum_check.h"
#include "core/ops/reduce/search.h"
#include "core/ops/register.h"
#include "core/ops/sparse/sparse_parts.h"

namespace rush {

namespace native {

namespace {

void check_no_broadcast(const char* op, const Tensor& self, const Tensor& other) {
  RUSH_CHECK_VALUE(self.sizes() == other.sizes(), op, ": sparse tensors do not broadcast, got sizes ", self.sizes(),
                   " and ", other.sizes());
  RUSH_CHECK_VALUE(self.device() == other.device(), op, ": devices differ: ", self.device(), " and ", other.device());
}

// Whether it stands for a number.
bool is_number(const Tensor& tensor) { return is_dense(tensor) && tensor.dim() == 0; }

IntArrayRef sparse_sizes(const Tensor& coo) {
  return coo.sizes().slice(0, static_cast<size_t>(coo_parts(coo, "sparse_dim").sparse_dim()));
}

// ---- sums ----

// dense += alpha * sparse, of the same sizes. Only the elements that have an entry are touched.
void add_entries(const Tensor& dense, const Tensor& sparse, const Scalar& alpha) {
  const Tensor coo = as_coo(sparse);
  const SparseTensorImpl& parts = coo_parts(coo, "add_");
  const Tensor values = parts.values().to(dense.scalar_type());
  const int64_t sparse_dim = parts.sparse_dim();
  if (parts.nnz() == 0) return;
  if (sparse_dim == 0) {
    dense.add_(values.sum(0), alpha);
  } else if (sparse_dim == 1) {
    dense.index_add_(0, parts.indices().select(0, 0), values, alpha);
  } else if (dense.is_contiguous()) {
    with_places(dense, sparse_dim).index_add_(0, places_of(parts.indices(), sparse_sizes(coo)), values, alpha);
  } else {
    std::vector<std::optional<Tensor>> rows;
    for (int64_t d = 0; d < sparse_dim; ++d) rows.emplace_back(parts.indices().select(0, d));
    Tensor target = dense;
    rush::index_put_(target, rows, values * alpha, true);
  }
}

Tensor add_two_sparse(const char* op, const Tensor& self, const Tensor& other, const Scalar& alpha) {
  const ScalarType dtype = result_type(self, other);
  const Tensor a = as_coo(self), b = as_coo(other);
  const SparseTensorImpl &left = coo_parts(a, op), &right = coo_parts(b, op);
  RUSH_CHECK_VALUE(left.sparse_dim() == right.sparse_dim(), op, ": the tensors have ", left.sparse_dim(), " and ",
                   right.sparse_dim(), " sparse dimensions");
  const Tensor scaled = alpha.equal(1) ? right.values().to(dtype) : right.values().to(dtype) * alpha;
  RUSH_CHECK_TYPE(scaled.scalar_type() == dtype, op, ": alpha does not fit ", dtype);
  const Tensor sum = make_coo(self.sizes(), rush::cat({left.indices(), right.indices()}, 1),
                              rush::cat({left.values().to(dtype), scaled}, 0), false);
  // What was in order stays so; a compressed layout is.
  const bool in_order = left.is_coalesced() && right.is_coalesced();
  return in_layout_of(in_order || self.layout() != kSparse ? coalesced(sum) : sum, self);
}

// In a new tensor.
Tensor add_to_dense(const Tensor& dense, const Tensor& sparse, const Scalar& dense_factor, const Scalar& alpha) {
  Tensor sum = dense.to(result_type(dense, sparse)) * dense_factor;
  add_entries(sum, sparse, alpha);
  return sum;
}

}  // namespace

static Tensor add_sparse(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_no_broadcast("add", self, other);
  if (is_dense(self)) return add_to_dense(self, other, 1, alpha);
  if (is_dense(other)) return add_to_dense(other, self, alpha, 1);
  return add_two_sparse("add", self, other, alpha);
}

static Tensor& add_sparse_(Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_no_broadcast("add_", self, other);
  const ScalarType type = result_type(self, other);
  check_result_type("add_", type, self.scalar_type());
  if (is_dense(self)) {
    add_entries(self, other, alpha);
    return self;
  }
  RUSH_CHECK_VALUE(!is_dense(other), "add_: a dense tensor cannot be added to a sparse one in place");
  replace_parts(self, add_two_sparse("add_", self, other, alpha).to(self.scalar_type()));
  return self;
}

static Tensor sub_sparse(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_sub(self, other);
  return add_sparse(self, other, -alpha);
}
static Tensor& sub_sparse_(Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_sub(self, other);
  return add_sparse_(self, other, -alpha);
}

// ---- products ----

namespace {

// Entries where both have one.
Tensor multiply_two_coo(const Tensor& self, const Tensor& other) {
  const Tensor a = coalesced(self), b = coalesced(other);
  const SparseTensorImpl &left = coo_parts(a, "mul"), &right = coo_parts(b, "mul");
  RUSH_CHECK_VALUE(left.sparse_dim() == right.sparse_dim(), "mul: the tensors have ", left.sparse_dim(), " and ",
                   right.sparse_dim(), " sparse dimensions");
  const ScalarType dtype = result_type(self, other);
  if (left.nnz() == 0 || right.nnz() == 0) {
    return make_empty_sparse(kSparse, self.sizes(), left.sparse_dim(), dtype, self.device());
  }
  const Tensor places = contiguous(places_of(left.indices(), sparse_sizes(a)));
  const Tensor others = contiguous(places_of(right.indices(), sparse_sizes(b)));
  const Tensor at = rush::searchsorted(others, places).clamp_max(right.nnz() - 1);
  const Tensor both = ops::nonzero(rush::index_select(others, 0, at).eq(places)).select(1, 0);
  return make_coo(self.sizes(), rush::index_select(left.indices(), 1, both),
                  rush::index_select(left.values(), 0, both) *
                      rush::index_select(right.values(), 0, rush::index_select(at, 0, both)),
                  true);
}

// Entries of `sparse` times the dense tensor's elements there.
Tensor multiply_by_dense(const Tensor& sparse, const Tensor& dense) {
  RUSH_CHECK_VALUE(broadcast_shapes(sparse.sizes(), dense.sizes(), "mul") == DimVector(sparse.sizes()),
                   "mul: a dense tensor of shape ", dense.sizes(), " does not broadcast to a sparse one of sizes ",
                   sparse.sizes());
  const Tensor coo = as_coo(sparse);
  const SparseTensorImpl& parts = coo_parts(coo, "mul");
  const Tensor there = ops::sparse_values_at(dense.expand(sparse.sizes()), parts.indices());
  return in_layout_of(with_values(coo, parts.values() * there), sparse);
}

}  // namespace

static Tensor mul_sparse(const Tensor& self, const Tensor& other) {
  if (is_number(other)) return with_values(self, stored_values(self) * other);
  if (is_number(self)) return with_values(other, stored_values(other) * self);
  RUSH_CHECK_VALUE(self.device() == other.device(), "mul: devices differ: ", self.device(), " and ", other.device());
  if (is_dense(other)) return multiply_by_dense(self, other);
  if (is_dense(self)) return multiply_by_dense(other, self);
  check_no_broadcast("mul", self, other);
  return in_layout_of(multiply_two_coo(as_coo(self), as_coo(other)), self);
}

static Tensor div_sparse(const Tensor& self, const Tensor& other) {
  RUSH_CHECK_VALUE(is_number(other), "div: a sparse tensor can be divided by a number only, got sizes ", other.sizes());
  // Entries of one place add up to the quotient of their sum.
  return with_values(self, stored_values(self) / other);
}

template <auto op>
static Tensor& in_place_of(Tensor& self, const Tensor& other) {
  const char* const name = op == mul_sparse ? "mul_" : "div_";
  RUSH_CHECK_VALUE(!is_dense(self), name, ": a sparse result cannot be written to a dense tensor in place");
  const Tensor result = op(self, other);
  check_result_type(name, result.scalar_type(), self.scalar_type());
  replace_parts(self, result.to(self.scalar_type()));
  return self;
}

// For functions with f(a + b) = f(a) + f(b): the entries need not be coalesced.
template <auto& op>
static Tensor on_values(const Tensor& self) {
  return with_values(self, op(stored_values(self)));
}

// ---- reductions ----

// Sums are made of operators on the values, which have derivatives: those of single entries where each place has one.
static Tensor summable(const Tensor& self) {
  return self.requires_grad() && self.layout() == kSparse ? ops::coalesce(self) : self;
}

Tensor sum_sparse(const Tensor& self, std::optional<ScalarType> dtype) {
  return ops::sum(ops::_values(summable(self)), dtype);
}

Tensor sum_sparse_dim(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) {
  const DimVector dims = wrap_dims(dim ? *dim : IntArrayRef(), self.dim(), "sum", true);
  const auto reduced = [&](int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
  const Tensor coo =
      self.layout() == kSparse ? summable(self) : ops::to_sparse(self, kSparse, std::nullopt, std::nullopt);
  const int64_t sparse_dim = coo.sparse_dim();
  Tensor values = ops::_values(coo);
  const ScalarType type = dtype.value_or(is_integral(self.scalar_type(), true) ? kInt64 : self.scalar_type());
  DimVector sizes, value_dims;
  std::vector<Tensor> rows;
  bool none_left = true;
  for (int64_t d = 0; d < sparse_dim; ++d) {
    const Tensor row = coo._indices().select(0, d);
    if (!reduced(d)) {
      none_left = false;
      rows.push_back(row);
      sizes.push_back(self.size(d));
    } else if (keepdim) {
      rows.push_back(rush::zeros(row.sizes(), row.options()));
      sizes.push_back(1);
    }
  }
  for (int64_t d = sparse_dim; d < self.dim(); ++d) {
    if (reduced(d)) value_dims.push_back(d - sparse_dim + 1);
  }
  values = value_dims.empty() ? values.to(type) : ops::sum_dim(values, IntArrayRef(value_dims), keepdim, type);
  if (none_left) {
    const Tensor sum = ops::sum_dim(values, IntArrayRef(0), false, type);
    for (int64_t size : sum.sizes()) sizes.push_back(size);
    return sum.reshape(sizes);
  }
  for (int64_t d = 1; d < values.dim(); ++d) sizes.push_back(values.size(d));
  return rush::_sparse_coo_tensor_unsafe(rush::stack(rows), values, sizes);
}

static Tensor _sparse_sum(const Tensor& self) { return ops::sum(self, std::nullopt); }
static Tensor _sparse_sum_dim(const Tensor& self, IntArrayRef dim) {
  return ops::sum_dim(self, dim, false, std::nullopt);
}
static Tensor _sparse_sum_dim_dtype(const Tensor& self, IntArrayRef dim, ScalarType dtype) {
  return ops::sum_dim(self, dim, false, dtype);
}

}  // namespace native

void register_sparse_arithmetic_ops(Registry& r) {
  r.sparse(ops::add, native::add_sparse);
  r.sparse(ops::add_, native::add_sparse_);
  r.sparse(ops::sub, native::sub_sparse);
  r.sparse(ops::sub_, native::sub_sparse_);
  r.sparse(ops::mul, native::mul_sparse);
  r.sparse(ops::mul_, native::in_place_of<native::mul_sparse>);
  r.sparse(ops::div, native::div_sparse);
  r.sparse(ops::div_, native::in_place_of<native::div_sparse>);
  r.sparse(ops::neg, native::on_values<ops::neg>);
  r.sparse(ops::conj_physical, native::on_values<ops::conj_physical>);
  r.sparse(ops::sum, native::sum_sparse);
  r.sparse(ops::sum_dim, native::sum_sparse_dim);
  r.composite(ops::_sparse_sum, native::_sparse_sum);
  r.composite(ops::_sparse_sum_dtype, native::same_as<ops::sum>);
  r.composite(ops::_sparse_sum_dim, native::_sparse_sum_dim);
  r.composite(ops::_sparse_sum_dim_dtype, native::_sparse_sum_dim_dtype);
}

}  // namespace rush
