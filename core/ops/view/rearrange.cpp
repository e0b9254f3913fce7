#include "core/ops/view/rearrange.h"

#include <algorithm>
#include <numeric>

#include "core/ops/register.h"
#include "core/ops/view/copy.h"
#include "core/ops/view/view.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

// The result lies in memory as a dense tensor does. The kernel sees both with their dimensions in memory's order, in
// which the result is row-major.
static Tensor flip(const Tensor& self, IntArrayRef dims) {
  const DimVector flipped = wrap_dims(dims, self.dim(), "flip");
  const Tensor out = native::empty_for_copy(self, self.scalar_type(), self.device(), MemoryFormat::Preserve);
  DimVector order(static_cast<size_t>(self.dim()), 0);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return out.stride(a) > out.stride(b); });
  DimVector places;
  for (size_t i = 0; i < order.size(); ++i) {
    if (std::find(flipped.begin(), flipped.end(), order[i]) != flipped.end()) places.push_back(static_cast<int64_t>(i));
  }
  kernels::flip(self.device().type, permuted(out, order), permuted(self, order), places);
  return out;
}

static Tensor fliplr(const Tensor& self) {
  RUSH_CHECK_VALUE(self.dim() >= 2, "fliplr: expected at least 2 dimensions, got sizes ", self.sizes());
  return ops::flip(self, {1});
}

static Tensor flipud(const Tensor& self) {
  RUSH_CHECK_VALUE(self.dim() >= 1, "flipud: expected at least 1 dimension, got sizes ", self.sizes());
  return ops::flip(self, {0});
}

static Tensor roll_one(const Tensor& self, int64_t shift, int64_t dim) {
  const Tensor out = detail::empty_contiguous(self.sizes(), self.scalar_type(), self.device());
  const int64_t size = self.sizes()[dim];
  if (size == 0) return out;
  const int64_t beyond = shift % size, start = beyond < 0 ? beyond + size : beyond;  // where the first element goes
  Tensor head = part(out, dim, 0, start), tail = part(out, dim, start, size - start);
  native::copy_(head, part(self, dim, size - start, start), false);
  native::copy_(tail, part(self, dim, 0, size - start), false);
  return out;
}

static Tensor roll(const Tensor& self, IntArrayRef shifts, IntArrayRef dims) {
  RUSH_CHECK_VALUE(!shifts.empty(), "roll: expected at least one shift");
  if (dims.empty()) {
    RUSH_CHECK_VALUE(shifts.size() == 1, "roll: got ", shifts.size(), " shifts and no dimensions");
    Tensor flat = native::contiguous(self);
    if (self.dim() != 1) {
      flat = detail::make_alias(flat);
      flat.impl()->set_geometry(self.numel(), 1, flat.storage_offset());
    }
    const Tensor rolled = roll_one(flat, shifts[0], 0);
    rolled.impl()->set_contiguous(self.sizes());
    return rolled;
  }
  RUSH_CHECK_VALUE(shifts.size() == dims.size(), "roll: got ", shifts.size(), " shifts for ", dims.size(),
                   " dimensions");
  RUSH_CHECK_INDEX(self.dim() > 0, "roll: a 0-dimensional tensor has no dimension to roll along");
  Tensor rolled = self;
  for (size_t i = 0; i < dims.size(); ++i) rolled = roll_one(rolled, shifts[i], wrap_dim(dims[i], self.dim(), "roll"));
  return rolled;
}

static Tensor rot90(const Tensor& self, int64_t k, IntArrayRef dims) {
  RUSH_CHECK_VALUE(dims.size() == 2, "rot90: expected 2 dimensions, got ", dims);
  RUSH_CHECK_VALUE(self.dim() >= 2, "rot90: expected at least 2 dimensions, got sizes ", self.sizes());
  const DimVector plane = wrap_dims(dims, self.dim(), "rot90");
  switch ((k % 4 + 4) % 4) {
    case 1: return ops::flip(self, plane[1]).transpose(plane[0], plane[1]);
    case 2: return ops::flip(self, plane);
    case 3: return ops::flip(self, plane[0]).transpose(plane[0], plane[1]);
    default: return self.clone(MemoryFormat::Contiguous);
  }
}

// The sizes before the last three, then `last`.
static DimVector with_last_dims(const Tensor& self, std::initializer_list<int64_t> last) {
  DimVector sizes(self.sizes().slice(0, self.sizes().size() - 3));
  for (int64_t size : last) sizes.push_back(size);
  return sizes;
}

// Exchanges dimensions by their numbers behind the first `lead`.
static Tensor permute_last(const Tensor& self, std::initializer_list<int64_t> order) {
  const int64_t lead = self.dim() - static_cast<int64_t>(order.size());
  DimVector dims;
  for (int64_t d = 0; d < lead; ++d) dims.push_back(d);
  for (int64_t d : order) dims.push_back(lead + d);
  return self.permute(dims);
}

static Tensor pixel_shuffle(const Tensor& self, int64_t factor) {
  RUSH_CHECK_VALUE(self.dim() >= 3, "pixel_shuffle: expected at least 3 dimensions, got sizes ", self.sizes());
  RUSH_CHECK_VALUE(factor > 0 && factor < (int64_t{1} << 31), "pixel_shuffle: the factor must be positive, got ",
                   factor);
  const int64_t channels = self.size(-3), height = self.size(-2), width = self.size(-1);
  RUSH_CHECK_VALUE(channels % (factor * factor) == 0, "pixel_shuffle: ", channels, " channels do not divide by ",
                   factor, " squared");
  const int64_t out = channels / (factor * factor);
  // (C, r, r, H, W) -> (C, H, r, W, r)
  const Tensor apart = self.reshape(with_last_dims(self, {out, factor, factor, height, width}));
  const int64_t tall = multiply_sizes("pixel_shuffle", height, factor);
  const int64_t wide = multiply_sizes("pixel_shuffle", width, factor);
  const Tensor shuffled = permute_last(apart, {0, 3, 1, 4, 2}).clone(MemoryFormat::Contiguous);
  return shuffled.view(with_last_dims(self, {out, tall, wide}));
}

static Tensor pixel_unshuffle(const Tensor& self, int64_t factor) {
  RUSH_CHECK_VALUE(self.dim() >= 3, "pixel_unshuffle: expected at least 3 dimensions, got sizes ", self.sizes());
  RUSH_CHECK_VALUE(factor > 0 && factor < (int64_t{1} << 31), "pixel_unshuffle: the factor must be positive, got ",
                   factor);
  const int64_t channels = self.size(-3), height = self.size(-2), width = self.size(-1);
  RUSH_CHECK_VALUE(height % factor == 0 && width % factor == 0, "pixel_unshuffle: height ", height, " and width ",
                   width, " do not divide by ", factor);
  // (C, H, r, W, r) -> (C, r, r, H, W)
  const Tensor apart = self.reshape(with_last_dims(self, {channels, height / factor, factor, width / factor, factor}));
  const Tensor shuffled = permute_last(apart, {0, 2, 4, 1, 3}).clone(MemoryFormat::Contiguous);
  return shuffled.view(with_last_dims(self, {channels * factor * factor, height / factor, width / factor}));
}

static Tensor channel_shuffle(const Tensor& self, int64_t groups) {
  RUSH_CHECK_VALUE(self.dim() > 2, "channel_shuffle: expected more than 2 dimensions, got sizes ", self.sizes());
  RUSH_CHECK_VALUE(groups > 0 && self.sizes()[1] % groups == 0, "channel_shuffle: ", self.sizes()[1],
                   " channels do not divide into ", groups, " groups");
  return self.unflatten(1, {groups, self.sizes()[1] / groups}).transpose(1, 2).contiguous().reshape(self.sizes());
}

}  // namespace native

void register_rearrange_ops(Registry& r) {
  r.native(ops::flip, native::flip);
  r.composite(ops::fliplr, native::fliplr);
  r.composite(ops::flipud, native::flipud);
  r.native(ops::roll, native::roll);
  r.composite(ops::rot90, native::rot90);
  r.composite(ops::pixel_shuffle, native::pixel_shuffle);
  r.composite(ops::pixel_unshuffle, native::pixel_unshuffle);
  r.composite(ops::channel_shuffle, native::channel_shuffle);
}

Tensor Tensor::flip(IntArrayRef dims) const { return ops::flip(*this, dims); }
Tensor Tensor::fliplr() const { return ops::fliplr(*this); }
Tensor Tensor::flipud() const { return ops::flipud(*this); }
Tensor Tensor::roll(IntArrayRef shifts, IntArrayRef dims) const { return ops::roll(*this, shifts, dims); }
Tensor Tensor::rot90(int64_t k, IntArrayRef dims) const { return ops::rot90(*this, k, dims); }

}  // namespace rush
