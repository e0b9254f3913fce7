// Fourier transforms of tensors of any strides, dimension by dimension: blocks of short lines, and long lines one by
// one.
#include "core/ops/fft/fft.h"

#include "backends/cpu/fft/fft_block.h"
#include "backends/cpu/fft/fft_long.h"
#include "backends/cpu/index/slice_offsets.h"
#include "backends/cpu/loops.h"
#include "backends/cpu/register.h"
#include "backends/cpu/scratch.h"

namespace rush::cpu {

namespace {

// The lines of a tensor in one dimension, numbered in the row-major order of the other dimensions.
class Lines {
 public:
  Lines(const Tensor& t, int64_t dim)
      : data_(static_cast<char*>(t.data_ptr())),
        bytes_(t.element_size()),
        points_(t.size(dim)),
        step_(points_ == 1 ? 1 : t.stride(dim)),
        others_(t, 0, dim) {
    others_.append(t, dim + 1, t.dim());
  }

  int64_t count() const { return others_.count(); }
  int64_t points() const { return points_; }
  // Elements from one point to the next.
  int64_t step() const { return step_; }
  // The lines of points start, start + 2, ...
  Lines every_second(int64_t start) const {
    Lines result = *this;
    result.data_ += start * step_ * bytes_;
    result.step_ *= 2;
    result.points_ = (points_ - start + 1) / 2;
    return result;
  }
  template <class E>
  E* line(int64_t number) const {
    return reinterpret_cast<E*>(data_ + others_.offset(number) * bytes_);
  }

 private:
  char* data_;
  int64_t bytes_, points_, step_;
  Block others_;  // the other dimensions
};

enum class FftKind : uint8_t {
  Forward,     // n complex numbers to n
  Backward,    // n complex numbers to n, with the opposite sign of the exponent
  RealToHalf,  // n real numbers to the first n/2 + 1 of their n complex frequencies, forward
  HalfToReal,  // its inverse, backward
};

template <class T, class E>
LineBlock<T, E> block_of(const Lines& lines, int64_t first) {
  return {[&](int j) { return lines.line<E>(first + j); }, lines.step(), lines.count() - first};
}

// Loads pairs of real numbers as the real and imaginary parts of `pairs` points.
template <class T>
void load_pairs(const Lines& in, int64_t first, int64_t pairs, const FftPlanes<T>& to) {
  if (in.step() == 1) return load_lines(block_of<T, const complex<T>>(in, first), pairs, {to.re, to.im});
  load_lines(block_of<T, const T>(in.every_second(0), first), pairs, {to.re});
  load_lines(block_of<T, const T>(in.every_second(1), first), pairs, {to.im});
}

template <class T>
void store_pairs(const Lines& out, int64_t first, int64_t pairs, const FftPlanes<T>& from, T scale) {
  if (out.step() == 1) return store_lines(block_of<T, complex<T>>(out, first), pairs, {from.re, from.im}, scale);
  store_lines(block_of<T, T>(out.every_second(0), first), pairs, {from.re}, scale);
  store_lines(block_of<T, T>(out.every_second(1), first), pairs, {from.im}, scale);
}

// Whether n real numbers are transformed as n/2 complex ones: see Note [Transforms of real lines].
template <FftKind kind>
bool makes_pairs(int64_t n) {
  return (kind == FftKind::RealToHalf || kind == FftKind::HalfToReal) && n % 2 == 0;
}

// Transforms the block of lines that begins with line `first`.
template <class T, FftKind kind>
void transform_block(const FftTable<T>& table, int64_t n, const Lines& in, const Lines& out, int64_t first,
                     const FftWorkspace<T>& space, T scale) {
  const FftPlanes<T>&data = space.data, &work = space.work;
  const auto backward = [&] { return table(data.swapped(), work.swapped()).swapped(); };
  const int64_t half = n / 2 + 1;
  if constexpr (kind == FftKind::RealToHalf) {
    FftPlanes<T> result;
    if (makes_pairs<kind>(n)) {
      load_pairs(in, first, n / 2, data);
      result = table.real_to_half(data, work);
      scale /= 2;
    } else {
      load_lines(block_of<T, const T>(in, first), n, {data.re});
      std::fill_n(data.im, n, FftVector<T>{});
      result = table(data, work);
    }
    store_lines(block_of<T, complex<T>>(out, first), half, {result.re, result.im}, scale);
  } else if constexpr (kind == FftKind::HalfToReal) {
    load_lines(block_of<T, const complex<T>>(in, first), half, {work.re, work.im});
    if (makes_pairs<kind>(n)) return store_pairs(out, first, n / 2, table.half_to_real(data, work), scale);
    data.re[0] = work.re[0];
    data.im[0] = FftVector<T>{};  // frequency 0 counts as real
    for (int64_t k = 1; k < half; ++k) {
      data.re[k] = data.re[n - k] = work.re[k];
      data.im[k] = work.im[k];
      data.im[n - k] = -work.im[k];
    }
    store_lines(block_of<T, T>(out, first), n, {backward().re}, scale);
  } else {
    load_lines(block_of<T, const complex<T>>(in, first), n, {data.re, data.im});
    const FftPlanes<T> result = kind == FftKind::Forward ? table(data, work) : backward();
    store_lines(block_of<T, complex<T>>(out, first), n, {result.re, result.im}, scale);
  }
}

// Whether the line is contiguous and aligned, so that pairs of its numbers can be read as complex numbers.
bool stands_in_pairs(const Lines& lines, int64_t number, int64_t bytes) {
  return lines.step() == 1 &&
         reinterpret_cast<uintptr_t>(lines.line<char>(number)) % static_cast<uintptr_t>(2 * bytes) == 0;
}

// Transforms one real line of n points: as n/2 complex numbers if n is even, and otherwise as n.
template <class T>
void real_to_half(const Lines& in, const Lines& out, int64_t number, T scale) {
  const int64_t n = in.points();
  const T* from = in.line<const T>(number);
  auto* to = out.line<complex<T>>(number);
  const bool even = n % 2 == 0, ready = even && stands_in_pairs(in, number, sizeof(T));
  const Scratch<complex<T>> numbers(ready ? 0 : even ? n / 2 : n);
  if (even) {
    T* pairs = reinterpret_cast<T*>(numbers.data());
    for (int64_t k = 0; k < n && !ready; ++k) pairs[k] = from[k * in.step()];
    const auto* z = ready ? reinterpret_cast<const complex<T>*>(from) : numbers.data();
    return LongFft<T>::of(n / 2)->real_to_half(z, to, out.step(), scale);
  }
  for (int64_t k = 0; k < n; ++k) numbers[k] = from[k * in.step()];
  (*LongFft<T>::of(n))(numbers.data(), 1, numbers.data(), 1, true, scale);
  for (int64_t k = 0; k < out.points(); ++k) to[k * out.step()] = numbers[k];
}

template <class T>
void half_to_real(const Lines& in, const Lines& out, int64_t number, T scale) {
  const int64_t n = out.points();
  const auto* from = in.line<const complex<T>>(number);
  T* to = out.line<T>(number);
  const bool even = n % 2 == 0, ready = even && stands_in_pairs(out, number, sizeof(T));
  const Scratch<complex<T>> numbers(ready ? 0 : even ? n / 2 : n);
  if (even) {
    auto* z = ready ? reinterpret_cast<complex<T>*>(to) : numbers.data();
    LongFft<T>::of(n / 2)->half_to_real(from, in.step(), z, scale);
    const T* pairs = reinterpret_cast<const T*>(z);
    for (int64_t k = 0; k < n && !ready; ++k) to[k * out.step()] = pairs[k];
    return;
  }
  numbers[0] = from[0].real();
  for (int64_t k = 1; k < in.points(); ++k) {
    numbers[k] = from[k * in.step()];
    numbers[n - k] = conj(numbers[k]);
  }
  (*LongFft<T>::of(n))(numbers.data(), 1, numbers.data(), 1, false, scale);
  for (int64_t k = 0; k < n; ++k) to[k * out.step()] = numbers[k].real();
}

template <class T, FftKind kind>
void transform_line(const Lines& in, const Lines& out, int64_t number, T scale) {
  if constexpr (kind == FftKind::RealToHalf) return real_to_half<T>(in, out, number, scale);
  if constexpr (kind == FftKind::HalfToReal) return half_to_real<T>(in, out, number, scale);
  if constexpr (kind == FftKind::Forward || kind == FftKind::Backward) {
    (*LongFft<T>::of(in.points()))(in.line<const complex<T>>(number), in.step(), out.line<complex<T>>(number),
                                   out.step(), kind == FftKind::Forward, scale);
  }
}

// Whether lines of n points are transformed one by one: the cache does not hold a block of them, or there are too few
// of them to fill its lanes.
template <class T>
bool is_long(int64_t n, int64_t lines) {
  constexpr int64_t kLongest = 16384, kShortest = 256;
  return n > kLongest || (n >= kShortest && lines <= kFftLanes<T> / (n < 1024 ? 8 : 4));
}

// Transforms one dimension. `to` and `from` may be the same memory.
template <class T, FftKind kind>
void transform_dim(const Tensor& to, const Tensor& from, int64_t dim, double scale) {
  const Lines in(from, dim), out(to, dim);
  const int64_t n = std::max(in.points(), out.points());
  const T factor = static_cast<T>(scale);
  if (is_long<T>(n, in.count())) {
    // Either all threads work on one line, or each works on lines of its own.
    constexpr int64_t kShared = int64_t{1} << 16;
    const int64_t grain = n >= kShared || in.count() < get_num_threads() ? in.count() : 1;
    return parallel_for(0, in.count(), grain, [&](int64_t begin, int64_t end) {
      for (int64_t number = begin; number < end; ++number) transform_line<T, kind>(in, out, number, factor);
    });
  }
  constexpr int64_t width = kFftLanes<T>;
  const int64_t points = makes_pairs<kind>(n) ? n / 2 : n;
  const auto table = FftTable<T>::of(points);
  parallel_for(0, (in.count() + width - 1) / width, std::max<int64_t>(1, kGrain / (8 * width * n)),
               [&](int64_t begin, int64_t end) {
                 const FftWorkspace<T> space(points + 1, std::max(table->work_points(), points + 1));
                 for (int64_t block = begin; block < end; ++block) {
                   transform_block<T, kind>(*table, n, in, out, block * width, space, factor);
                 }
               });
}

// Transforms several dimensions of complex numbers, the last one first: it alone reads `in`.
template <class T, FftKind kind>
void transform_dims(const Tensor& out, const Tensor& in, IntArrayRef dims, double scale) {
  for (size_t i = dims.size(); i-- > 0;) {
    transform_dim<T, kind>(out, i + 1 == dims.size() ? in : out, dims[i], i == 0 ? scale : 1);
  }
}

struct C2cLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& in, IntArrayRef dims, bool forward, double scale) {
    const auto transform = forward ? transform_dims<T, FftKind::Forward> : transform_dims<T, FftKind::Backward>;
    transform(out, in, dims, scale);
  }
};

struct R2cLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& in, IntArrayRef dims, double scale) {
    const IntArrayRef others = dims.slice(0, dims.size() - 1);
    transform_dim<T, FftKind::RealToHalf>(out, in, dims.back(), others.empty() ? scale : 1);
    transform_dims<T, FftKind::Forward>(out, out, others, scale);
  }
};

struct C2rLoop {
  template <class T>
  static void run(const Tensor& out, const Tensor& in, IntArrayRef dims, double scale) {
    const IntArrayRef others = dims.slice(0, dims.size() - 1);
    Tensor half = in;
    if (!others.empty()) {
      half = rush::detail::empty_contiguous(in.sizes(), in.scalar_type(), in.device());
      transform_dims<T, FftKind::Backward>(half, in, others, 1);
    }
    transform_dim<T, FftKind::HalfToReal>(out, half, dims.back(), scale);
  }
};

using FftTypes = TypeList<float, double>;

void c2c(const Tensor& out, const Tensor& in, IntArrayRef dims, bool forward, double scale) {
  pick<C2cLoop>(FftTypes(), to_real(in.scalar_type()), "_fft_c2c")(out, in, dims, forward, scale);
}

}  // namespace

void register_fft() {
  kernels::fft_c2c.set(kCPU, c2c);
  set_by_dtype<kernels::fft_r2c, R2cLoop, FftTypes, 1>(kCPU);
  set_by_dtype<kernels::fft_c2r, C2rLoop, FftTypes>(kCPU);
}

}  // namespace rush::cpu
