#include "core/ops/nn/fractional_pool.h"

#include "core/ops/basic.h"
#include "core/ops/factory/range.h"
#include "core/ops/register.h"
#include "core/size_arithmetic.h"

namespace rush {

namespace native {

namespace {

struct Axis {
  int64_t input, output, kernel;
};

std::vector<Axis> checked_axes(const char* op, int64_t dims, const Tensor& self, IntArrayRef kernel_size,
                               IntArrayRef output_size, const Tensor& samples) {
  RUSH_CHECK_VALUE(self.dim() == dims + 1 || self.dim() == dims + 2, op, ": expected a tensor of ", dims + 1, " or ",
                   dims + 2, " dimensions, got shape ", self.sizes());
  RUSH_CHECK_TYPE(self.is_floating_point() && samples.scalar_type() == self.scalar_type(), op,
                  ": expected input and random_samples of one floating point dtype, got ", self.scalar_type(), " and ",
                  samples.scalar_type());
  const int64_t batch = self.dim() == dims + 2 ? self.size(0) : 1, channels = self.size(-dims - 1);
  RUSH_CHECK_VALUE(samples.sizes() == IntArrayRef({batch, channels, dims}), op, ": expected random_samples of shape ",
                   DimVector{batch, channels, dims}, ", got ", samples.sizes());
  const auto entry = [&](IntArrayRef list, int64_t d, const char* name) {
    RUSH_CHECK_VALUE(list.size() == 1 || static_cast<int64_t>(list.size()) == dims, op, ": ", name,
                     " must have one number or ", dims, ", got ", list);
    return list.size() == 1 ? list[0] : list[static_cast<size_t>(d)];
  };
  std::vector<Axis> axes;
  for (int64_t d = 0; d < dims; ++d) {
    const Axis a{self.size(d - dims), entry(output_size, d, "output_size"), entry(kernel_size, d, "kernel_size")};
    RUSH_CHECK_VALUE(a.output > 0 && a.kernel > 0, op, ": kernel_size and output_size must be positive, got ",
                     kernel_size, " and ", output_size);
    RUSH_CHECK_VALUE(a.output <= a.input - a.kernel + 1, op, ": ", a.output, " windows of ", a.kernel,
                     " do not fit an input of size ", a.input);
    axes.push_back(a);
  }
  return axes;
}

// Where the windows of each plane begin: (planes, 1) -> (planes, output), int64.
Tensor window_starts(const Axis& a, const Tensor& sample) {
  const Tensor last = full({sample.size(0), 1}, a.input - a.kernel, sample.options().dtype(kInt64));
  if (a.output == 1) return last;
  const double step = static_cast<double>(a.input - a.kernel) / static_cast<double>(a.output - 1);
  const Tensor whole = arange(0, a.output - 1, sample.options());
  const Tensor starts = ((whole + sample) * step).floor() - (sample * step).floor();
  return cat({starts.to(kInt64), last}, 1);
}

// Note [Fractional pooling from public operators]
// The windows differ from plane to plane. Their elements' positions are computed as one tensor, gathered by it, and the
// largest chosen: each has its derivative, so that this needs none.
template <int64_t dims>
PoolResult fractional_max_pool(const Tensor& self, IntArrayRef kernel_size, IntArrayRef output_size,
                               const Tensor& samples) {
  constexpr const char* op = dims == 2 ? "fractional_max_pool2d" : "fractional_max_pool3d";
  const std::vector<Axis> axes = checked_axes(op, dims, self, kernel_size, output_size, samples);
  const int64_t planes = samples.size(0) * samples.size(1);
  const Tensor by_plane = samples.detach().reshape({planes, dims});
  Tensor positions;  // (planes, outputs..., kernels...)
  int64_t outputs = 1, elements = 1, plane = 1;
  DimVector sizes(self.sizes());
  for (int64_t d = 0; d < dims; ++d) {
    const Axis& a = axes[static_cast<size_t>(d)];
    const Tensor sample = by_plane.narrow(1, dims == 2 ? 1 - d : d, 1);
    DimVector starts(static_cast<size_t>(2 * dims + 1), 1), steps(starts);
    starts[0] = planes;
    starts[static_cast<size_t>(1 + d)] = a.output;
    steps[static_cast<size_t>(1 + dims + d)] = a.kernel;
    const Tensor along =
        window_starts(a, sample).view(starts) + arange(0, a.kernel, sample.options().dtype(kInt64)).view(steps);
    positions = d == 0 ? along : positions * a.input + along;
    outputs = multiply_sizes(op, outputs, a.output);
    elements = multiply_sizes(op, elements, a.kernel);
    plane = multiply_sizes(op, plane, a.input);
    sizes[sizes.size() - static_cast<size_t>(dims - d)] = a.output;
  }
  positions = positions.reshape({planes, multiply_sizes(op, outputs, elements)});
  const Tensor windows = self.reshape({planes, plane}).gather(1, positions).view({planes, outputs, elements});
  const auto [largest, which] = windows.max(-1, /*keepdim=*/true);
  const Tensor where = positions.view({planes, outputs, elements}).gather(2, which);
  return {largest.view(sizes), where.view(sizes)};
}

}  // namespace

}  // namespace native

void register_fractional_pool_ops(Registry& r) {
  r.composite(ops::fractional_max_pool2d, native::fractional_max_pool<2>);
  r.composite(ops::fractional_max_pool3d, native::fractional_max_pool<3>);
}

}  // namespace rush
