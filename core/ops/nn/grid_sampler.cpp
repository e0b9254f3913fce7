#include "core/ops/nn/grid_sampler.h"

#include <array>

#include "core/ops/basic.h"
#include "core/ops/factory/range.h"
#include "core/ops/register.h"
#include "core/ops/view/copy.h"

namespace rush {

namespace native {

namespace {

// Note [Grid sampling from public operators]
// A sample is a sum over the pixels around its point, of a weight that depends on the point smoothly, times the pixel.
// Kernels compute it, and its gradients. Written with operators that have derivatives, for every interpolation, padding
// and number of dimensions at once, it is as often differentiable as they are: second derivatives go by them.

struct Sampler {
  Tensor pixels;             // (N, C, all pixels)
  std::vector<Tensor> axes;  // the grid's coordinate along each dimension of the image, in its order: (N, points)
  std::vector<int64_t> sizes;
  GridPadding padding;
  bool align_corners;
};

// What a call samples. Throws unless its arguments fit.
GridGeometry make_geometry(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                           bool align_corners, int dims, const char* op) {
  RUSH_CHECK_VALUE(input.dim() == dims + 2 && grid.dim() == dims + 2, op, ": expected an input and a grid of ",
                   dims + 2, " dimensions, got shapes ", input.sizes(), " and ", grid.sizes());
  RUSH_CHECK_VALUE(input.size(0) == grid.size(0), op, ": the input has ", input.size(0), " images, the grid ",
                   grid.size(0));
  RUSH_CHECK_VALUE(grid.size(-1) == input.dim() - 2, op, ": the grid's points have ", grid.size(-1),
                   " coordinates, the images ", input.dim() - 2, " dimensions");
  RUSH_CHECK_TYPE(input.scalar_type() == grid.scalar_type() && input.is_floating_point(), op,
                  ": expected input and grid of one floating point dtype, got ", input.scalar_type(), " and ",
                  grid.scalar_type());
  RUSH_CHECK_VALUE(input.device() == grid.device(), op, ": the input is on ", input.device(), ", the grid on ",
                   grid.device());
  RUSH_CHECK_VALUE(interpolation_mode >= 0 && interpolation_mode <= 2, op, ": unknown interpolation mode ",
                   interpolation_mode);
  RUSH_CHECK_VALUE(padding_mode >= 0 && padding_mode <= 2, op, ": unknown padding mode ", padding_mode);
  const auto interpolation = static_cast<GridInterpolation>(interpolation_mode);
  RUSH_CHECK_VALUE(interpolation != GridInterpolation::Bicubic || dims == 2, op,
                   ": bicubic needs images of two dimensions, got shape ", input.sizes());
  GridGeometry g{
      interpolation, static_cast<GridPadding>(padding_mode), align_corners, dims, input.size(0), input.size(1), 1,
      {1, 1, 1}};
  for (int d = 0; d < dims; ++d) {
    RUSH_CHECK_VALUE(input.size(d + 2) > 0, op, ": expected images with pixels, got shape ", input.sizes());
    g.size[d] = input.size(d + 2);
    g.points *= grid.size(d + 1);
  }
  return g;
}

// From [-1, 1] to pixels.
Tensor to_pixels(const Tensor& x, int64_t size, bool align_corners) {
  const auto pixels = static_cast<double>(size);
  return align_corners ? (x + 1) * ((pixels - 1) / 2) : (x + 1) * (pixels / 2) - 0.5;
}

// Into [0, size - 1]. At and beyond the ends the result is constant, and so has no gradient; NaN becomes 0.
Tensor clip(const Tensor& x, int64_t size) {
  const Scalar last(size - 1);
  const Tensor below_end = where(x < last, x, last);
  return where(below_end > 0, below_end, 0);
}

// Reflected at `low` and `high`, given as their doubles, which may lie between pixels, until it is between them.
Tensor reflect(const Tensor& x, int64_t twice_low, int64_t twice_high) {
  if (twice_low == twice_high) return where(x == x, x * 0, 0);
  const double low = static_cast<double>(twice_low) / 2;
  const double span = static_cast<double>(twice_high - twice_low) / 2;
  const Tensor away = (x - low).abs();
  const Tensor flips = (away / span).floor().detach();
  const Tensor rest = away - flips * span;
  const Tensor even = flips - (flips / 2).floor() * 2 == 0;
  return where(even, rest + low, span + low - rest);
}

Tensor pad(const Tensor& x, int64_t size, const Sampler& s) {
  switch (s.padding) {
    case GridPadding::Zeros: return x;
    case GridPadding::Border: return clip(x, size);
    case GridPadding::Reflection:
      return clip(s.align_corners ? reflect(x, 0, 2 * (size - 1)) : reflect(x, -1, 2 * size - 1), size);
  }
  return x;
}

// One pixel that a sample takes part of, along one dimension: its whole coordinate and its weight.
struct Tap {
  Tensor at, weight;
};

// The sum over all combinations of one tap of each dimension: the product of their weights times the pixel.
Tensor sum_taps(const Sampler& s, const std::vector<std::vector<Tap>>& taps) {
  Tensor sum;
  std::vector<size_t> choice(taps.size(), 0);
  for (bool more = true; more;) {
    Tensor weight, index, inside;
    for (size_t d = 0; d < taps.size(); ++d) {
      const Tap& tap = taps[d][choice[d]];
      const Tensor in_range = logical_and(tap.at >= 0, tap.at <= s.sizes[d] - 1);
      const Tensor whole = where(in_range, tap.at.detach(), 0).to(kInt64);
      index = d == 0 ? whole : index * s.sizes[d] + whole;
      inside = d == 0 ? in_range : logical_and(inside, in_range);
      weight = d == 0 ? tap.weight : weight * tap.weight;
    }
    weight = where(inside, weight, 0).unsqueeze(1);  // (N, 1, points)
    const Tensor spread = index.unsqueeze(1).expand({s.pixels.size(0), s.pixels.size(1), index.size(1)});
    const Tensor part = gather(s.pixels, 2, spread) * weight;
    sum = sum.defined() ? sum + part : part;
    // The last dimension turns fastest.
    more = false;
    for (size_t d = taps.size(); d-- > 0 && !more;) {
      more = ++choice[d] < taps[d].size();
      if (!more) choice[d] = 0;
    }
  }
  return sum;
}

// The taps along dimension d of the image.
std::vector<Tap> linear_taps(const Sampler& s, size_t d) {
  const Tensor x = pad(to_pixels(s.axes[d], s.sizes[d], s.align_corners), s.sizes[d], s);
  const Tensor first = x.floor().detach(), past = x - first;
  return {{first, 1 - past}, {first + 1, past}};
}

// To the nearest pixel, the even one of two. Its weight is 1, but comes from the point: it has a gradient, of zero.
std::vector<Tap> nearest_taps(const Sampler& s, size_t d) {
  const Tensor x = pad(to_pixels(s.axes[d], s.sizes[d], s.align_corners), s.sizes[d], s).round();
  return {{x, x - x.detach() + 1}};
}

// Keys' cubic convolution with a = -3/4 ("Cubic convolution interpolation for digital image processing", 1981), at
// distances up to 1 and from 1 to 2.
Tensor cubic_near(const Tensor& x) { return (x * 1.25 - 2.25) * x * x + 1; }
Tensor cubic_far(const Tensor& x) { return ((x * -0.75 + 3.75) * x - 6) * x + 3; }

std::vector<Tap> cubic_taps(const Sampler& s, size_t d) {
  const Tensor x = to_pixels(s.axes[d], s.sizes[d], s.align_corners);
  const Tensor first = x.floor().detach(), past = x - first;
  const auto at = [&](int64_t step) { return pad(first + step, s.sizes[d], s); };
  return {{at(-1), cubic_far(past + 1)},
          {at(0), cubic_near(past)},
          {at(1), cubic_near(1 - past)},
          {at(2), cubic_far(2 - past)}};
}

// (N, C, the grid's points)
DimVector output_sizes(const Tensor& input, const Tensor& grid) {
  DimVector sizes(grid.sizes().slice(0, grid.sizes().size() - 1));
  sizes.insert(sizes.begin() + 1, input.size(1));
  return sizes;
}

template <int dims>
Tensor grid_sampler_of(const Tensor& input, const Tensor& grid, int64_t interpolation, int64_t padding, bool align) {
  const GridGeometry g = make_geometry(input, grid, interpolation, padding, align, dims,
                                       dims == 2 ? "grid_sampler_2d" : "grid_sampler_3d");
  const Tensor out = detail::empty_contiguous(output_sizes(input, grid), input.scalar_type(), input.device());
  if (out.numel() > 0) kernels::grid_sampler(out.device().type, out, contiguous(input), contiguous(grid), g);
  return out;
}

template <int dims>
std::tuple<Tensor, Tensor> grid_sampler_backward_of(const Tensor& grad, const Tensor& input, const Tensor& grid,
                                                    int64_t interpolation, int64_t padding, bool align,
                                                    std::array<bool, 2> mask) {
  const char* op = dims == 2 ? "grid_sampler_2d_backward" : "grid_sampler_3d_backward";
  const GridGeometry g = make_geometry(input, grid, interpolation, padding, align, dims, op);
  const DimVector sizes = output_sizes(input, grid);
  RUSH_CHECK_VALUE(grad.sizes() == IntArrayRef(sizes) && grad.scalar_type() == input.scalar_type() &&
                       grad.device() == input.device(),
                   op, ": grad_output is ", grad.scalar_type(), " of shape ", grad.sizes(), " on ", grad.device(),
                   ", expected ", input.scalar_type(), " of shape ", sizes, " on ", input.device());
  const auto gradient_of = [](const Tensor& x, bool wanted) {
    return wanted ? detail::empty_contiguous(x.sizes(), x.scalar_type(), x.device()) : Tensor();
  };
  const Tensor grad_input = gradient_of(input, mask[0]), grad_grid = gradient_of(grid, mask[1]);
  if (mask[0] || mask[1]) {
    kernels::grid_sampler_backward(grad.device().type, grad_input, grad_grid, contiguous(grad), contiguous(input),
                                   contiguous(grid), g);
  }
  return {grad_input, grad_grid};
}

Tensor grid_sampler(const Tensor& input, const Tensor& grid, int64_t interpolation, int64_t padding, bool align) {
  const auto& op = input.dim() == 5 ? ops::grid_sampler_3d : ops::grid_sampler_2d;
  return op(input, grid, interpolation, padding, align);
}

// The coordinates of `count` pixels from -1 to 1.
Tensor pixel_places(int64_t count, bool align_corners, const TensorOptions& options) {
  if (count == 1) return zeros({1}, options);
  const Tensor places = linspace(-1, 1, count, options);
  return align_corners ? places : places * (count - 1) / count;
}

Tensor affine_grid_generator(const Tensor& theta, IntArrayRef size, bool align_corners) {
  const char* op = "affine_grid_generator";
  RUSH_CHECK_VALUE(size.size() == 4 || size.size() == 5, op, ": expected 4 or 5 sizes, got ", size);
  for (const int64_t s : size) RUSH_CHECK_VALUE(s > 0, op, ": sizes must be positive, got ", size);
  RUSH_CHECK_TYPE(theta.is_floating_point(), op, ": expected theta of a floating point dtype, got ",
                  theta.scalar_type());
  const auto dims = static_cast<int64_t>(size.size()) - 2;
  RUSH_CHECK_VALUE(theta.sizes() == IntArrayRef({size[0], dims, dims + 1}), op, ": expected theta of shape ",
                   DimVector{size[0], dims, dims + 1}, " for images of shape ", size, ", got ", theta.sizes());
  const IntArrayRef spatial = size.slice(2);
  std::vector<Tensor> places;  // x, y and perhaps z of each pixel, then 1
  for (int64_t d = dims - 1; d >= 0; --d) {
    DimVector along(spatial.size(), 1);
    along[static_cast<size_t>(d)] = -1;
    places.push_back(
        pixel_places(spatial[static_cast<size_t>(d)], align_corners, theta.options()).view(along).expand(spatial));
  }
  places.push_back(ones(spatial, theta.options()));
  const Tensor points = stack(places, -1).view({1, -1, dims + 1}).expand({size[0], -1, dims + 1});
  DimVector sizes(spatial);
  sizes.insert(sizes.begin(), size[0]);
  sizes.push_back(dims);
  return points.bmm(theta.transpose(1, 2)).view(sizes);
}

}  // namespace

}  // namespace native

Tensor detail::grid_sampler_by_operators(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                                         int64_t padding_mode, bool align_corners) {
  const int64_t dims = input.dim() - 2;
  native::Sampler s{input.flatten(2), {}, {}, static_cast<GridPadding>(padding_mode), align_corners};
  constexpr std::array kTaps = {native::linear_taps, native::nearest_taps, native::cubic_taps};  // of GridInterpolation
  std::vector<std::vector<native::Tap>> taps;
  for (int64_t d = 0; d < dims; ++d) {
    s.axes.push_back(grid.select(-1, dims - 1 - d).flatten(1));
    s.sizes.push_back(input.size(2 + d));
    taps.push_back(kTaps[static_cast<size_t>(interpolation_mode)](s, static_cast<size_t>(d)));
  }
  return native::sum_taps(s, taps).view(native::output_sizes(input, grid));
}

void register_grid_sampler_ops(Registry& r) {
  r.composite(ops::grid_sampler, native::grid_sampler);
  r.native(ops::grid_sampler_2d, native::grid_sampler_of<2>);
  r.native(ops::grid_sampler_3d, native::grid_sampler_of<3>);
  r.native(ops::grid_sampler_2d_backward, native::grid_sampler_backward_of<2>);
  r.native(ops::grid_sampler_3d_backward, native::grid_sampler_backward_of<3>);
  r.composite(ops::affine_grid_generator, native::affine_grid_generator);
}

}  // namespace rush
