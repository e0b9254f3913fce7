#include "core/ops/view/pad.h"

#include <algorithm>
#include <limits>

#include "core/ops/basic.h"
#include "core/ops/register.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

// The sizes after padding. Throws ValueError when `pad` has the wrong length or cuts more than there is, unless the
// other end is padded first.
static DimVector padded_sizes(const char* op, IntArrayRef sizes, IntArrayRef pad, bool pads_first = false) {
  RUSH_CHECK_VALUE(pad.size() % 2 == 0, op, ": the padding must come in pairs, got ", pad);
  RUSH_CHECK_VALUE(pad.size() <= 2 * sizes.size(), op, ": padding ", pad, " is for more dimensions than sizes ", sizes,
                   " has");
  DimVector padded(sizes);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    int64_t& size = padded[sizes.size() - 1 - i];
    const int64_t most = pads_first ? std::numeric_limits<int64_t>::max() / 2 : size;
    const bool cuts_too_much = pad[2 * i] < -most || pad[2 * i + 1] < -most;
    if (!cuts_too_much) size = add_sizes(op, add_sizes(op, size, pad[2 * i]), pad[2 * i + 1]);
    RUSH_CHECK_VALUE(!cuts_too_much && size >= 0, op, ": padding ", pad, " leaves nothing of sizes ", sizes);
  }
  return padded;
}

static Tensor constant_pad_nd(const Tensor& self, IntArrayRef pad, const Scalar& value) {
  const DimVector sizes = padded_sizes("constant_pad_nd", self.sizes(), pad);
  const Tensor out = detail::empty_format(sizes, self.scalar_type(), self.device(), self.suggest_memory_format());
  auto it = TensorIterator::nullary("constant_pad_nd", out);
  kernels::fill(it.device_type(), it, value);
  // What both have in common, in each.
  Tensor from = self, to = out;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t dim = self.dim() - 1 - static_cast<int64_t>(i), before = pad[2 * i], after = pad[2 * i + 1];
    const int64_t cut = std::max<int64_t>(-before, 0);
    const int64_t length = self.sizes()[dim] - cut - std::max<int64_t>(-after, 0);
    if (length <= 0) return out;
    from = part(from, dim, cut, length);
    to = part(to, dim, std::max<int64_t>(before, 0), length);
  }
  native::copy_(to, from, false);
  return out;
}

// ---- reflect and replicate ----

struct BorderPad {
  const char* op;
  int64_t dims;
  PadMode mode;
};

static DimVector check_border_pad(const BorderPad& kind, const Tensor& self, IntArrayRef pad) {
  RUSH_CHECK_VALUE(static_cast<int64_t>(pad.size()) == 2 * kind.dims, kind.op, ": expected ", 2 * kind.dims,
                   " numbers of padding, got ", pad);
  RUSH_CHECK_VALUE(self.dim() == kind.dims + 1 || self.dim() == kind.dims + 2, kind.op, ": expected ", kind.dims + 1,
                   " or ", kind.dims + 2, " dimensions, got sizes ", self.sizes());
  const DimVector sizes = padded_sizes(kind.op, self.sizes(), pad, kind.mode == PadMode::Replicate);
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t size = self.sizes()[self.sizes().size() - 1 - i], padded = sizes[sizes.size() - 1 - i];
    RUSH_CHECK_VALUE(size > 0 && padded > 0, kind.op, ": padding ", pad, " of sizes ", self.sizes(),
                     " leaves or finds an empty dimension");
    RUSH_CHECK_VALUE(kind.mode != PadMode::Reflect || (pad[2 * i] < size && pad[2 * i + 1] < size), kind.op,
                     ": cannot reflect ", pad, " elements of sizes ", self.sizes(),
                     ": the padding must be less than the dimension");
  }
  return sizes;
}

template <const BorderPad& kind>
static Tensor border_pad(const Tensor& self, IntArrayRef pad) {
  const DimVector sizes = check_border_pad(kind, self, pad);
  const bool channels_last = kind.dims == 2 && self.suggest_memory_format() == MemoryFormat::ChannelsLast;
  const Tensor out = detail::empty_format(sizes, self.scalar_type(), self.device(),
                                          channels_last ? MemoryFormat::ChannelsLast : MemoryFormat::Contiguous);
  // A dimension that is padded without end goes well with an empty one.
  if (out.numel() == 0) return out;
  const auto run = [&](const Tensor& to, const Tensor& from, IntArrayRef padding) {
    kernels::border_pad(self.device().type, to, from, padding, kind.mode);
  };
  if (channels_last) {
    // (N, C, H, W) -> (N, H, W, C), whose last dimension is not padded.
    constexpr int64_t order[] = {0, 2, 3, 1};
    DimVector padding(2, 0);
    for (int64_t number : pad) padding.push_back(number);
    run(permuted(out, order), permuted(self, order), padding);
  } else {
    run(out, native::contiguous(self), pad);
  }
  return out;
}

template <const BorderPad& kind>
static Tensor border_pad_backward(const Tensor& grad_output, const Tensor& self, IntArrayRef pad) {
  const DimVector sizes = check_border_pad(kind, self, pad);
  RUSH_CHECK_VALUE(grad_output.sizes() == IntArrayRef(sizes), kind.op, "_backward: expected a gradient of shape ",
                   sizes, ", got ", grad_output.sizes());
  // Sums of many 16-bit numbers are made in float.
  const ScalarType dtype = grad_output.scalar_type();
  const bool reduced = dtype == kFloat16 || dtype == kBFloat16;
  const Tensor grad = native::contiguous(reduced ? to_dtype(grad_output, kFloat32) : grad_output);
  const Tensor grad_input = detail::empty_contiguous(self.sizes(), grad.scalar_type(), grad.device());
  auto it = TensorIterator::nullary("zero_", grad_input);
  kernels::fill(it.device_type(), it, 0);
  if (grad.numel() > 0) kernels::border_pad_backward(grad.device().type, grad_input, grad, pad, kind.mode);
  return reduced ? to_dtype(grad_input, dtype) : grad_input;
}

// ---- circular ----

static Tensor _pad_circular(const Tensor& self, IntArrayRef pad) {
  padded_sizes("pad", self.sizes(), pad);
  Tensor result = self;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int64_t dim = self.dim() - 1 - static_cast<int64_t>(i), before = pad[2 * i], after = pad[2 * i + 1];
    const int64_t cut = std::max<int64_t>(-before, 0);
    const int64_t length = self.sizes()[dim] - cut - std::max<int64_t>(-after, 0);
    RUSH_CHECK_VALUE(before <= length && after <= length, "pad: circular padding ", pad,
                     " wraps more than once around ", self.sizes());
    const Tensor centre = ops::slice(result, dim, cut, cut + length, 1);
    std::vector<Tensor> parts;
    if (before > 0) parts.push_back(ops::slice(centre, dim, length - before, length, 1));
    parts.push_back(centre);
    if (after > 0) parts.push_back(ops::slice(centre, dim, 0, after, 1));
    result = ops::cat(parts, dim);
  }
  return result;
}

static Tensor pad(const Tensor& self, IntArrayRef pad, std::string_view mode, std::optional<double> value) {
  if (mode == "constant") return ops::constant_pad_nd(self, pad, value.value_or(0));
  RUSH_CHECK_VALUE(mode == "reflect" || mode == "replicate" || mode == "circular",
                   "pad: the mode must be constant, reflect, replicate or circular, got ", mode);
  RUSH_CHECK_VALUE(!value || *value == 0, "pad: mode ", mode, " takes no value");
  const size_t dims = pad.size() / 2, rank = self.sizes().size();
  RUSH_CHECK_NOT_IMPLEMENTED(pad.size() % 2 == 0 && dims >= 1 && dims <= 3 && (rank == dims + 1 || rank == dims + 2),
                             "pad: mode ", mode, " pads the last one to three of up to five dimensions, got padding ",
                             pad, " and sizes ", self.sizes());
  if (mode == "circular") return ops::_pad_circular(self, pad);
  static constexpr const PadOp* reflect[] = {&ops::reflection_pad1d, &ops::reflection_pad2d, &ops::reflection_pad3d};
  static constexpr const PadOp* replicate[] = {&ops::replication_pad1d, &ops::replication_pad2d,
                                               &ops::replication_pad3d};
  return (*(mode == "reflect" ? reflect : replicate)[dims - 1])(self, pad);
}

}  // namespace native

void register_pad_ops(Registry& r) {
  r.composite(ops::pad, native::pad);
  r.native(ops::constant_pad_nd, native::constant_pad_nd);
  r.composite(ops::_pad_circular, native::_pad_circular);
#define RUSH_BORDER_PAD(name, dims, mode)                                     \
  static constexpr native::BorderPad name##_kind{#name, dims, PadMode::mode}; \
  r.native(ops::name, native::border_pad<name##_kind>);                       \
  r.native(ops::name##_backward, native::border_pad_backward<name##_kind>);
  RUSH_BORDER_PAD(reflection_pad1d, 1, Reflect)
  RUSH_BORDER_PAD(reflection_pad2d, 2, Reflect)
  RUSH_BORDER_PAD(reflection_pad3d, 3, Reflect)
  RUSH_BORDER_PAD(replication_pad1d, 1, Replicate)
  RUSH_BORDER_PAD(replication_pad2d, 2, Replicate)
  RUSH_BORDER_PAD(replication_pad3d, 3, Replicate)
#undef RUSH_BORDER_PAD
}

}  // namespace rush
