// Tensor, torch::Tensor: a handle on a TensorImpl. Its copies share sizes, strides, storage and gradient; its methods
// are operators, declared with their family in core/ops.
#pragma once
#include <concepts>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "core/array_ref.h"
#include "core/error/error.h"
#include "core/error/source_location.h"
#include "core/ops/pointwise/pointwise_tables.h"
#include "core/scalar.h"
#include "core/tensor_impl.h"
#include "core/tensor_options.h"

namespace rush {

class Tensor;
class Node;
class Generator;
struct Stream;

using TensorList = ArrayRef<Tensor>;
using OptionalTensorList = ArrayRef<std::optional<Tensor>>;

// An IntArrayRef that may be left out. Unlike std::optional<IntArrayRef> it is built from braces or one number.
class OptionalIntArrayRef {
 public:
  OptionalIntArrayRef() = default;
  OptionalIntArrayRef(std::nullopt_t) {}
  OptionalIntArrayRef(IntArrayRef values) : values_(values), given_(true) {}
  OptionalIntArrayRef(const std::vector<int64_t>& values) : values_(values), given_(true) {}
  OptionalIntArrayRef(const DimVector& values) : values_(values), given_(true) {}
  OptionalIntArrayRef(const std::initializer_list<int64_t>& values) : values_(values), given_(true) {}
  OptionalIntArrayRef(const int64_t& one) : values_(one), given_(true) {}
  OptionalIntArrayRef(const std::optional<int64_t>& one) {
    if (one) *this = OptionalIntArrayRef(*one);
  }
  // As std::optional has them; operator* does not check.
  IntArrayRef value() const { return given_ ? values_ : throw std::bad_optional_access(); }
  bool has_value() const { return given_; }
  explicit operator bool() const { return given_; }
  const IntArrayRef& operator*() const { return values_; }
  const IntArrayRef* operator->() const { return &values_; }

 private:
  IntArrayRef values_;
  bool given_ = false;
};

// Note [Overloads that a literal chooses]
// C++ converts an integer, a number and even text to bool in preference to a list of dimensions, and takes {0} for one
// integer rather than a list: x.var(0) would be the biased variance, and x.tensor_split({2}) two halves. Where
// overloads differ in such arguments, the one of a bool is a template that accepts nothing else, and braces have an
// overload of their own, which the language prefers. Text is deduced, too: the literal 0 could be a pointer to it.
template <class T>
concept TruthValue = std::same_as<T, bool>;
template <class T>
concept Text = std::convertible_to<const T&, std::string_view>;

namespace indexing {
class TensorIndex;
}
template <class T>
class MaybeOwned;  // a program's own, see compat/c10/util/MaybeOwned.h
template <class T, size_t N>
class TensorAccessor;
template <class T, size_t N, class Index>
class PackedAccessor;

class Tensor : public DeviceCopies<Tensor> {
 public:
  // An undefined tensor: it holds nothing, and stands for "no tensor" where one is optional.
  Tensor() = default;
  explicit Tensor(intrusive_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  ~Tensor() = default;
  // A variable that is assigned to becomes another handle. A temporary is a view that the program means to write:
  // x[0] = y and x[0] = 1 change x.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  Tensor& operator=(const Tensor& other) && { return copy_(other); }
  Tensor& operator=(const Scalar& value) && { return fill_(value); }

  // ---- metadata, and identity: whether it has a TensorImpl, which one, and how many handles share it ----
  bool defined() const { return static_cast<bool>(impl_); }
  TensorImpl* impl() const { return impl_.get(); }
  const intrusive_ptr<TensorImpl>& impl_ptr() const { return impl_; }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  uint32_t use_count() const { return impl_.use_count(); }
  void reset() { impl_.reset(); }
  // For borrowing without touching the count: what `borrow` returns must be given to `unborrow` and never destroyed.
  static Tensor borrow(const Tensor& owner) { return Tensor(intrusive_ptr<TensorImpl>::take(owner.impl())); }
  void unborrow() { impl_.release(); }
  // Of each dimension: its size, and how many elements lie between an index and the next. An undefined tensor has the
  // one size 0, so that x.numel() > 0 may ask whether there is anything.
  IntArrayRef sizes() const { return defined() ? impl_->sizes() : IntArrayRef(kNoElements, 1); }
  IntArrayRef strides() const { return checked().strides(); }
  // Dimensions count from the end when negative. Throw IndexError out of range.
  int64_t size(int64_t dim) const;
  int64_t stride(int64_t dim) const;
  int64_t dim() const { return defined() ? impl_->dim() : 1; }                // how many dimensions there are
  int64_t numel() const { return defined() ? impl_->numel() : 0; }            // the product of the sizes
  int64_t storage_offset() const { return checked().storage_offset(); }       // in elements
  int64_t element_size() const { return rush::element_size(scalar_type()); }  // in bytes
  int64_t nbytes() const { return numel() * element_size(); }                 // of all elements, in bytes
  ScalarType scalar_type() const { return checked().dtype(); }                // the dtype as an enumerator
  TypeMeta dtype() const { return TypeMeta(scalar_type()); }                  // compares with kFloat32, prints "float"
  Device device() const { return checked().device(); }                        // that its memory is on
  Layout layout() const { return checked().layout(); }                        // strided, or a sparse one
  // Whether the layout is COO; CSR. Note [Sparse tensors].
  bool is_sparse() const { return defined() && layout() == kSparse; }
  bool is_sparse_csr() const { return defined() && layout() == kSparseCsr; }
  TensorOptions options() const { return TensorOptions(scalar_type()).device(device()).layout(layout()); }  // its own
  const Storage& storage() const { return checked().storage(); }                   // that it shares with its views
  bool has_storage() const { return defined() && layout() == kStrided; }           // sparse tensors have none
  bool is_on(DeviceType type) const { return defined() && device().is_on(type); }  // any device of the type
  bool is_floating_point() const { return defined() && rush::is_floating_point(scalar_type()); }  // but not complex
  bool is_complex() const { return defined() && rush::is_complex(scalar_type()); }                // its dtype is
  bool is_signed() const { return traits_of(scalar_type()).is_signed; }      // its dtype has negative numbers
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;  // in this format, without gaps
  bool is_non_overlapping_and_dense() const { return checked().is_non_overlapping_and_dense(); }  // in some order
  // The memory format that new tensors like this one should have: channels-last when this is and is not row-major.
  MemoryFormat suggest_memory_format() const;
  bool is_alias_of(const Tensor& other) const { return storage() == other.storage(); }   // they share their storage
  bool is_same_size(const Tensor& other) const { return sizes() == other.sizes(); }      // all sizes agree
  int8_t get_device() const { return device().is_accelerator() ? device().index : -1; }  // its index; -1 on the CPU
  // "CPUFloatType", "SparseCUDADoubleType"; "UndefinedType".
  std::string toString() const;
  // Writes toString() and the sizes to standard error: [CPUFloatType [2, 3]].
  void print() const;
  // Makes this tensor row-major (or of another memory format) with these sizes. The elements stay where they are in
  // memory; the storage grows where it is too small, and what is added is uninitialised. Throws Error when the tensor
  // requires a gradient, or its memory has another owner (from_blob) and would have to grow.
  const Tensor& resize_(IntArrayRef size, std::optional<MemoryFormat> format = std::nullopt) const;
  const Tensor& resize_as_(const Tensor& other, std::optional<MemoryFormat> format = std::nullopt) const;

  // ---- data ----
  // The first element. The typed form throws TypeError unless T is the dtype's type.
  void* data_ptr() const { return checked().data(); }
  template <class T>
  T* data_ptr() const {
    RUSH_CHECK_TYPE(scalar_type() == scalar_type_of<T>, "data_ptr: expected scalar type ",
                    traits_of(scalar_type_of<T>).enumerator, " but found ", traits_of(scalar_type()).enumerator);
    return static_cast<T*>(data_ptr());
  }
  template <class T>
  const T* const_data_ptr() const {
    return data_ptr<std::remove_const_t<T>>();
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  const void* const_data_ptr() const { return data_ptr(); }
  void* mutable_data_ptr() const { return data_ptr(); }
  // Reads and writes single elements: x.accessor<double, 2>()[i][j]. Throws ValueError unless there are N dimensions on
  // the CPU, TypeError unless T is the dtype's type. Include core/tensor_accessor.h.
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const;
  // The same with sizes and strides of its own, which a kernel takes by value; on any device.
  template <class T, size_t N>
  PackedAccessor<T, N, int64_t> packed_accessor64() const;
  // With 32-bit indices. Throws ValueError when an element lies further than they reach.
  template <class T, size_t N>
  PackedAccessor<T, N, int32_t> packed_accessor32() const;
  // The single element. Throws ValueError unless there is exactly one.
  Scalar item(SourceLocation where = SourceLocation::current()) const;  // `where` is what a trace names
  template <class T>
  T item(SourceLocation where = SourceLocation::current()) const {
    return item(where).to<T>();
  }
  // Whether the single element is not zero. Throws ValueError unless there is exactly one.
  bool is_nonzero(SourceLocation where = SourceLocation::current()) const;

  // ---- autograd (defined in autograd/) ----
  bool requires_grad() const { return defined() && impl_->keys().has(DispatchKey::Autograd); }
  // Starts or stops recording on a leaf. Throws Error on a tensor that is not a leaf, or whose dtype has no gradients.
  const Tensor& requires_grad_(bool requires_grad = true) const;
  Tensor& set_requires_grad(bool requires_grad) const;  // the same; a tensor that is not a leaf stays as it is
  bool is_leaf() const;                                 // no recorded operator made it
  // The function that made this tensor; null for a leaf.
  intrusive_ptr<Node> grad_fn() const;
  std::string grad_fn_name() const;  // "MulBackward"; empty for a leaf
  int64_t output_nr() const;         // which output of grad_fn() it is
  // The accumulated gradient, undefined before the first backward pass.
  const Tensor& grad() const;
  Tensor& mutable_grad() const;  // to be assigned to
  // Adds the gradients of this tensor to the `grad` of every leaf it depends on. `gradient` defaults to one for a
  // tensor of one element. Throws Error when this does not require a gradient, or when the graph was already freed.
  void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = std::nullopt, bool create_graph = false,
                std::optional<TensorList> inputs = std::nullopt) const;
  // Keeps the gradient of a tensor that is not a leaf.
  void retain_grad() const;
  bool retains_grad() const;
  // Calls `hook` with the gradient of this tensor when it is computed; a tensor that it returns takes the gradient's
  // place. A hook is any callable void(Tensor) or Tensor(Tensor). Returns a number for remove_hook.
  template <class Hook>
  unsigned register_hook(Hook&& hook) const;
  void remove_hook(unsigned position) const;
  // A tensor over the same memory, outside the graph.
  Tensor detach() const;
  Tensor& detach_() const;
  // Over the same memory, outside the graph; writes still count, see Note [Version counters live in the storage].
  Tensor data() const { return tensor_data(); }
  Tensor variable_data() const { return tensor_data(); }
  Tensor tensor_data() const;
  // Makes this tensor hold what `other` holds, keeping its place in optimisers and modules.
  void set_data(const Tensor& other) const;
  int64_t _version() const { return checked().storage()->version(); }       // writes to its storage
  bool is_view() const { return defined() && impl_->view_base(); }          // one that autograd follows
  const Tensor _base() const { return Tensor(checked().view_base()); }      // undefined unless it is such a view
  bool is_inference() const { return defined() && impl_->is_inference(); }  // see Note [Inference tensors]
  void bump_version() const { checked().storage()->bump_version(); }        // as every write in place does

  // ---- changes of the geometry in place: x.transpose_(0, 1) is x = x.transpose(0, 1), also for those that share the
  // handle. Recorded, with the rules of in-place writes (defined in autograd/inplace_views.cpp) ----
  Tensor& transpose_(int64_t dim0, int64_t dim1) const;
  Tensor& swapaxes_(int64_t axis0, int64_t axis1) const { return transpose_(axis0, axis1); }
  Tensor& swapdims_(int64_t dim0, int64_t dim1) const { return transpose_(dim0, dim1); }
  Tensor& t_() const;
  Tensor& squeeze_(OptionalIntArrayRef dim = std::nullopt) const;
  Tensor& unsqueeze_(int64_t dim) const;
  const Tensor& as_strided_(IntArrayRef size, IntArrayRef stride, std::optional<int64_t> offset = std::nullopt) const;

  // ---- indexing (core/ops/index/indexing.h): Python's x[...]; views, except where an index is a tensor ----
  Tensor operator[](int64_t index) const { return select(0, index); }
  Tensor operator[](const Tensor& index) const;
  Tensor index(std::initializer_list<indexing::TensorIndex> indices) const;
  Tensor index(const std::vector<indexing::TensorIndex>& indices) const;
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Tensor& values) const;
  Tensor& index_put_(std::initializer_list<indexing::TensorIndex> indices, const Scalar& value) const;
  Tensor& index_put_(const std::vector<indexing::TensorIndex>& indices, const Tensor& values) const;
  Tensor& index_put_(const std::vector<indexing::TensorIndex>& indices, const Scalar& value) const;

  // ---- operators on numbers (core/ops/pointwise/binary.h): in place where they have = ----
  Tensor operator-() const { return neg(); }
  Tensor operator~() const { return bitwise_not(); }
  Tensor& operator+=(const Tensor& other) const { return add_(other); }
  Tensor& operator+=(const Scalar& other) const { return add_(other); }
  Tensor& operator-=(const Tensor& other) const { return sub_(other); }
  Tensor& operator-=(const Scalar& other) const { return sub_(other); }
  Tensor& operator*=(const Tensor& other) const { return mul_(other); }
  Tensor& operator*=(const Scalar& other) const { return mul_(other); }
  Tensor& operator/=(const Tensor& other) const { return div_(other); }
  Tensor& operator/=(const Scalar& other) const { return div_(other); }
  Tensor& operator&=(const Tensor& other) const { return bitwise_and_(other); }
  Tensor& operator|=(const Tensor& other) const { return bitwise_or_(other); }
  Tensor& operator^=(const Tensor& other) const { return bitwise_xor_(other); }

  // ---- the operators, a family a file ----
#include "core/ops/methods.inc"

 private:
  // In-place methods are const, as libtorch's are: they change what the handle points to, not the handle.
  Tensor& self() const { return const_cast<Tensor&>(*this); }
  TensorImpl& checked() const {
    RUSH_CHECK(defined(), "expected a tensor, got an undefined one");
    return *impl_;
  }

  static const int64_t kNoElements[];  // the one size that an undefined tensor has; the compiler does not see how many
  intrusive_ptr<TensorImpl> impl_;
};

// As PyTorch prints tensors: values in aligned columns, then dtype and device where they are not the default.
std::string to_string(const Tensor& tensor);
// Of a tensor itself, not of what converts to one: whether a stream takes text must not depend on this function.
template <class Traits, class T>
requires std::is_base_of_v<Tensor, T> std::basic_ostream<char, Traits>
&operator<<(std::basic_ostream<char, Traits>& stream, const T& tensor) { return stream << to_string(tensor); }

// `dim`, counted from the front. Throws IndexError naming the operator when it is outside [-dims, dims).
int64_t wrap_dim(int64_t dim, int64_t dims, const char* op);
// Likewise for several; throws ValueError when one appears twice. An empty list means all when `empty_is_all`.
DimVector wrap_dims(IntArrayRef dim, int64_t dims, const char* op, bool empty_is_all = false);

namespace detail {
// A view of `base`'s memory, followed by autograd while grad mode is on. The geometry lies within the storage.
Tensor make_view(const Tensor& base, IntArrayRef sizes, IntArrayRef strides, int64_t storage_offset,
                 ViewOrigin origin = ViewOrigin::Single);
// Likewise with another element type, whose sizes, strides and offset count in its own elements.
Tensor make_view_as(const Tensor& base, ScalarType dtype, IntArrayRef sizes, IntArrayRef strides,
                    int64_t storage_offset, ViewOrigin origin = ViewOrigin::Single);
// Another handle on the same memory and geometry that autograd does not follow.
Tensor make_alias(const Tensor& tensor);
// Uninitialised memory: row-major, in another format, or with strides that cover it densely.
Tensor empty_contiguous(IntArrayRef sizes, ScalarType dtype, Device device);
Tensor empty_format(IntArrayRef sizes, ScalarType dtype, Device device, MemoryFormat format);
Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, ScalarType dtype, Device device);
// A 0-dimensional CPU tensor that promotes as the number does.
Tensor wrapped_number(const Scalar& value);
// Likewise, beside `other` in a computation: in its dtype already where promotion would cast the number there.
Tensor wrapped_number(const Scalar& value, const Tensor& other);
}  // namespace detail

// Whether an optional argument names a tensor; an undefined one stands for none.
inline bool given(const std::optional<Tensor>& t) { return t && t->defined(); }

}  // namespace rush
