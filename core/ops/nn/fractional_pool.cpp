#include "core/ops/nn/fractional_pool.h"

#include "core/ops/basic.h"
#include "core/ops/factory/factories.h"
#include "core/ops/register.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

namespace {

const char* name_of(int64_t dims) { return dims == 2 ? "fractional_max_pool2d" : "fractional_max_pool3d"; }

FractionalGeometry checked_geometry(int64_t dims, const Tensor& self, IntArrayRef kernel_size, IntArrayRef output_size,
                                    const Tensor& samples) {
  const char* op = name_of(dims);
  RUSH_CHECK_VALUE(dims == 2 || dims == 3, op, ": expected 2 or 3 pooled dimensions, got ", dims);
  RUSH_CHECK_VALUE(self.dim() == dims + 1 || self.dim() == dims + 2, op, ": expected a tensor of ", dims + 1, " or ",
                   dims + 2, " dimensions, got shape ", self.sizes());
  RUSH_CHECK_TYPE(self.is_floating_point() && samples.scalar_type() == self.scalar_type(), op,
                  ": expected input and random_samples of one floating point dtype, got ", self.scalar_type(), " and ",
                  samples.scalar_type());
  RUSH_CHECK_VALUE(samples.device() == self.device(), op, ": the input is on ", self.device(), ", random_samples on ",
                   samples.device());
  const int64_t batch = self.dim() == dims + 2 ? self.size(0) : 1, channels = self.size(-dims - 1);
  RUSH_CHECK_VALUE(
      samples.dim() == 3 && samples.size(0) >= batch && samples.size(1) == channels && samples.size(2) == dims, op,
      ": expected random_samples of shape ", DimVector{batch, channels, dims}, ", or for a larger batch, got ",
      samples.sizes());
  RUSH_CHECK_VALUE(channels > 0, op, ": only the batch may be empty, got shape ", self.sizes());
  const auto entry = [&](IntArrayRef list, int64_t d, const char* name) {
    RUSH_CHECK_VALUE(list.size() == 1 || static_cast<int64_t>(list.size()) == dims, op, ": ", name,
                     " must have one number or ", dims, ", got ", list);
    return list.size() == 1 ? list[0] : list[static_cast<size_t>(d)];
  };
  FractionalGeometry g{multiply_sizes(op, batch, channels), dims, {}};
  for (int64_t d = 0; d < dims; ++d) {
    const FractionalAxis a{self.size(d - dims), entry(output_size, d, "output_size"),
                           entry(kernel_size, d, "kernel_size"), dims == 2 ? 1 - d : d};
    RUSH_CHECK_VALUE(a.output > 0 && a.kernel > 0, op, ": kernel_size and output_size must be positive, got ",
                     kernel_size, " and ", output_size);
    RUSH_CHECK_VALUE(a.output <= a.input - a.kernel + 1, op, ": ", a.output, " windows of ", a.kernel,
                     " do not fit an input of size ", a.input);
    g.axis[3 - dims + d] = a;
  }
  return g;
}

Tensor fractional_max_pool_indices(const Tensor& self, int64_t dims, IntArrayRef kernel_size, IntArrayRef output_size,
                                   const Tensor& samples) {
  const FractionalGeometry g = checked_geometry(dims, self, kernel_size, output_size, samples);
  DimVector sizes(self.sizes());
  for (int64_t d = 0; d < dims; ++d) sizes[sizes.size() - static_cast<size_t>(dims - d)] = g.axis[3 - dims + d].output;
  const Tensor indices = detail::empty_contiguous(sizes, kInt64, self.device());
  if (indices.numel() > 0) {
    kernels::fractional_max_pool(self.device().type, indices, contiguous(self), contiguous(samples), g);
  }
  return indices;
}

// The values are gathered, which has a derivative.
template <int64_t dims>
PoolResult fractional_max_pool(const Tensor& self, IntArrayRef kernel_size, IntArrayRef output_size,
                               const Tensor& samples) {
  const Tensor input = self.contiguous();
  const Tensor indices = ops::fractional_max_pool_indices(input, dims, kernel_size, output_size, samples);
  return {input.flatten(-dims).gather(-1, indices.flatten(-dims)).view(indices.sizes()), indices};
}

}  // namespace

}  // namespace native

void register_fractional_pool_ops(Registry& r) {
  r.native(ops::fractional_max_pool_indices, native::fractional_max_pool_indices);
  r.composite(ops::fractional_max_pool2d, native::fractional_max_pool<2>);
  r.composite(ops::fractional_max_pool3d, native::fractional_max_pool<3>);
}

}  // namespace rush
