// WriteBack: copies of tensors, and their way back.
#pragma once
#include <memory>
#include <vector>

#include "core/tensor.h"

namespace rush {

class TensorIterator;

namespace native {

/// Copies that are written in place of tensors, or kept beside them, until `run` copies them back. The loops that do it
/// are prepared together with the copies: `run` has nothing left to allocate.
class WriteBack {
 public:
  WriteBack();
  ~WriteBack();
  WriteBack(const WriteBack&) = delete;
  WriteBack& operator=(const WriteBack&) = delete;

  /// A row-major copy of `target`. Throws ValueError where several elements of `target` share memory.
  Tensor copy(const Tensor& target);
  /// `target` itself if it is dense, which is what kernels on lists take; otherwise a copy.
  Tensor dense(const Tensor& target) { return target.is_non_overlapping_and_dense() ? target : copy(target); }
  /// Copies all copies back, and counts the writes.
  void run();

 private:
  struct Copy {
    Tensor target;
    std::unique_ptr<TensorIterator> loop;
  };
  std::vector<Copy> copies_;
};

}  // namespace native
}  // namespace rush
