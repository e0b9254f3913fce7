// Indices as Python writes them between brackets: x.index({0, Slice(1, None, 2), Ellipsis, None, rows}).
#pragma once
#include <concepts>
#include <optional>

#include "core/tensor.h"

namespace rush::indexing {

enum class EllipsisIndexType { Ellipsis };
/// All dimensions that the other indices leave.
inline constexpr EllipsisIndexType Ellipsis = EllipsisIndexType::Ellipsis;
/// A new dimension of size one; in a Slice, an end that is left out.
inline constexpr std::nullopt_t None = std::nullopt;

/// The ends of a Slice that were left out, by libtorch's numbers.
inline constexpr int64_t INDEX_MIN = -(int64_t{1} << 62), INDEX_MAX = -(INDEX_MIN + 1);

/// Elements start, start + step, ... before `stop` of one dimension. Negative ends count from its end.
class Slice {
 public:
  Slice(std::optional<int64_t> start = std::nullopt, std::optional<int64_t> stop = std::nullopt,
        std::optional<int64_t> step = std::nullopt)
      : step_(step.value_or(1)),
        start_(start.value_or(step_ < 0 ? INDEX_MAX : 0)),
        stop_(stop.value_or(step_ < 0 ? INDEX_MIN : INDEX_MAX)) {}

  int64_t start() const { return start_; }
  int64_t stop() const { return stop_; }
  int64_t step() const { return step_; }

 private:
  int64_t step_, start_, stop_;
};

enum class TensorIndexType { None, Ellipsis, Integer, Boolean, Slice, Tensor };

/// One index: an integer drops its dimension; a Slice keeps it; None adds one; Ellipsis or "..." fills up; a tensor of
/// integers or a mask gathers (see `index` in core/ops/index/index.h); true and false add a dimension of size one and
/// zero.
class TensorIndex {
 public:
  TensorIndex(std::nullopt_t) : type_(TensorIndexType::None) {}
  TensorIndex(EllipsisIndexType) : type_(TensorIndexType::Ellipsis) {}
  /// Throws ValueError for any text but "...".
  TensorIndex(const char* text);
  template <std::integral T>
  TensorIndex(T index)
      : type_(std::is_same_v<T, bool> ? TensorIndexType::Boolean : TensorIndexType::Integer),
        integer_(static_cast<int64_t>(index)) {}
  TensorIndex(Slice slice) : type_(TensorIndexType::Slice), slice_(slice) {}
  TensorIndex(Tensor tensor) : type_(TensorIndexType::Tensor), tensor_(std::move(tensor)) {}
  /// The tensor, or the whole dimension.
  TensorIndex(std::optional<Tensor> tensor) : type_(tensor ? TensorIndexType::Tensor : TensorIndexType::Slice) {
    if (tensor) tensor_ = *std::move(tensor);
  }

  /// Which type it has, and whether it is that one.
  TensorIndexType type() const { return type_; }
  bool is_none() const { return type_ == TensorIndexType::None; }
  bool is_ellipsis() const { return type_ == TensorIndexType::Ellipsis; }
  bool is_integer() const { return type_ == TensorIndexType::Integer; }
  bool is_boolean() const { return type_ == TensorIndexType::Boolean; }
  bool is_slice() const { return type_ == TensorIndexType::Slice; }
  bool is_tensor() const { return type_ == TensorIndexType::Tensor; }
  // Of an index of that type.
  int64_t integer() const { return integer_; }
  bool boolean() const { return integer_ != 0; }
  const Slice& slice() const { return slice_; }
  const Tensor& tensor() const { return tensor_; }

 private:
  // Side by side: a std::variant of them takes a tenth of a second to compile, in every program.
  TensorIndexType type_;
  int64_t integer_ = 0;
  Slice slice_;
  Tensor tensor_;
};

}  // namespace rush::indexing
