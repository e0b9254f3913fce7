// Fourier transforms by cuFFT. A build without the library does not implement them.
#include "core/ops/fft/fft.h"

#include "backends/cuda/register.h"
#if __has_include(<cufftXt.h>)
#include <algorithm>
#include <optional>

#include "backends/cuda/fft/plan.h"
#include "core/ops/view/copy.h"

namespace rush::cuda {

namespace {

constexpr size_t kMostDims = 3;  // of a cuFFT plan

bool contains(const DimVector& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

// The layout of one signal over `dims`, or nothing if its strides do not fit cuFFT's "advanced data layout".
std::optional<FftLayout> signal_layout(const Tensor& t, const DimVector& dims) {
  FftLayout layout;
  const size_t rank = dims.size();
  layout.stride = t.size(dims.back()) == 1 ? 1 : t.stride(dims.back());
  if (layout.stride <= 0) return std::nullopt;
  int64_t step = layout.stride;
  for (size_t i = rank - 1; i > 0; --i) {
    const int64_t size = t.size(dims[i]), outer = t.stride(dims[i - 1]);
    layout.embed[i] = size;
    if (t.size(dims[i - 1]) > 1) {
      if (outer % step != 0 || outer / step < size) return std::nullopt;
      layout.embed[i] = outer / step;
    }
    step *= layout.embed[i];
  }
  layout.embed[0] = t.size(dims[0]);
  layout.dist = step * layout.embed[0];
  layout.dense = layout.stride == 1;
  for (size_t i = 0; i < rank; ++i) layout.dense = layout.dense && layout.embed[i] == t.size(dims[i]);
  return layout;
}

// The layout of the signals over `dims` of a tensor, numbered in the row-major order of the other dimensions; nothing
// if no single distance leads from each signal to the next one.
std::optional<FftLayout> layout_of(const Tensor& t, const DimVector& dims) {
  std::optional<FftLayout> layout = signal_layout(t, dims);
  if (!layout) return std::nullopt;
  int64_t count = 1, dist = layout->dist;
  for (int64_t d = t.dim(); d-- > 0;) {
    if (t.size(d) == 1 || contains(dims, d)) continue;
    if (count == 1) {
      dist = t.stride(d);
    } else if (t.stride(d) != dist * count) {
      return std::nullopt;
    }
    count *= t.size(d);
  }
  if (dist <= 0) return std::nullopt;
  layout->dense = layout->dense && dist == layout->dist;
  layout->dist = dist;
  return layout;
}

// The permutation of `dim` dimensions in which `dims` come last.
DimVector signals_last(int64_t dim, const DimVector& dims) {
  DimVector order;
  for (int64_t d = 0; d < dim; ++d) {
    if (!contains(dims, d)) order.push_back(d);
  }
  for (const int64_t d : dims) order.push_back(d);
  return order;
}

struct Signals {
  Tensor tensor;
  FftLayout layout;
};

// The signals of a contiguous tensor whose last `rank` dimensions are theirs (signals_last).
Signals dense_signals(const Tensor& tensor, size_t rank) {
  DimVector dims;
  for (size_t i = 0; i < rank; ++i) dims.push_back(tensor.dim() - static_cast<int64_t>(rank - i));
  return {tensor, *layout_of(tensor, dims)};
}

// `in` itself if the transform can read its layout and, as `owned` says, may overwrite it; otherwise a copy.
Signals readable(const Tensor& in, const DimVector& dims, bool owned) {
  // cuFFT reads pairs of real numbers, which must be aligned like complex ones.
  const auto unit = static_cast<uintptr_t>(element_size(to_complex(in.scalar_type())));
  if (owned && reinterpret_cast<uintptr_t>(in.data_ptr()) % unit == 0) {
    if (const std::optional<FftLayout> layout = layout_of(in, dims)) return {in, *layout};
  }
  return dense_signals(in.permute(signals_last(in.dim(), dims)).clone(MemoryFormat::Contiguous), dims.size());
}

// `out` itself if the transform can write its layout, otherwise memory that the caller copies to `out`.
Signals writable(const Tensor& out, const DimVector& dims) {
  if (const std::optional<FftLayout> layout = layout_of(out, dims)) return {out, *layout};
  const Tensor ordered = out.permute(signals_last(out.dim(), dims));
  return dense_signals(rush::detail::empty_contiguous(ordered.sizes(), out.scalar_type(), out.device()), dims.size());
}

// Transforms at most three dimensions, without scaling. `may_overwrite`: the caller no longer needs `in`.
void transform(FftType type, const Tensor& out, const Tensor& in, IntArrayRef dim, bool forward, bool may_overwrite) {
  DimVector dims(dim);
  // The dimensions may have any order, except that the halved one of r2c and c2r is the last.
  std::sort(dims.begin(), dims.end() - (type == FftType::C2c ? 0 : 1));
  const Signals from = readable(in, dims, may_overwrite || type != FftType::C2r), to = writable(out, dims);
  FftProblem problem{
      type, to_real(in.scalar_type()) == kFloat64, static_cast<int>(dims.size()), {1, 1, 1}, 1, from.layout, to.layout};
  const Tensor& real = type == FftType::C2r ? out : in;
  problem.batch = real.numel();
  for (size_t i = 0; i < dims.size(); ++i) {
    problem.points[i] = real.size(dims[i]);
    problem.batch /= problem.points[i];
  }
  run_fft_plan(problem, from.tensor.data_ptr(), to.tensor.data_ptr(), forward);
  if (!to.tensor.is_same(out)) out.permute(signals_last(out.dim(), dims)).copy_(to.tensor);
}

// Transforms any number of dimensions of complex numbers, the last ones first: these alone read `in`.
void transform_all(const Tensor& out, const Tensor& in, IntArrayRef dims, bool forward) {
  for (size_t end = dims.size(); end > 0;) {
    const size_t begin = end > kMostDims ? end - kMostDims : 0;
    transform(FftType::C2c, out, end == dims.size() ? in : out, dims.slice(begin, end - begin), forward, false);
    end = begin;
  }
}

void scale_by(const Tensor& out, double scale) {
  if (scale != 1) out.mul_(scale);
}

// How many of `dims` do not fit the plan that transforms the last one.
size_t count_of_others(IntArrayRef dims) { return dims.size() > kMostDims ? dims.size() - kMostDims : 0; }

void c2c(const Tensor& out, const Tensor& in, IntArrayRef dims, bool forward, double scale) {
  transform_all(out, in, dims, forward);
  scale_by(out, scale);
}

void r2c(const Tensor& out, const Tensor& in, IntArrayRef dims, double scale) {
  const size_t others = count_of_others(dims);
  transform(FftType::R2c, out, in, dims.slice(others), true, false);
  transform_all(out, out, dims.slice(0, others), true);
  scale_by(out, scale);
}

void c2r(const Tensor& out, const Tensor& in, IntArrayRef dims, double scale) {
  const size_t others = count_of_others(dims);
  Tensor half = in;
  if (others > 0) {
    half = rush::detail::empty_contiguous(in.sizes(), in.scalar_type(), in.device());
    transform_all(half, in, dims.slice(0, others), false);
  }
  transform(FftType::C2r, out, half, dims.slice(others), false, others > 0);
  scale_by(out, scale);
}

}  // namespace

void register_fft() {
  kernels::fft_c2c.set(kCUDA, c2c);
  kernels::fft_r2c.set(kCUDA, r2c);
  kernels::fft_c2r.set(kCUDA, c2r);
}

}  // namespace rush::cuda
#else
namespace rush::cuda {
void register_fft() {}
}  // namespace rush::cuda
#endif
