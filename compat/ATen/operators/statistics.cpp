#include "ATen/operators/statistics.h"

#include <cmath>

namespace rush {
inline namespace aten {

Tensor nanmean(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> dtype) {
  RUSH_CHECK_TYPE(self.is_floating_point() || self.is_complex(), "nanmean: needs floating point, got ",
                  self.scalar_type());
  const Tensor count = self.detach().isnan().logical_not();
  const Tensor total = nansum(self, dim, keepdim, dtype);
  return total.div(dim ? count.sum(dim, keepdim) : count.sum(OptionalIntArrayRef(IntArrayRef()), keepdim));
}
Tensor cov(const Tensor& self, int64_t correction, const std::optional<Tensor>& fweights,
           const std::optional<Tensor>& aweights) {
  RUSH_CHECK_VALUE(self.dim() <= 2 && self.scalar_type() != kBool,
                   "cov: needs at most two dimensions and numbers, got ", self.dim(), " dimensions of ",
                   self.scalar_type());
  const Tensor in = self.dim() < 2 ? self.reshape({1, -1}) : self;
  const int64_t observations = in.size(1);
  for (const auto& given : {fweights, aweights}) {
    RUSH_CHECK_VALUE(!given || (given->dim() <= 1 && given->numel() == observations),
                     "cov: weights must be a vector of one for each of ", observations, " observations");
    RUSH_CHECK_VALUE(!given || given->numel() == 0 || given->min().item<double>() >= 0, "cov: a weight is negative");
  }
  RUSH_CHECK_TYPE(!fweights || (is_integral(fweights->scalar_type(), false)), "cov: fweights must be integers");
  RUSH_CHECK_TYPE(!aweights || aweights->is_floating_point(), "cov: aweights must be floating point");
  Tensor weights;
  if (fweights) weights = *fweights;
  if (aweights) weights = weights.defined() ? weights.mul(*aweights) : *aweights;
  const Tensor weight_sum =
      weights.defined() ? weights.sum() : scalar_tensor(observations, TensorOptions(kInt64).device(self.device()));
  const Tensor mean = weights.defined() ? in.mul(weights).sum(1).div(weight_sum) : in.sum(1).div(observations);
  // The sum of weights less what estimating the mean costs.
  Tensor norm = weight_sum.sub(correction);
  if (aweights && weights.defined() && correction != 0) {
    norm = weight_sum.sub(weights.mul(*aweights).sum().div(weight_sum).mul(correction));
  }
  const Tensor centred = in.sub(mean.unsqueeze(1));
  const Tensor weighted = weights.defined() ? centred.mul(weights) : centred;
  return centred.mm(weighted.t().conj()).div(norm.clamp_min(0)).squeeze();
}
Tensor corrcoef(const Tensor& self) {
  const Tensor c = cov(self);
  if (c.dim() == 0) return c.div(c);
  const Tensor diagonal = c.diag();
  const Tensor deviation = (c.is_complex() ? real(diagonal) : diagonal).sqrt();
  const Tensor scaled = c.div(deviation.unsqueeze(1)).div(deviation.unsqueeze(0));
  if (c.is_complex()) return make_complex(real(scaled).clamp(-1, 1), imag(scaled).clamp(-1, 1));
  return scaled.clamp(-1, 1);
}

// ---- integrals by the trapezoidal rule: sum of (y_i + y_(i+1)) / 2 (x_(i+1) - x_i) ----
namespace {
// The trapezoids' areas. The distances dx broadcast with y where that has one element less along `dim`.
template <class Distance>
Tensor trapezoids(const Tensor& y, const Distance& dx, int64_t dim) {
  RUSH_CHECK_TYPE(y.scalar_type() != kBool, "trapezoid: needs numbers, got bool");
  return y.slice(dim, 1).add(y.slice(dim, 0, -1)).mul(dx).div(2.0);
}
// The distances between neighbours in x; a vector x lies along `dim` of y.
Tensor distances(const Tensor& y, const Tensor& x, int64_t dim, const char* name) {
  RUSH_CHECK_TYPE(x.scalar_type() != kBool, name, ": needs numbers, got bool");
  if (x.dim() == 1) {
    RUSH_CHECK_VALUE(x.size(0) == y.size(dim), name, ": y has ", y.size(dim), " points and x ", x.size(0));
    std::vector<int64_t> sizes(static_cast<size_t>(y.dim()), 1);
    sizes[wrap_dim(dim, y.dim(), name)] = std::max<int64_t>(x.size(0) - 1, 0);
    return diff(x).view(sizes);
  }
  if (x.dim() >= y.dim()) return diff(x, 1, dim);
  std::vector<int64_t> sizes(static_cast<size_t>(y.dim() - x.dim()), 1);
  sizes.insert(sizes.end(), x.sizes().begin(), x.sizes().end());
  return diff(x.view(sizes), 1, dim);
}
Tensor no_points(const Tensor& y, int64_t dim) { return y.sum(dim).mul(0); }
}  // namespace

Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  dim = wrap_dim(dim, y.dim(), "trapezoid");
  if (y.size(dim) == 0) return no_points(y, dim);
  return trapezoids(y, distances(y, x, dim, "trapezoid"), dim).sum(dim);
}
Tensor trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  if (y.size(dim) == 0) return no_points(y, dim);
  return trapezoids(y, dx, dim).sum(dim);
}
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  dim = wrap_dim(dim, y.dim(), "cumulative_trapezoid");
  return trapezoids(y, distances(y, x, dim, "cumulative_trapezoid"), dim).cumsum(dim);
}
Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  return trapezoids(y, dx, dim).cumsum(dim);
}

// ---- derivatives by central differences ----
namespace {
// Along one dimension at the points 0, h, 2h, ...; at both ends by differences of first or second order.
Tensor uniform_gradient(const Tensor& self, int64_t dim, double h, int64_t edge_order) {
  const int64_t n = self.size(dim);
  const auto at = [&](int64_t i) { return self.narrow(dim, i, 1); };
  const Tensor middle = self.narrow(dim, 2, n - 2).sub(self.narrow(dim, 0, n - 2)).div(2 * h);
  const Tensor first = edge_order == 1 ? at(1).sub(at(0)).div(h) : at(1).mul(4).sub(at(0).mul(3)).sub(at(2)).div(2 * h);
  const Tensor last = edge_order == 1 ? at(n - 1).sub(at(n - 2)).div(h)
                                      : at(n - 1).mul(3).sub(at(n - 2).mul(4)).add(at(n - 3)).div(2 * h);
  return cat({first, middle, last}, dim);
}
// At the given points: the derivative of the parabola through three neighbours.
Tensor pointwise_gradient(const Tensor& self, int64_t dim, const Tensor& points, int64_t edge_order) {
  const int64_t n = self.size(dim);
  RUSH_CHECK_VALUE(points.dim() == 1 && points.size(0) == n, "gradient: needs the coordinates of ", n,
                   " points along dimension ", dim, ", got sizes ", points.sizes());
  std::vector<int64_t> shape(static_cast<size_t>(self.dim()), 1);
  shape[wrap_dim(dim, self.dim(), "gradient")] = -1;
  const Tensor h = diff(points).view(shape);  // n - 1 distances
  const Tensor slope = diff(self, 1, dim).div(h);
  const Tensor before = h.narrow(dim, 0, n - 2), after = h.narrow(dim, 1, n - 2);
  const Tensor left = slope.narrow(dim, 0, n - 2), right = slope.narrow(dim, 1, n - 2);
  const Tensor middle = left.mul(after).add(right.mul(before)).div(before.add(after));
  Tensor first = slope.narrow(dim, 0, 1), last = slope.narrow(dim, n - 2, 1);
  if (edge_order == 2) {
    const Tensor h0 = h.narrow(dim, 0, 1), h1 = h.narrow(dim, 1, 1);
    first = first.add(first.sub(slope.narrow(dim, 1, 1)).mul(h0).div(h0.add(h1)));
    const Tensor g0 = h.narrow(dim, n - 2, 1), g1 = h.narrow(dim, n - 3, 1);
    last = last.add(last.sub(slope.narrow(dim, n - 3, 1)).mul(g0).div(g0.add(g1)));
  }
  return cat({first, middle, last}, dim);
}
// `along(i, dim)` differentiates along the i-th of `dims`; an empty list means all.
template <class Along>
std::vector<Tensor> gradients(const Tensor& self, IntArrayRef dims, size_t spacings, int64_t edge_order, Along along) {
  RUSH_CHECK_VALUE(edge_order == 1 || edge_order == 2, "gradient: edge_order must be 1 or 2, got ", edge_order);
  const DimVector wrapped = wrap_dims(dims, self.dim(), "gradient", true);
  RUSH_CHECK_VALUE(spacings == 1 || spacings == wrapped.size(), "gradient: got ", spacings, " spacings for ",
                   wrapped.size(), " dimensions");
  std::vector<Tensor> results;
  for (size_t i = 0; i < wrapped.size(); ++i) {
    RUSH_CHECK_VALUE(self.size(wrapped[i]) >= edge_order + 1, "gradient: needs at least ", edge_order + 1,
                     " points along dimension ", wrapped[i], ", got ", self.size(wrapped[i]));
    results.push_back(along(spacings == 1 ? 0 : i, wrapped[i]));
  }
  return results;
}
std::vector<int64_t> one_or_all(std::optional<int64_t> dim) {
  return dim ? std::vector<int64_t>{*dim} : std::vector<int64_t>();
}
}  // namespace

std::vector<Tensor> gradient(const Tensor& self, ArrayRef<Scalar> spacing, IntArrayRef dim, int64_t edge_order) {
  return gradients(self, dim, spacing.size(), edge_order, [&](size_t i, int64_t along) {
    return uniform_gradient(self, along, spacing[i].to<double>(), edge_order);
  });
}
std::vector<Tensor> gradient(const Tensor& self, ArrayRef<Scalar> spacing, std::optional<int64_t> dim,
                             int64_t edge_order) {
  return gradient(self, spacing, IntArrayRef(one_or_all(dim)), edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, const Scalar& spacing, IntArrayRef dim, int64_t edge_order) {
  return gradient(self, ArrayRef<Scalar>(spacing), dim, edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, IntArrayRef dim, int64_t edge_order) {
  return gradient(self, Scalar(1), dim, edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, const std::optional<Scalar>& spacing, std::optional<int64_t> dim,
                             int64_t edge_order) {
  return gradient(self, spacing.value_or(1), IntArrayRef(one_or_all(dim)), edge_order);
}
std::vector<Tensor> gradient(const Tensor& self, TensorList spacing, IntArrayRef dim, int64_t edge_order) {
  return gradients(self, dim, spacing.size(), edge_order,
                   [&](size_t i, int64_t along) { return pointwise_gradient(self, along, spacing[i], edge_order); });
}
std::vector<Tensor> gradient(const Tensor& self, TensorList spacing, std::optional<int64_t> dim, int64_t edge_order) {
  return gradient(self, spacing, IntArrayRef(one_or_all(dim)), edge_order);
}
std::tuple<Tensor, Tensor> histogram(const Tensor& self, const Tensor& bins, const std::optional<Tensor>& weight,
                                     bool density) {
  RUSH_CHECK_VALUE(bins.dim() == 1 && bins.numel() > 0, "histogram: bins must be a vector of edges, got sizes ",
                   bins.sizes());
  const int64_t count = bins.numel() - 1;
  const Tensor values = self.detach().flatten();
  // Values below the first edge go to bin 0 of count + 2, those above the last, and NaN, to the last.
  Tensor bin = searchsorted(bins, values, false, true);
  bin = bin.sub(values.eq(bins[count]).to(kInt64)).masked_fill(values.isnan(), count + 1);
  const Tensor weights = weight ? weight->flatten() : ones_like(values);
  Tensor hist = zeros({count + 2}, values.options()).index_add(0, bin, weights).narrow(0, 1, count);
  if (density) hist = hist.div(hist.sum()).div(diff(bins));
  return {hist.clone(), bins.clone()};
}
std::tuple<Tensor, Tensor> histogram(const Tensor& self, int64_t bins, std::optional<ArrayRef<double>> range,
                                     const std::optional<Tensor>& weight, bool density) {
  double low = range ? (*range)[0] : 0, high = range ? (*range)[1] : 0;
  RUSH_CHECK_TYPE(self.is_floating_point(), "histogram: needs floating point, got ", self.scalar_type());
  if (!range && self.numel() == 0) high = 1;
  if (!range && self.numel() > 0) {
    low = self.min().item<double>();
    high = self.max().item<double>();
  }
  RUSH_CHECK_VALUE(bins > 0 && std::isfinite(low) && std::isfinite(high) && low <= high, "histogram: cannot make ",
                   bins, " bins between ", low, " and ", high);
  if (low == high) {  // as NumPy has it
    low -= 0.5;
    high += 0.5;
  }
  return histogram(self, linspace(low, high, bins + 1, self.options()), weight, density);
}
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, TensorList bins,
                                                    std::optional<ArrayRef<double>> /*range*/,
                                                    const std::optional<Tensor>& weight, bool density) {
  const auto dims = static_cast<int64_t>(bins.size());
  RUSH_CHECK_VALUE(self.dim() >= 1 && self.size(-1) == dims, "histogramdd: got bins of ", dims,
                   " dimensions for points of sizes ", self.sizes());
  const Tensor points = self.detach().reshape({-1, dims});
  Tensor inside = ones({points.size(0)}, points.options().dtype(kBool));
  Tensor cell = zeros({points.size(0)}, points.options().dtype(kInt64));
  std::vector<int64_t> shape;
  int64_t cells = 1;
  for (int64_t d = 0; d < dims; ++d) {
    const Tensor& edges = bins[static_cast<size_t>(d)];
    const Tensor values = points.select(1, d).contiguous();
    shape.push_back(edges.numel() - 1);
    cells *= shape.back();
    Tensor bin = searchsorted(edges, values, false, true).sub(1);
    bin = bin.sub(values.eq(edges[shape.back()]).to(kInt64));
    inside = inside.logical_and(bin.ge(0)).logical_and(bin.lt(shape.back())).logical_and(values.isnan().logical_not());
    cell = cell.mul(shape.back()).add(bin);
  }
  const Tensor weights = weight ? weight->flatten() : ones({points.size(0)}, points.options());
  Tensor hist = zeros({cells}, points.options())
                    .index_add(0, cell.masked_select(inside), weights.masked_select(inside))
                    .view(shape);
  if (density) {
    hist = hist.div(hist.sum());
    for (int64_t d = 0; d < dims; ++d) {
      std::vector<int64_t> along(bins.size(), 1);
      along[static_cast<size_t>(d)] = -1;
      hist = hist.div(diff(bins[static_cast<size_t>(d)]).view(along));
    }
  }
  return {hist, std::vector<Tensor>(bins.begin(), bins.end())};
}
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, IntArrayRef bins,
                                                    std::optional<ArrayRef<double>> range,
                                                    const std::optional<Tensor>& weight, bool density) {
  const Tensor points = self.detach().reshape({-1, self.size(-1)});
  std::vector<Tensor> edges;
  for (size_t d = 0; d < bins.size(); ++d) {
    const auto limits = range ? std::optional(ArrayRef<double>(range->data() + 2 * d, 2)) : std::nullopt;
    edges.push_back(std::get<1>(histogram(points.select(1, static_cast<int64_t>(d)), bins[d], limits)));
  }
  return histogramdd(self, TensorList(edges), std::nullopt, weight, density);
}
std::tuple<Tensor, std::vector<Tensor>> histogramdd(const Tensor& self, int64_t bins,
                                                    std::optional<ArrayRef<double>> range,
                                                    const std::optional<Tensor>& weight, bool density) {
  return histogramdd(self, IntArrayRef(std::vector<int64_t>(static_cast<size_t>(self.size(-1)), bins)), range, weight,
                     density);
}
Tensor index_reduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source, std::string_view reduce,
                    bool include_self) {
  RUSH_CHECK_VALUE(index.dim() <= 1 && reduce != "sum",
                   "index_reduce: needs a vector of indices, and prod, mean, amax "
                   "or amin, got ",
                   index.dim(), " dimensions and ", reduce);
  std::vector<int64_t> shape(static_cast<size_t>(source.dim()), 1);
  const auto along = static_cast<size_t>(wrap_dim(dim, std::max<int64_t>(source.dim(), 1), "index_reduce"));
  if (!shape.empty()) shape[along] = index.numel();
  return scatter_reduce(self, dim, index.view(shape).expand_as(source), source, reduce, include_self);
}

// ---- segments ----
namespace {
// Where the segments begin, and where the last one ends: (..., S + 1).
Tensor segment_edges(const Tensor& data, const std::optional<Tensor>& lengths, const std::optional<Tensor>& offsets,
                     int64_t axis, bool unsafe) {
  RUSH_CHECK_VALUE(lengths || offsets, "segment_reduce: needs lengths or offsets");
  const Tensor& given = offsets ? *offsets : *lengths;
  RUSH_CHECK_VALUE(given.dim() == axis + 1 && data.dim() > axis &&
                       data.sizes().slice(0, given.dim() - 1) == given.sizes().slice(0, axis),
                   "segment_reduce: the segments have sizes ", given.sizes(), ", the data ", data.sizes(), " and axis ",
                   axis);
  if (offsets) {
    RUSH_CHECK_VALUE(given.size(axis) > 0, "segment_reduce: needs an offset at least");
    return given.contiguous();
  }
  const bool are_checked = !unsafe && given.numel() > 0;
  RUSH_CHECK_VALUE(
      !are_checked || (given.min().item<int64_t>() >= 0 && given.sum(-1).eq(data.size(axis)).all().item<bool>()),
      "segment_reduce: the lengths must not be negative, and sum to ", data.size(axis));
  return constant_pad_nd(given.cumsum(-1), {1, 0}, 0);
}
struct SegmentReduction {
  std::string_view name, scattered;  // scatter_reduce's name for it; a mean is a sum that is divided
  double of_none;
};
const SegmentReduction& reduction_named(std::string_view name) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr SegmentReduction kReductions[] = {{"sum", "sum", 0},
                                                     {"mean", "sum", 0},
                                                     {"prod", "prod", 1},
                                                     {"max", "amax", -kInfinity},
                                                     {"min", "amin", kInfinity}};
  for (const SegmentReduction& each : kReductions) {
    if (each.name == name) return each;
  }
  RUSH_THROW(ValueError, "segment_reduce: reduce must be sum, mean, prod, max or min, got ", name);
}
}  // namespace

Tensor segment_reduce(const Tensor& data, std::string_view reduce, const std::optional<Tensor>& lengths,
                      const std::optional<Tensor>& /*indices*/, const std::optional<Tensor>& offsets, int64_t axis,
                      bool unsafe, const std::optional<Scalar>& initial) {
  const SegmentReduction& reduction = reduction_named(reduce);
  axis = wrap_dim(axis, data.dim(), "segment_reduce");
  const Tensor edges = segment_edges(data, lengths, offsets, axis, unsafe);
  const int64_t segments = edges.size(axis) - 1;
  // Bucket 0 takes what lies before the first segment, the last one what lies after the last segment.
  DimVector sizes = data.sizes(), positions = edges.sizes();
  sizes[static_cast<size_t>(axis)] = segments + 2;
  positions[static_cast<size_t>(axis)] = data.size(axis);
  const Tensor position = arange(data.size(axis), edges.options()).expand(positions).contiguous();
  Tensor bucket = searchsorted(edges, position, false, true), count = diff(edges);
  while (bucket.dim() < data.dim()) {
    bucket = bucket.unsqueeze(-1);
    count = count.unsqueeze(-1);
  }
  const Tensor start = full(sizes, initial.value_or(reduction.of_none), data.options());
  const Tensor out = scatter_reduce(start, axis, bucket.expand_as(data), data, reduction.scattered);
  const Tensor inside = out.narrow(axis, 1, segments);
  if (reduce != "mean") return inside.contiguous();
  return inside.div(initial ? count.clamp_min(1) : count);
}
}  // namespace aten
}  // namespace rush
