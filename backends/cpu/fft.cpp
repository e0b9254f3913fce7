// Transforms of any strides, dimension by dimension and line by line.
#include "core/ops/fft.h"

#include <cmath>

#include "backends/cpu/fft_line.h"
#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "backends/cpu/scratch.h"

namespace rush::cpu {

namespace {

// The lines of a tensor along one dimension, in the row-major order of the others.
class Lines {
 public:
  Lines(const Tensor& t, int64_t dim) : data_(static_cast<char*>(t.data_ptr())), bytes_(t.element_size()) {
    for (int64_t d = 0; d < t.dim(); ++d) {
      if (d == dim) continue;
      sizes_.push_back(t.size(d));
      strides_.push_back(t.stride(d));
      count_ *= t.size(d);
    }
    points_ = t.size(dim);
    step_ = t.size(dim) == 1 ? 1 : t.stride(dim);
  }

  int64_t count() const { return count_; }
  int64_t points() const { return points_; }
  // Elements from one point to the next.
  int64_t step() const { return step_; }
  template <class E>
  E* line(int64_t number) const {
    int64_t offset = 0;
    for (size_t d = sizes_.size(); d-- > 0;) {
      offset += number % sizes_[d] * strides_[d];
      number /= sizes_[d];
    }
    return reinterpret_cast<E*>(data_ + offset * bytes_);
  }

 private:
  char* data_;
  int64_t bytes_, count_ = 1, points_ = 1, step_ = 1;
  DimVector sizes_, strides_;
};

// So many lines are read and written together: where points lie far apart, those of neighbouring lines share a cache
// line.
constexpr int64_t kTogether = 8;

// to[j * points + k] = point k of line first + j
template <class E>
void gather_lines(const Lines& lines, int64_t first, int64_t count, E* to) {
  const E* from[kTogether];
  for (int64_t j = 0; j < count; ++j) from[j] = lines.line<const E>(first + j);
  for (int64_t k = 0; k < lines.points(); ++k) {
    for (int64_t j = 0; j < count; ++j) to[j * lines.points() + k] = from[j][k * lines.step()];
  }
}

template <class E>
void scatter_lines(const Lines& lines, int64_t first, int64_t count, const E* from) {
  E* to[kTogether];
  for (int64_t j = 0; j < count; ++j) to[j] = lines.line<E>(first + j);
  for (int64_t k = 0; k < lines.points(); ++k) {
    for (int64_t j = 0; j < count; ++j) to[j][k * lines.step()] = from[j * lines.points() + k];
  }
}

// What a line of a transform consists of, and how many points it has.
template <class T, FftKind kind>
struct LineTypes {
  using In = std::conditional_t<kind == FftKind::RealToHalf, T, complex<T>>;
  using Out = std::conditional_t<kind == FftKind::HalfToReal, T, complex<T>>;
};

// Lines [begin, end) of `out` = scale * the transforms of those of `in`, which may be the same memory.
template <class T, FftKind kind>
void transform_lines(const char* op, const Lines& in, const Lines& out, int64_t begin, int64_t end, double scale,
                     int threads) {
  using In = typename LineTypes<T, kind>::In;
  using Out = typename LineTypes<T, kind>::Out;
  const FftLine<T> transform(op, kind, kind == FftKind::HalfToReal ? out.points() : in.points(), threads);
  // Lines that lie in memory as the transform wants them are not copied; one cannot be read from where it is written.
  const bool reads = in.step() == 1 && in.line<char>(0) != out.line<char>(0), writes = out.step() == 1;
  const int64_t together = reads && writes ? 1 : std::min(kTogether, end - begin);
  const Scratch<In> read(reads ? 0 : together * in.points());
  const Scratch<Out> written(writes ? 0 : together * out.points());
  const T factor = static_cast<T>(scale);
  for (int64_t first = begin; first < end; first += together) {
    const int64_t count = std::min(together, end - first);
    if (!reads) gather_lines(in, first, count, read.data());
    for (int64_t j = 0; j < count; ++j) {
      Out* to = writes ? out.line<Out>(first + j) : written.data() + j * out.points();
      transform(reads ? in.line<const In>(first + j) : read.data() + j * in.points(), to);
      T* numbers = reinterpret_cast<T*>(to);
      const int64_t length = out.points() * static_cast<int64_t>(sizeof(Out) / sizeof(T));
      for (int64_t k = 0; k < length && factor != 1; ++k) numbers[k] *= factor;
    }
    if (!writes) scatter_lines(out, first, count, written.data());
  }
}

// Along one dimension; the threads share the lines between them, or, where there are fewer lines than threads, each of
// the lines if the library can.
template <class T, FftKind kind>
void transform_dim(const char* op, const Tensor& to, const Tensor& from, int64_t dim, double scale) {
  const Lines in(from, dim), out(to, dim);
  const int64_t points = std::max(in.points(), out.points()), lines = in.count();
  const int threads = in_parallel_region() ? 1 : get_num_threads();
  if (lines < threads && FftLine<T>::shares_lines(points)) {
    return transform_lines<T, kind>(op, in, out, 0, lines, scale, threads);
  }
  const auto work = static_cast<int64_t>(static_cast<double>(points) * (2 + std::log2(static_cast<double>(points))));
  parallel_for(0, lines, std::max<int64_t>(1, kGrain / work),
               [&](int64_t begin, int64_t end) { transform_lines<T, kind>(op, in, out, begin, end, scale, 1); });
}

// Complex to complex over several dimensions, the last of them first: only that one reads `in`.
template <class T, FftKind kind>
void transform_dims(const char* op, const Tensor& out, const Tensor& in, IntArrayRef dims, double scale) {
  for (size_t i = dims.size(); i-- > 0;) {
    transform_dim<T, kind>(op, out, i + 1 == dims.size() ? in : out, dims[i], i == 0 ? scale : 1);
  }
}

struct C2cLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& in, IntArrayRef dims, bool forward, double scale) {
    const auto transform = forward ? transform_dims<T, FftKind::Forward> : transform_dims<T, FftKind::Backward>;
    transform("_fft_c2c", out, in, dims, scale);
  }
};

struct R2cLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& in, IntArrayRef dims, double scale) {
    const IntArrayRef others = dims.slice(0, dims.size() - 1);
    transform_dim<T, FftKind::RealToHalf>("_fft_r2c", out, in, dims.back(), others.empty() ? scale : 1);
    transform_dims<T, FftKind::Forward>("_fft_r2c", out, out, others, scale);
  }
};

struct C2rLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& in, IntArrayRef dims, double scale) {
    const IntArrayRef others = dims.slice(0, dims.size() - 1);
    Tensor half = in;
    if (!others.empty()) {
      half = detail::empty_contiguous(in.sizes(), in.scalar_type(), in.device());
      transform_dims<T, FftKind::Backward>("_fft_c2r", half, in, others, 1);
    }
    transform_dim<T, FftKind::HalfToReal>("_fft_c2r", out, half, dims.back(), scale);
  }
};

using FftTypes = TypeList<float, double>;

void c2c(const Tensor& out, const Tensor& in, IntArrayRef dims, bool forward, double scale) {
  pick<C2cLoop>(FftTypes(), to_real(in.scalar_type()), "_fft_c2c")(out, in, dims, forward, scale);
}

void r2c(const Tensor& out, const Tensor& in, IntArrayRef dims, double scale) {
  pick<R2cLoop>(FftTypes(), in.scalar_type(), "_fft_r2c")(out, in, dims, scale);
}

void c2r(const Tensor& out, const Tensor& in, IntArrayRef dims, double scale) {
  pick<C2rLoop>(FftTypes(), out.scalar_type(), "_fft_c2r")(out, in, dims, scale);
}

}  // namespace

void register_fft() {
  kernels::fft_c2c.set(kCPU, c2c);
  kernels::fft_r2c.set(kCPU, r2c);
  kernels::fft_c2r.set(kCPU, c2r);
}

}  // namespace rush::cpu
