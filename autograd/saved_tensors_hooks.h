// SavedTensorsHooks: callables that decide how tensors are kept between the forward and the backward pass.
#pragma once
#include <any>
#include <functional>
#include <memory>

#include "autograd/node.h"

namespace rush {

namespace autograd {

using PackHook = std::function<std::any(const Tensor&)>;
using UnpackHook = std::function<Tensor(const std::any&)>;

/// While it lives, every tensor that this thread saves for the backward pass goes through `pack`, which returns
/// whatever should be kept in its place: a copy on another device, the name of a file, the number of a slot. `unpack`
/// makes the tensor from it again, once for each time that the backward pass asks. The innermost of nested ones counts.
/// Both run without recording; `pack` gets a tensor outside the graph. torch.autograd.graph.saved_tensors_hooks.
///
/// What `pack` kept is its own affair: later in-place writes to memory that it still shares are not noticed. Saving
/// throws Error when `pack` writes its argument, and the backward pass does when `unpack` returns no tensor.
class SavedTensorsHooks {
 public:
  SavedTensorsHooks(PackHook pack, UnpackHook unpack);
  ~SavedTensorsHooks();
  SavedTensorsHooks(const SavedTensorsHooks&) = delete;
  SavedTensorsHooks& operator=(const SavedTensorsHooks&) = delete;

  /// The innermost of this thread; null outside all of them.
  static const SavedTensorsHooks* current() { return current_; }
  std::any pack(const Tensor& tensor) const;  // what the program's hook makes of it
  const std::shared_ptr<const UnpackHook>& unpack_hook() const { return unpack_; }  // for what was packed

 private:
  static thread_local constinit inline const SavedTensorsHooks* current_ = nullptr;
  PackHook pack_;
  std::shared_ptr<const UnpackHook> unpack_;  // what was packed outlives the scope
  const SavedTensorsHooks* outer_;
};

}  // namespace autograd

/// What stands for a saved tensor that went through hooks.
struct PackedTensor {
  std::any kept;
  std::shared_ptr<const autograd::UnpackHook> unpack_hook;
  Edge edge;  // where the gradient of a saved input flows

  PackedTensor(const autograd::SavedTensorsHooks& hooks, const Tensor& tensor, Edge edge)
      : kept(hooks.pack(tensor)), unpack_hook(hooks.unpack_hook()), edge(std::move(edge)) {}
  /// The tensor, outside the graph.
  Tensor unpack() const;
};

}  // namespace rush
