#include "core/iterator/tensor_iterator.h"

#include <algorithm>

#include "core/integer.h"
#include "core/iterator/output_checks.h"
#include "core/ops/view/copy.h"
#include "core/print/bracketed.h"

namespace rush {

TensorIterator::TensorIterator(const char* op, const Tensor& out, const Inputs& inputs, Promotion promotion,
                               std::optional<ScalarType> output_dtype)
    : TensorIterator(op) {
  RUSH_INTERNAL_ASSERT(inputs.size() < kMaxOperands, op, " has too many operands");
  std::construct_at(&operands_[0])->tensor = out;
  count_ = 1;
  for (size_t i = 0; i < inputs.size(); ++i, ++count_) {
    RUSH_CHECK_VALUE(inputs[i].defined(), op,
                     ": Expected a proper Tensor but got None (or an undefined Tensor in C++) for argument #", i);
    Operand& operand = *std::construct_at(&operands_[i + 1]);
    operand.borrowed = inputs.are_borrowed();
    if (operand.borrowed) {
      operand.tensor = Tensor::borrow(inputs[i]);
    } else {
      operand.tensor = inputs[i];
    }
  }
  if (set_up_flat(promotion, output_dtype)) return;
  find_device();
  if (set_dtypes(promotion, output_dtype) && set_up_flat(Promotion::None, output_dtype_)) return;
  broadcast_shape();
  resolve_overlap();
  set_strides();
  sort_dimensions();
  allocate_output();
  coalesce();
}

// The device of the computation: that of the output when it is given, else of the first input that is no 0-dimensional
// CPU tensor. Those go along with tensors of any device.
void TensorIterator::find_device() {
  const int first = operands_[0].tensor.defined() ? 0 : 1;
  const auto follows = [](const Tensor& tensor) { return tensor.dim() == 0 && tensor.is_cpu(); };
  int leader = first;
  while (first == 1 && leader + 1 < count_ && follows(operands_[leader].tensor)) ++leader;
  const Device device = operands_[leader].tensor.device();
  for (int i = first; i < count_; ++i) {
    const Tensor& tensor = operands_[i].tensor;
    RUSH_CHECK_VALUE(tensor.device() == device || (i > 0 && follows(tensor)), op_, ": tensors are on ", device,
                     " and on ", tensor.device());
  }
  device_type_ = device.type;
}

TensorIterator TensorIterator::nullary(const char* op, const Tensor& out) {
  return pointwise(op, out, {}, Promotion::None, out.scalar_type());
}

namespace {

bool all_same_dtype(const std::array<TensorIterator::Operand, TensorIterator::kMaxOperands>& operands, int count) {
  for (int i = 2; i < count; ++i) {
    if (operands[i].tensor.impl()->dtype() != operands[1].tensor.impl()->dtype()) return false;
  }
  return true;
}

// Whether two elements of the tensor share memory, as those of an expanded one do.
bool overlaps_itself(const Tensor& t) {
  for (size_t d = 0; d < t.sizes().size(); ++d) {
    if (t.sizes()[d] > 1 && t.strides()[d] == 0) return true;
  }
  return false;
}

// Whether both touch some byte in common, judged by their ranges; identical geometry does not count.
bool overlaps_partly(const Tensor& a, const Tensor& b) {
  if (!a.is_alias_of(b) || a.numel() == 0 || b.numel() == 0) return false;
  if (a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() && a.strides() == b.strides()) return false;
  const auto range = [](const Tensor& t) {
    const char* first = static_cast<const char*>(t.data_ptr());
    return std::pair(first, first + storage_extent(t.sizes(), t.strides(), 0) * t.element_size());
  };
  const auto [a_first, a_last] = range(a);
  const auto [b_first, b_last] = range(b);
  return a_first < b_last && b_first < a_last;
}

}  // namespace

bool TensorIterator::set_dtypes(Promotion promotion, std::optional<ScalarType> output_dtype) {
  Tensor& out = operands_[0].tensor;
  bool has_cast = false;
  ScalarType common = count_ > 1 ? operands_[1].tensor.scalar_type() : *output_dtype;
  if (promotion != Promotion::None) {
    if (!all_same_dtype(operands_, count_)) {
      Tensor inputs[kMaxOperands];
      for (int i = 1; i < count_; ++i) inputs[i - 1] = operands_[i].tensor;
      common = result_type(TensorList(inputs, static_cast<size_t>(count_ - 1)));
    }
    if (promotion == Promotion::Float && is_integral(common, true)) common = get_default_dtype();
    // Casting is outside the graph: the derivative casts the gradient back.
    for (int i = 1; i < count_; ++i) {
      if (operands_[i].tensor.impl()->dtype() == common) continue;
      operands_[i].own(native::to_dtype(operands_[i].tensor, common));
      has_cast = true;
    }
  }
  for (int i = 1; i < count_; ++i) operands_[i].dtype = operands_[i].tensor.impl()->dtype();
  output_dtype_ = output_dtype ? *output_dtype : promotion == Promotion::Compare ? kBool : common;
  operands_[0].dtype = output_dtype_;
  if (out.defined() && out.scalar_type() != output_dtype_) {
    check_result_type(op_, output_dtype_, out.scalar_type());
    original_ = out;
    out = detail::empty_strided(out.sizes(), contiguous_strides(out.sizes()), output_dtype_, out.device());
    has_cast = true;
  }
  return has_cast;
}

// The common case: all of one dtype, device and shape, and contiguous. One loop, and nothing to cast or to sort.
bool TensorIterator::set_up_flat(Promotion promotion, std::optional<ScalarType> output_dtype) {
  const bool makes_output = !operands_[0].tensor.defined();
  const TensorImpl& first = *operands_[count_ > 1 ? 1 : 0].tensor.impl();
  for (int i = makes_output ? 1 : 0; i < count_; ++i) {
    const TensorImpl& impl = *operands_[i].tensor.impl();
    if (!impl.is_contiguous() || impl.device() != first.device()) return false;
    if (&impl != &first && !(impl.sizes() == first.sizes())) return false;
    if (promotion != Promotion::None && impl.dtype() != first.dtype()) return false;
    if (!makes_output && i > 0 && overlaps_partly(operands_[0].tensor, operands_[i].tensor)) return false;
    operands_[i].dtype = impl.dtype();
  }
  if (promotion == Promotion::Float && is_integral(first.dtype(), true)) return false;
  output_dtype_ = output_dtype ? *output_dtype : promotion == Promotion::Compare ? kBool : first.dtype();
  if (!makes_output && operands_[0].dtype != output_dtype_) return false;
  if (makes_output) {
    operands_[0].tensor = detail::empty_contiguous(first.sizes(), output_dtype_, first.device());
    operands_[0].dtype = output_dtype_;
  }
  device_type_ = first.device().type;
  numel_ = first.numel();
  shape_.push_back(numel_);
  for (int i = 0; i < count_; ++i) {
    Operand& operand = operands_[i];
    operand.data = static_cast<char*>(operand.tensor.impl()->data());
    operand.strides.push_back(element_size(operand.dtype));
  }
  return true;
}

void TensorIterator::broadcast_shape() {
  const Tensor& out = operands_[0].tensor;
  if (count_ == 1) {
    shape_ = out.sizes();
  } else {
    shape_ = operands_[1].tensor.sizes();
    for (int i = 2; i < count_; ++i) {
      const IntArrayRef sizes = operands_[i].tensor.sizes();
      if (!(sizes == IntArrayRef(shape_))) shape_ = broadcast_shapes(shape_, sizes, op_);
    }
  }
  if (out.defined()) {
    RUSH_CHECK_VALUE(out.sizes() == IntArrayRef(shape_), op_, ": output with shape ", bracketed(out.sizes()),
                     " doesn't match the broadcast shape ", bracketed(shape_));
  }
  numel_ = checked_numel(shape_);
}

void TensorIterator::resolve_overlap() {
  const Tensor& out = operands_[0].tensor;
  if (!out.defined()) return;
  RUSH_CHECK_VALUE(!overlaps_itself(out), op_, ": cannot write into a tensor of sizes ", out.sizes(), " and strides ",
                   out.strides(), ": several of its elements share memory; clone it first");
  for (int i = 1; i < count_; ++i) {
    // Reading a shifted alias while writing would see new values.
    if (overlaps_partly(out, operands_[i].tensor)) operands_[i].own(native::clone_contiguous(operands_[i].tensor));
  }
}

// Orders the dimensions by stride, smallest first, looking at the operands in turn and leaving ties as they are.
void TensorIterator::sort_dimensions() {
  const size_t dims = shape_.size();
  order_.resize(dims);
  for (size_t d = 0; d < dims; ++d) order_[d] = static_cast<int64_t>(dims - 1 - d);
  const int first = operands_[0].tensor.defined() ? 0 : 1;
  // 1 when dimension a must lie outside b, -1 when inside, 0 when nothing tells.
  const auto compare = [&](int64_t a, int64_t b) {
    for (int i = first; i < count_; ++i) {
      const int64_t sa = operands_[i].strides[a], sb = operands_[i].strides[b];
      if (sa == 0 || sb == 0) continue;
      if (sa != sb) return sa < sb ? -1 : 1;
      if (shape_[a] > shape_[b]) return 1;
    }
    return 0;
  };
  for (size_t i = 1; i < dims; ++i) {
    size_t moving = i;
    for (size_t j = i; j-- > 0;) {
      const int relation = compare(order_[j], order_[moving]);
      if (relation < 0) break;
      if (relation > 0) {
        std::swap(order_[j], order_[moving]);
        moving = j;
      }
    }
  }
  const auto permute = [&](DimVector& values) {
    const DimVector unsorted = values;
    for (size_t d = 0; d < dims; ++d) values[d] = unsorted[order_[d]];
  };
  permute(shape_);
  for (int i = first; i < count_; ++i) permute(operands_[i].strides);
}

void TensorIterator::allocate_output() {
  Operand& out = operands_[0];
  if (out.tensor.defined()) return;
  const size_t dims = shape_.size();
  DimVector sizes(dims, 0), strides(dims, 0);
  int64_t stride = 1;  // out of range where a size of 0 makes it meaningless, or the allocation below refuses the sizes
  out.strides.resize(dims);
  for (size_t d = 0; d < dims; ++d) {
    sizes[order_[d]] = shape_[d];
    strides[order_[d]] = stride;
    out.strides[d] = wrap_mul(stride, element_size(output_dtype_));
    stride = wrap_mul(stride, std::max<int64_t>(shape_[d], 1));
  }
  Device device;
  for (int i = 1; i < count_; ++i) {
    if (operands_[i].tensor.device().type == device_type_) device = operands_[i].tensor.device();
  }
  out.tensor = detail::empty_strided(sizes, strides, output_dtype_, device);
  out.data = static_cast<char*>(out.tensor.data_ptr());
}

void TensorIterator::for_each_run(LoopFn loop, const void* context, int64_t grain) const {
  parallel_for(0, numel_, grain, [&](int64_t begin, int64_t end) { run_range(loop, context, begin, end); });
}

Tensor& TensorIterator::finish() {
  Tensor& out = operands_[0].tensor;
  if (original_.defined()) native::copy_(original_, out, false);
  return original_.defined() ? original_ : out;
}

}  // namespace rush
