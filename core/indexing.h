// Indices as Python writes them between brackets: x.index({0, Slice(1, None, 2), Ellipsis, None, rows}).
#pragma once
#include <variant>

#include "core/tensor.h"

namespace rush::indexing {

enum class EllipsisIndexType { Ellipsis };
/// All dimensions that the other indices leave.
inline constexpr EllipsisIndexType Ellipsis = EllipsisIndexType::Ellipsis;
/// A new dimension of size one; in a Slice, an end that is left out.
inline constexpr std::nullopt_t None = std::nullopt;

/// Elements start, start + step, ... before `stop` of one dimension. Negative ends count from its end.
struct Slice {
  std::optional<int64_t> start, stop;
  int64_t step;

  Slice(std::optional<int64_t> start = std::nullopt, std::optional<int64_t> stop = std::nullopt,
        std::optional<int64_t> step = std::nullopt)
      : start(start), stop(stop), step(step.value_or(1)) {}
};

/// One index: an integer drops its dimension; a Slice keeps it; None adds one; Ellipsis or "..." fills up; a tensor of
/// integers or a mask gathers (see `index` in core/ops/index/index.h); true and false add a dimension of size one and
/// zero.
struct TensorIndex {
  using Data = std::variant<std::nullopt_t, EllipsisIndexType, int64_t, bool, Slice, Tensor>;
  Data data;

  TensorIndex(std::nullopt_t) : data(std::nullopt) {}
  TensorIndex(EllipsisIndexType) : data(Ellipsis) {}
  /// Throws ValueError for any text but "...".
  TensorIndex(const char* text);
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) TensorIndex(T index)
      : data(static_cast<int64_t>(index)) {}
  template <class T>
  requires(std::is_same_v<T, bool>) TensorIndex(T value) : data(value) {}
  TensorIndex(Slice slice) : data(slice) {}
  TensorIndex(Tensor tensor) : data(std::move(tensor)) {}
};

}  // namespace rush::indexing
