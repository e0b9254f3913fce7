#include "ATen/TensorUtils.h"

namespace at {

std::ostream& operator<<(std::ostream& out, const TensorArg& argument) {
  if (argument.pos != 0) out << "argument #" << argument.pos << " ";
  return out << "'" << argument.name << "'";
}

namespace {

template <class... Text>
void expect(bool holds, CheckedFrom from, const Text&... text) {
  TORCH_CHECK(holds, text..., " (while checking arguments for ", from, ")");
}

// "Expected tensor for argument #1 'a' to have the same size as tensor for argument #2 'b'; but [2] does not equal [3]"
template <class T>
void expect_same(CheckedFrom from, const TensorArg& a, const TensorArg& b, const char* what, const T& of_a,
                 const T& of_b) {
  expect(of_a == of_b, from, "Expected tensor for ", a, " to have ", what, " as tensor for ", b, "; but ", of_a,
         " does not equal ", of_b);
}

// Each against the first that is defined.
template <class Check>
void check_all(CheckedFrom from, ArrayRef<TensorArg> tensors, const Check& check) {
  const TensorArg* first = nullptr;
  for (const TensorArg& t : tensors) {
    if (!t->defined()) continue;
    if (first) {
      check(from, *first, t);
    } else {
      first = &t;
    }
  }
}

}  // namespace

void checkDim(CheckedFrom from, const Tensor& tensor, const char* name, int pos, int64_t dim) {
  checkDim(from, TensorArg(tensor, name, pos), dim);
}
void checkDim(CheckedFrom from, const TensorArg& t, int64_t dim) {
  expect(t->dim() == dim, from, "Expected ", dim, "-dimensional tensor, but got ", t->dim(), "-dimensional tensor for ",
         t);
}
void checkDimRange(CheckedFrom from, const TensorArg& t, int64_t start, int64_t end) {
  expect(t->dim() >= start && t->dim() < end, from, "Expected ", start, " to ", end - 1, " dimensions, but got ",
         t->dim(), "-dimensional tensor for ", t);
}
void checkSameDim(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  expect_same(from, a, b, "the same dimension", a->dim(), b->dim());
}

void checkContiguous(CheckedFrom from, const TensorArg& t) {
  expect(t->is_contiguous(), from, "Expected contiguous tensor, but got non-contiguous tensor for ", t);
}
void checkAllContiguous(CheckedFrom from, ArrayRef<TensorArg> tensors) {
  for (const TensorArg& t : tensors) {
    if (t->defined()) checkContiguous(from, t);
  }
}

void checkSize(CheckedFrom from, const TensorArg& t, IntArrayRef sizes) {
  checkDim(from, t, static_cast<int64_t>(sizes.size()));
  expect(t->sizes() == sizes, from, "Expected tensor of size ", sizes, ", but got tensor of size ", t->sizes(), " for ",
         t);
}
void checkSize(CheckedFrom from, const TensorArg& t, int64_t dim, int64_t size) {
  expect(t->size(dim) == size, from, "Expected tensor to have size ", size, " at dimension ", dim, ", but got size ",
         t->size(dim), " for ", t);
}
void checkSameSize(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  expect_same(from, a, b, "same size", a->sizes(), b->sizes());
}
void checkAllSameSize(CheckedFrom from, ArrayRef<TensorArg> tensors) { check_all(from, tensors, checkSameSize); }

void checkNumel(CheckedFrom from, const TensorArg& t, int64_t numel) {
  expect(t->numel() == numel, from, "Expected tensor for ", t, " to have ", numel, " elements; but it actually has ",
         t->numel(), " elements");
}
void checkSameNumel(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  expect_same(from, a, b, "same number of elements", a->numel(), b->numel());
}
void checkAllSameNumel(CheckedFrom from, ArrayRef<TensorArg> tensors) { check_all(from, tensors, checkSameNumel); }

void checkScalarType(CheckedFrom from, const TensorArg& t, ScalarType type) {
  expect(t->scalar_type() == type, from, "Expected tensor for ", t, " to have scalar type ", c10::toString(type),
         "; but got ", t->toString(), " instead");
}
void checkScalarTypes(CheckedFrom from, const TensorArg& t, ArrayRef<ScalarType> types) {
  std::string names;
  for (const ScalarType type : types) names += (names.empty() ? "" : ", ") + std::string(c10::toString(type));
  expect(std::find(types.begin(), types.end(), t->scalar_type()) != types.end(), from, "Expected tensor for ", t,
         " to have one of the following scalar types: ", names, "; but got ", t->toString(), " instead");
}
void checkSameType(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  expect(a->scalar_type() == b->scalar_type() && a->device().type() == b->device().type() && a->layout() == b->layout(),
         from, "Expected tensor for ", a, " to have the same type as tensor for ", b, "; but type ", a->toString(),
         " does not equal ", b->toString());
}
void checkAllSameType(CheckedFrom from, ArrayRef<TensorArg> tensors) { check_all(from, tensors, checkSameType); }

void checkSameGPU(CheckedFrom from, const TensorArg& a, const TensorArg& b) {
  const auto place = [](const TensorArg& t) {
    return t->is_cpu() ? c10::str("Tensor for ", t, " is on CPU, ") : std::string();
  };
  expect(!a->is_cpu() && !b->is_cpu(), from, place(a), place(b), "but expected it to be on GPU");
  expect(a->device() == b->device(), from, "Expected tensor for ", a, " to have the same device as tensor for ", b,
         "; but device ", a->get_device(), " does not equal ", b->get_device());
}
void checkAllSameGPU(CheckedFrom from, ArrayRef<TensorArg> tensors) { check_all(from, tensors, checkSameGPU); }

void checkDefined(CheckedFrom from, const TensorArg& t) {
  expect(t->defined(), from, "Expected tensor for ", t, " to be non-null, but it was undefined");
}
void checkAllDefined(CheckedFrom from, ArrayRef<TensorArg> tensors) {
  for (const TensorArg& t : tensors) checkDefined(from, t);
}

void checkDeviceType(CheckedFrom from, ArrayRef<Tensor> tensors, DeviceType type) {
  for (const Tensor& t : tensors) {
    if (!t.defined()) continue;
    expect(t.device().type() == type, from, "Expected tensor to have ", type, " DeviceType, but got tensor with ",
           t.device().type(), " DeviceType");
  }
}

void checkLayout(CheckedFrom from, const Tensor& t, Layout layout) {
  expect(!t.defined() || t.layout() == layout, from, "Expected tensor to have ", layout,
         " Layout, but got tensor with ", t.layout(), " Layout");
}
void checkLayout(CheckedFrom from, ArrayRef<Tensor> tensors, Layout layout) {
  for (const Tensor& t : tensors) checkLayout(from, t, layout);
}

void* maybe_data_ptr(const Tensor& tensor) { return tensor.defined() ? tensor.data_ptr() : nullptr; }
void* maybe_data_ptr(const TensorArg& argument) { return maybe_data_ptr(*argument); }

void check_dim_size(const Tensor& tensor, int64_t dim, int64_t dim_size, int64_t size) {
  TORCH_CHECK(tensor.dim() == dim && tensor.size(dim_size) == size, "Expected a tensor of dimension ", dim,
              " and tensor.size[", dim_size, "] == ", size, " but got: dimension ", tensor.dim(), " and tensor.size[",
              dim_size, "] = ", tensor.size(dim_size));
}

}  // namespace at
