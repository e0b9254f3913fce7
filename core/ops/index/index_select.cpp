#include "core/ops/index/index_select.h"

#include "core/ops/basic.h"
#include "core/ops/index/gather.h"
#include "core/ops/index/index.h"
#include "core/ops/register.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

namespace {

// Slices of a tensor along a dimension, ready for the kernels of Note [Indexing by offsets].
struct Slices {
  Tensor view, index;
  IndexedDim where;
};

// A tensor without dimensions is its own only slice.
Slices slices_of(const Tensor& self, int64_t dim, const Tensor& index, const char* op, bool wraps) {
  dim = wrap_dim(dim, self.dim(), op);
  RUSH_CHECK_VALUE(index.dim() <= 1, op, ": expected an index of at most one dimension, got shape ", index.sizes());
  DimVector sizes(self.sizes()), strides(self.strides());
  IndexedDim where{op, dim, 1, 0, wraps};
  if (self.dim() > 0) {
    where.size = sizes[static_cast<size_t>(dim)];
    where.stride = strides[static_cast<size_t>(dim)];
    sizes.erase(sizes.begin() + dim);
    strides.erase(strides.begin() + dim);
  }
  return {detail::make_view(self, sizes, strides, self.storage_offset()), index_as_int64(index, self.device(), op),
          where};
}

Tensor index_select(const Tensor& self, int64_t dim, const Tensor& index) {
  const Slices slices = slices_of(self, dim, index, "index_select", false);
  DimVector sizes(self.sizes());
  if (self.dim() > 0) {
    sizes[static_cast<size_t>(slices.where.dim)] = index.numel();
  } else {
    RUSH_CHECK_VALUE(index.numel() == 1, "index_select: a 0-dimensional tensor takes one index, got ", index.numel());
  }
  const Tensor out = detail::empty_contiguous(sizes, self.scalar_type(), self.device());
  if (slices.view.dim() > 0) {
    kernels::index_gather(self.device().type, out, slices.view, offsets_of(slices.index, slices.where),
                          slices.where.dim);
  } else {  // of single elements
    const Tensor elements = detail::make_view(self, {index.numel()}, {0}, self.storage_offset());
    kernels::gather(self.device().type, out, elements, slices.index, slices.where);
  }
  return out;
}

// One slice of the source for each index, of the shape of self's.
void check_source(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const char* op) {
  RUSH_CHECK_TYPE(source.scalar_type() == self.scalar_type(), op, ": expected a source of ", self.scalar_type(),
                  ", got ", source.scalar_type());
  RUSH_CHECK_VALUE(source.device() == self.device(), op, ": the source is on ", source.device(), ", the tensor on ",
                   self.device());
  DimVector expected(self.sizes());
  if (self.dim() > 0) expected[static_cast<size_t>(wrap_dim(dim, self.dim(), op))] = index.numel();
  const bool one_slice = source.dim() <= 1 && source.numel() == 1 && checked_numel(expected) == 1;
  RUSH_CHECK_VALUE(index.numel() == 1 ? one_slice || source.sizes() == IntArrayRef(expected)
                                      : self.dim() > 0 && source.sizes() == IntArrayRef(expected),
                   op, ": a source of shape ", source.sizes(), " does not fit ", index.numel(),
                   " slices along dimension ", dim, " of a tensor of shape ", self.sizes());
}

}  // namespace

SliceWrite prepare_slice_write(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                               const char* op, IndexWrite write) {
  check_writable(self, op);
  check_source(self, dim, index, source, op);
  const Slices slices = slices_of(self, dim, index, op, false);
  return {slices.view, offsets_of(slices.index, slices.where), values_for_scatter(source, source.sizes(), self),
          slices.where.dim, write};
}

void SliceWrite::run() const {
  kernels::index_scatter(view.device().type, view, offsets, values, before, write, order);
}

namespace {

// On a GPU index_add sorts the index, to add in one order. A program that adds by one index several times does that
// once (find_orders_once in autograd/compile/passes.h).
Tensor index_order(const Tensor& index, int64_t size) {
  const Tensor numbers = index_as_int64(index, index.device(), "index_order");
  const Tensor offsets = offsets_of(numbers, {"index_order", 0, size, 1, false});
  const Tensor order = detail::empty_contiguous(index.sizes(), kInt64, index.device());
  kernels::offset_order(index.device().type, order, offsets, size);
  return order;
}

Tensor& index_add_in_order_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Tensor& order) {
  const char* const op = "index_add_in_order";
  RUSH_CHECK_TYPE(order.scalar_type() == kInt64, op, ": expected an order of ", kInt64, ", got ", order.scalar_type());
  RUSH_CHECK_VALUE(order.device() == self.device() && order.numel() == index.numel(), op, ": an order of ",
                   order.numel(), " on ", order.device(), " is not that of ", index.numel(), " slices on ",
                   self.device());
  SliceWrite write = prepare_slice_write(self, dim, index, source, op, IndexWrite::Add);
  write.order = contiguous(order);
  write.run();
  return self;
}

Tensor& index_add_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
  check_source(self, dim, index, source, "index_add");
  RUSH_CHECK_TYPE(can_cast(alpha.type(), self.scalar_type()) || alpha.is_integral(true), "index_add: alpha of ",
                  alpha.type(), " does not fit a tensor of ", self.scalar_type());
  const bool scale = !alpha.equal(1);
  const Tensor factor = scale ? to_dtype(detail::wrapped_number(alpha), self.scalar_type()) : Tensor();
  const Tensor scaled = scale ? ops::mul(source, factor) : source;
  prepare_slice_write(self, dim, index, scaled, "index_add", IndexWrite::Add).run();
  return self;
}

Tensor& index_copy_(Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  prepare_slice_write(self, dim, index, source, "index_copy", IndexWrite::Assign).run();
  return self;
}

Tensor& index_fill__int_Tensor(Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  RUSH_CHECK_VALUE(value.dim() == 0, "index_fill: expected a value without dimensions, got shape ", value.sizes());
  RUSH_CHECK_TYPE(!value.is_complex() || self.is_complex(), "index_fill: a complex value does not fit a tensor of ",
                  self.scalar_type());
  check_writable(self, "index_fill");
  const Slices slices = slices_of(self, dim, index, "index_fill", true);
  const Tensor filler = number_as(value, self.scalar_type()).to(self.device());
  kernels::index_scatter(self.device().type, slices.view, offsets_of(slices.index, slices.where), filler,
                         slices.where.dim, IndexWrite::Assign, Tensor());
  return self;
}

Tensor& index_fill__int_Scalar(Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  return index_fill__int_Tensor(self, dim, index, detail::wrapped_number(value));
}

Tensor repeat_interleave_Tensor(const Tensor& repeats, std::optional<int64_t> output_size) {
  constexpr const char* op = "repeat_interleave";
  RUSH_CHECK_VALUE(repeats.dim() == 1, op, ": expected repeats of one dimension, got shape ", repeats.sizes());
  RUSH_CHECK_TYPE(repeats.scalar_type() == kInt32 || repeats.scalar_type() == kInt64, op,
                  ": expected repeats of int32 or int64, got ", repeats.scalar_type());
  if (repeats.is_meta()) {
    RUSH_CHECK_NOT_IMPLEMENTED(output_size, op, ": on the meta device the output's size must be given");
    return detail::empty_contiguous(*output_size, repeats.scalar_type(), repeats.device());
  }
  Tensor out;
  kernels::repeat_interleave(repeats.device().type, contiguous(index_as_int64(repeats, repeats.device(), op)),
                             output_size, out);
  return out.to(repeats.scalar_type());
}

Tensor repeat_interleave(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  const Tensor input = dim && self.dim() > 0 ? self : self.reshape(-1);
  const int64_t along = wrap_dim(dim.value_or(0), input.dim(), "repeat_interleave");
  const int64_t size = input.size(along);
  const bool one = repeats.dim() == 0 || (repeats.dim() == 1 && repeats.size(0) == 1);
  RUSH_CHECK_VALUE(one || (repeats.dim() == 1 && repeats.size(0) == size), "repeat_interleave: repeats of shape ",
                   repeats.sizes(), " do not fit dimension ", along, " of size ", size);
  const Tensor each = one ? repeats.reshape(1).expand(size) : repeats;
  return ops::index_select(input, along, ops::repeat_interleave_Tensor(each, output_size));
}

Tensor repeat_interleave_self_int(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                                  std::optional<int64_t> output_size) {
  RUSH_CHECK_VALUE(repeats >= 0, "repeat_interleave: cannot repeat ", repeats, " times");
  const Tensor input = dim && self.dim() > 0 ? self : self.reshape(-1);
  const int64_t along = wrap_dim(dim.value_or(0), input.dim(), "repeat_interleave");
  // (..., n, ...) -> (..., n, 1, ...) -> (..., n, repeats, ...) -> (..., n * repeats, ...)
  DimVector sizes(input.sizes());
  sizes.insert(sizes.begin() + along + 1, 1);
  const Tensor spread = input.reshape(sizes);
  sizes[static_cast<size_t>(along) + 1] = repeats;
  DimVector merged(input.sizes());
  int64_t& length = merged[static_cast<size_t>(along)];
  length = multiply_sizes("repeat_interleave", length, repeats);
  RUSH_CHECK_VALUE(!output_size || *output_size == length, "repeat_interleave: output_size is ", *output_size,
                   ", the repeats sum to ", length);
  return spread.expand(sizes).clone(MemoryFormat::Contiguous).view(merged);  // never a view of self
}

}  // namespace

}  // namespace native

void register_index_select_ops(Registry& r) {
  r.native(ops::index_select, native::index_select);
  r.native(ops::index_add_, native::index_add_);
  r.native(ops::index_copy_, native::index_copy_);
  r.native(ops::index_fill__int_Scalar, native::index_fill__int_Scalar);
  r.native(ops::index_fill__int_Tensor, native::index_fill__int_Tensor);
  r.native(ops::index_add, native::on_copy<native::index_add_>);
  r.native(ops::index_order, native::index_order);
  r.native(ops::index_add_in_order, native::on_copy<native::index_add_in_order_>);
  r.native(ops::index_copy, native::on_copy<native::index_copy_>);
  r.native(ops::index_fill_int_Scalar, native::on_copy<native::index_fill__int_Scalar>);
  r.native(ops::index_fill_int_Tensor, native::on_copy<native::index_fill__int_Tensor>);
  r.native(ops::repeat_interleave_Tensor, native::repeat_interleave_Tensor);
  r.composite(ops::repeat_interleave, native::repeat_interleave);
  r.composite(ops::repeat_interleave_self_int, native::repeat_interleave_self_int);
}

Tensor Tensor::index_select(int64_t dim, const Tensor& index) const { return ops::index_select(*this, dim, index); }
Tensor Tensor::index_add(int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) const {
  return ops::index_add(*this, dim, index, source, alpha);
}
Tensor& Tensor::index_add_(int64_t dim, const Tensor& index, const Tensor& source, const Scalar& alpha) const {
  return ops::index_add_(self(), dim, index, source, alpha);
}
Tensor Tensor::index_copy(int64_t dim, const Tensor& index, const Tensor& source) const {
  return ops::index_copy(*this, dim, index, source);
}
Tensor& Tensor::index_copy_(int64_t dim, const Tensor& index, const Tensor& source) const {
  return ops::index_copy_(self(), dim, index, source);
}
Tensor Tensor::index_fill(int64_t dim, const Tensor& index, const Scalar& value) const {
  return ops::index_fill_int_Scalar(*this, dim, index, value);
}
Tensor Tensor::index_fill(int64_t dim, const Tensor& index, const Tensor& value) const {
  return ops::index_fill_int_Tensor(*this, dim, index, value);
}
Tensor& Tensor::index_fill_(int64_t dim, const Tensor& index, const Scalar& value) const {
  return ops::index_fill__int_Scalar(self(), dim, index, value);
}
Tensor& Tensor::index_fill_(int64_t dim, const Tensor& index, const Tensor& value) const {
  return ops::index_fill__int_Tensor(self(), dim, index, value);
}
Tensor Tensor::repeat_interleave(const Tensor& repeats, std::optional<int64_t> dim,
                                 std::optional<int64_t> output_size) const {
  return ops::repeat_interleave(*this, repeats, dim, output_size);
}
Tensor Tensor::repeat_interleave(int64_t repeats, std::optional<int64_t> dim,
                                 std::optional<int64_t> output_size) const {
  return ops::repeat_interleave_self_int(*this, repeats, dim, output_size);
}

}  // namespace rush
