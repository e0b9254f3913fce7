// TensorImpl: what a Tensor points to. Sizes, strides, dtype, the shared storage, and where autograd hangs its own
// data. Sparse tensors add their parts, in core/ops/sparse/sparse_tensor_impl.h.
#pragma once
#include <cstdint>
#include <memory>

#include "core/array_ref.h"
#include "core/dispatch/key.h"
#include "core/geometry.h"
#include "core/intrusive_ptr.h"
#include "core/layout.h"
#include "core/scalar_type.h"
#include "core/storage.h"

namespace rush {

// autograd/ derives from it; core only carries it along.
struct AutogradMetaBase {
  virtual ~AutogradMetaBase() = default;
};

// How an output came to be a view, which decides whether it may be written in place while gradients are recorded.
enum class ViewOrigin : uint8_t {
  None,         // not a view, or one that autograd need not follow
  Single,       // a view of `view_base`
  MultiOutput,  // one of several views that one operator returned (split, unbind)
  NoGrad,       // made while grad mode was off: it requires a gradient where its base did, and none flows through it
  Function,     // an input of an autograd::Function, or a view of one, that the Function returned
};

class TensorImpl : public IntrusiveTarget {
 public:
  TensorImpl(Storage storage, ScalarType dtype, Device device, Layout layout = kStrided)
      : storage_(std::move(storage)),
        dtype_(dtype),
        device_(device),
        keys_(keys_on(device.type, layout)),
        layout_(layout) {
    inference_ = dispatch_state.inference_mode;
  }
  ~TensorImpl() override;
  // Strides and the offset count elements. is_contiguous() is row-major; dense: strides in some order without gaps.
  IntArrayRef sizes() const { return sizes_; }
  IntArrayRef strides() const { return strides_; }
  int64_t dim() const { return static_cast<int64_t>(sizes_.size()); }
  int64_t numel() const { return numel_; }
  int64_t storage_offset() const { return storage_offset_; }
  ScalarType dtype() const { return dtype_; }
  Device device() const { return device_; }
  Layout layout() const { return layout_; }
  const Storage& storage() const { return storage_; }
  bool is_contiguous() const { return contiguous_; }
  bool is_non_overlapping_and_dense() const { return dense_; }
  // Of an empty tensor, where its storage starts: its offset may be anything. Throws NotImplementedError for a sparse
  // tensor, whose elements lie in its parts.
  void* data() const {
    if (RUSH_UNLIKELY(layout_ != kStrided)) throw_sparse("data_ptr");
    char* start = static_cast<char*>(storage_->data());
    return numel_ > 0 ? start + storage_offset_ * element_size(dtype_) : start;
  }
  // A 0-dimensional tensor that stands for a number in the source: it promotes as a number does, not as a tensor.
  bool is_wrapped_number() const { return wrapped_number_; }
  void set_wrapped_number(bool value) { wrapped_number_ = value; }
  // Note [Inference tensors]
  // What is made under InferenceMode is one, and so is every view of one; a view of another tensor is not, wherever it
  // is made. Autograd never follows an inference tensor, though one that was made as a leaf may require a gradient: it
  // cannot be saved for the backward pass, become an output that is recorded, or be written in place outside of the
  // mode, as a recorded computation may have used it. What is computed from such tensors alone is not recorded.
  bool is_inference() const { return inference_; }
  void set_inference(bool value) { inference_ = value; }

  // Replaces the geometry. The caller has made sure that it lies within the storage.
  void set_geometry(IntArrayRef sizes, IntArrayRef strides, int64_t storage_offset);
  void set_contiguous(IntArrayRef sizes);  // row-major, from offset 0
  void set_storage(Storage storage) { storage_ = std::move(storage); }
  // Makes this tensor stand for what `other` stands for (data, sizes, dtype), keeping its own autograd identity. Throws
  // ValueError when their layouts differ.
  virtual void set_data_of(const TensorImpl& other);
  // Throws NotImplementedError: what `call` is about to do takes a dense tensor.
  [[noreturn]] RUSH_COLD void throw_sparse(const char* call) const;

  // Note [Which tensors carry the Autograd key]
  // A tensor carries it exactly while it requires a gradient, so that calls on plain tensors go straight to the backend
  // and the Autograd kernels need not ask. A view must look at its base too: an in-place write into the base, after the
  // view was made, can make both require a gradient. Grad mode off takes the key away from every call of the thread.
  KeySet keys() const { return view_base_ ? keys_ | (view_base_->keys_ & KeySet(DispatchKey::Autograd)) : keys_; }
  void set_requires_autograd(bool value) {
    const KeySet autograd = DispatchKey::Autograd;
    keys_ = value ? keys_ | autograd : keys_.without(autograd);
  }

  // The tensor that this is a differentiable view of, never itself a view; null otherwise.
  const intrusive_ptr<TensorImpl>& view_base() const { return view_base_; }
  ViewOrigin view_origin() const { return view_origin_; }
  void set_view(intrusive_ptr<TensorImpl> base, ViewOrigin origin) {
    view_base_ = std::move(base);
    view_origin_ = origin;
  }
  // Autograd's own data (autograd/meta.h), which the tensor owns; null while there is none.
  AutogradMetaBase* autograd_meta() const { return autograd_meta_.get(); }
  void set_autograd_meta(std::unique_ptr<AutogradMetaBase> meta) { autograd_meta_ = std::move(meta); }

 protected:
  // The sizes of a sparse tensor. It has no strides; row-major ones keep those that read them within their array.
  void set_sparse_sizes(IntArrayRef sizes);

 private:
  Storage storage_;
  DimVector sizes_, strides_;
  int64_t numel_ = 1;
  int64_t storage_offset_ = 0;  // in elements
  ScalarType dtype_;
  Device device_;
  KeySet keys_;
  Layout layout_;
  bool contiguous_ = true;
  bool dense_ = true;  // non-overlapping and dense: some order of the dimensions makes it contiguous
  bool wrapped_number_ = false;
  bool inference_ = false;
  ViewOrigin view_origin_ = ViewOrigin::None;
  intrusive_ptr<TensorImpl> view_base_;
  std::unique_ptr<AutogradMetaBase> autograd_meta_;
};

// Strides of `sizes` in a memory format; throws ValueError when the number of dimensions does not fit it.
DimVector strides_for(IntArrayRef sizes, MemoryFormat format);
// The product of `sizes`. Throws ValueError on a negative size or when it does not fit 63 bits.
int64_t checked_numel(IntArrayRef sizes);
// How many elements from the first a storage must hold for this geometry; 0 for an empty tensor.
int64_t storage_extent(IntArrayRef sizes, IntArrayRef strides, int64_t storage_offset);
bool is_non_overlapping_and_dense(IntArrayRef sizes, IntArrayRef strides);  // no gaps in some order of dimensions

}  // namespace rush
