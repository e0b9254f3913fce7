// Saved: a tensor kept from the forward pass for the backward pass.
#pragma once
#include "autograd/node.h"

namespace rush {

struct PackedTensor;  // autograd/saved_tensors_hooks.h

// Note [Saved tensors]
// A saved input is simply held. A saved output must not be held with its grad_fn, which is the very node that saves it:
// the two would keep each other alive. So an output is held as an alias without history, and gets the node back as its
// grad_fn when it is asked for.
//
// The storage's version is remembered. When an in-place operator has written since, the value needed is gone, and `get`
// throws instead of computing a wrong gradient.
//
// While SavedTensorsHooks are active, what their `pack` returned is kept instead, and `get` unpacks it.
class Saved {
 public:
  Saved() = default;
  /// Saves an input of the operator; an undefined tensor stays undefined.
  Saved(const Tensor& input);
  Saved(const std::optional<Tensor>& input) : Saved(input ? *input : Tensor()) {}
  /// Saves an output of the operator that `node` differentiates.
  static Saved output(const Tensor& output, Node* node);

  /// Throws Error when it was freed by an earlier backward pass, or written to since it was saved.
  Tensor get() const;
  bool defined() const { return tensor_.defined() || packed_; }  // it holds a tensor, which may be packed
  void release();

  /// For inspection: no checks; undefined when it is packed.
  const Tensor& peek() const { return tensor_; }
  bool is_packed() const { return static_cast<bool>(packed_); }  // by SavedTensorsHooks
  uint32_t saved_version() const { return version_; }            // the storage's version at that time

 private:
  Tensor tensor_;
  std::shared_ptr<const PackedTensor> packed_;
  Node* node_ = nullptr;  // set for outputs; it owns this object
  uint32_t version_ = 0;
  uint32_t slot_ = 0;
  bool released_ = false;
};

/// Several, for operators on lists of tensors.
class SavedList {
 public:
  SavedList() = default;
  SavedList(TensorList tensors) : saved_(tensors.begin(), tensors.end()) {}
  Tensors get() const;                           // as Saved::get, one by one
  size_t size() const { return saved_.size(); }  // undefined tensors count
  std::vector<Saved>& list() { return saved_; }  // for what visits and releases them

 private:
  std::vector<Saved> saved_;
};

namespace detail {
inline void visit_one(SavedVisitor& v, const char* name, Saved& saved) { v.visit(name, saved); }
inline void visit_one(SavedVisitor& v, const char* name, SavedList& list) {
  for (Saved& saved : list.list()) v.visit(name, saved);
}
}  // namespace detail

// Lists a node's saved members: RUSH_SAVED(self, other).
#define RUSH_SAVED_1(v, a) ::rush::detail::visit_one(v, #a, a);
#define RUSH_SAVED_2(v, a, ...) RUSH_SAVED_1(v, a) RUSH_SAVED_1(v, __VA_ARGS__)
#define RUSH_SAVED_3(v, a, ...) RUSH_SAVED_1(v, a) RUSH_SAVED_2(v, __VA_ARGS__)
#define RUSH_SAVED_4(v, a, ...) RUSH_SAVED_1(v, a) RUSH_SAVED_3(v, __VA_ARGS__)
#define RUSH_SAVED_5(v, a, ...) RUSH_SAVED_1(v, a) RUSH_SAVED_4(v, __VA_ARGS__)
#define RUSH_SAVED_6(v, a, ...) RUSH_SAVED_1(v, a) RUSH_SAVED_5(v, __VA_ARGS__)
#define RUSH_SAVED_7(v, a, ...) RUSH_SAVED_1(v, a) RUSH_SAVED_6(v, __VA_ARGS__)
#define RUSH_SAVED_8(v, a, ...) RUSH_SAVED_1(v, a) RUSH_SAVED_7(v, __VA_ARGS__)
#define RUSH_SAVED_PICK(_1, _2, _3, _4, _5, _6, _7, _8, pick, ...) pick
#define RUSH_SAVED(...)                                                                                              \
  void visit_saved(::rush::SavedVisitor& visitor_) override {                                                        \
    RUSH_SAVED_PICK(__VA_ARGS__, RUSH_SAVED_8, RUSH_SAVED_7, RUSH_SAVED_6, RUSH_SAVED_5, RUSH_SAVED_4, RUSH_SAVED_3, \
                    RUSH_SAVED_2, RUSH_SAVED_1, _)                                                                   \
    (visitor_, __VA_ARGS__)                                                                                          \
  }

}  // namespace rush
