// Tensors as the content of an archive's entries.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/io/byte_source.h"
#include "core/ops/view/copy.h"
#include "core/tensor.h"

namespace rush::io {

// A tensor as it is written: these bytes, then the values in row-major order.
struct Array {
  std::string header;
  Tensor values;
  uint64_t size() const { return header.size() + static_cast<uint64_t>(values.nbytes()); }
};

// What an archive's entry holds. The values are brought together in memory only while they are read.
class ArraySource final : public ByteSource {
 public:
  explicit ArraySource(Array array) : array_(std::move(array)), left_(array_.size()) {}
  uint64_t left() const override { return left_; }

  void read(void* out, size_t size) override {
    if (!memory_.defined()) memory_ = array_.values.detach().cpu().contiguous();
    const uint64_t at = array_.size() - left_, begin = array_.header.size();
    const size_t first = at < begin ? std::min(size, static_cast<size_t>(begin - at)) : 0;
    if (first > 0) std::memcpy(out, array_.header.data() + at, first);
    if (size > first) {
      const auto* values = static_cast<const char*>(memory_.data_ptr()) + (at + first - begin);
      std::memcpy(static_cast<char*>(out) + first, values, size - first);
    }
    left_ -= size;
    if (left_ == 0) memory_ = Tensor();
  }

 private:
  Array array_;
  Tensor memory_;
  uint64_t left_;
};

}  // namespace rush::io
