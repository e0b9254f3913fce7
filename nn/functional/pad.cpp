#include "nn/functional/pad.h"

#include <algorithm>

#include "rushlight.h"

namespace rush::nn::functional {

namespace {

using enumtype::holds;

// Which element of a dimension stands at `position`, counted from its first and perhaps outside.
int64_t source(int64_t position, int64_t size, const PadFuncOptions::mode_t& mode) {
  if (holds<enumtype::kReplicate>(mode)) return std::clamp<int64_t>(position, 0, size - 1);
  if (holds<enumtype::kCircular>(mode)) return (position + size) % size;
  return position < 0 ? -position : position >= size ? 2 * (size - 1) - position : position;
}

Tensor pad_dimension(const Tensor& input, int64_t dim, int64_t before, int64_t after, const PadFuncOptions& o) {
  const int64_t size = input.size(dim);
  const int64_t reach = holds<enumtype::kReflect>(o.mode()) ? size - 1 : size;
  RUSH_CHECK_VALUE(before >= 0 && after >= 0, "pad: only a constant can be cut, got ", o.pad());
  RUSH_CHECK_VALUE(size > 0 && (holds<enumtype::kReplicate>(o.mode()) || std::max(before, after) <= reach),
                   "pad: ", o.pad(), " is too much for dimension ", dim, " of shape ", input.sizes());
  std::vector<int64_t> sources;
  for (int64_t i = -before; i < size + after; ++i) sources.push_back(source(i, size, o.mode()));
  return input.index_select(dim, tensor(ArrayRef<int64_t>(sources)).to(input.device()));
}

}  // namespace

Tensor pad(const Tensor& input, const PadFuncOptions& o) {
  const auto dims = static_cast<int64_t>(o.pad().size() / 2);
  RUSH_CHECK_VALUE(o.pad().size() % 2 == 0 && dims <= input.dim(), "pad: expected two numbers for each of at most ",
                   input.dim(), " dimensions, got ", o.pad());
  if (holds<enumtype::kConstant>(o.mode())) return constant_pad_nd(input, o.pad(), o.value());
  Tensor padded = input;
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t before = o.pad()[static_cast<size_t>(2 * i)], after = o.pad()[static_cast<size_t>(2 * i + 1)];
    if (before != 0 || after != 0) padded = pad_dimension(padded, input.dim() - 1 - i, before, after, o);
  }
  return padded;
}

}  // namespace rush::nn::functional
