#include "backends/cpu/fft/fft_long.h"

#include <cmath>

#include "backends/cpu/fft/fft_block.h"
#include "core/threads/parallel.h"

namespace rush::cpu {

namespace {

// The largest divisor up to sqrt(n). If all prime factors are small, it is near sqrt(n).
int64_t middle_divisor(int64_t n) {
  auto d = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % d != 0) --d;
  return d;
}

template <class T>
FftPlanes<T> for_direction(const FftPlanes<T>& planes, bool forward) {
  return forward ? planes : planes.swapped();
}

}  // namespace

template <class T>
LongFft<T>::LongFft(int64_t n) : n_(n), roots_(2 * n) {
  if (has_small_factors(n)) {
    rows_ = middle_divisor(n);
    columns_ = n / rows_;
    of_rows_ = FftTable<T>::of(rows_);
    of_columns_ = FftTable<T>::of(columns_);
    return;
  }
  chirp_ = std::make_unique<Chirp<T>>(n);
  padded_ = of(Chirp<T>::padded(n));
  complex<T>* kernel = chirp_->kernel.data();
  (*padded_)(kernel, 1, kernel, 1, true, T(1));
}

template <class T>
void LongFft<T>::operator()(const complex<T>* in, int64_t in_step, complex<T>* out, int64_t out_step, bool forward,
                            T scale) const {
  if (chirp_) return convolve(in, in_step, out, out_step, forward, scale);
  columns_then_rows(in, in_step, out, out_step, forward, scale);
}

// Multiplies lane j of point c by the twiddle e^(-2 pi i (column + j) c/n). With c = 32 a + b, a twiddle is the product
// of two roots, so that only few are looked up.
template <class T>
void LongFft<T>::multiply_twiddles(const FftPlanes<T>& block, int64_t column) const {
  constexpr int64_t kChunk = 32;
  const auto roots = [&](int64_t c) {
    Lanes<T> result;
    for (int j = 0; j < kFftLanes<T>; ++j) {
      const complex<double> w = roots_[2 * std::min(column + j, columns_ - 1) * c];
      result.re[j] = static_cast<T>(w.real());
      result.im[j] = static_cast<T>(w.imag());
    }
    return result;
  };
  Lanes<T> fine[kChunk];
  for (int64_t b = 0; b < std::min(kChunk, rows_); ++b) fine[b] = roots(b);
  for (int64_t first = 0; first < rows_; first += kChunk) {
    const Lanes<T> coarse = roots(first);
    for (int64_t c = first; c < std::min(first + kChunk, rows_); ++c) {
      const Lanes<T> root = coarse * fine[c - first];
      const Lanes<T> product = Lanes<T>{block.re[c], block.im[c]} * root;
      block.re[c] = product.re;
      block.im[c] = product.im;
    }
  }
}

template <class T>
void LongFft<T>::columns_then_rows(const complex<T>* in, int64_t in_step, complex<T>* out, int64_t out_step,
                                   bool forward, T scale) const {
  constexpr int64_t width = kFftLanes<T>;
  const int64_t pitch = columns_ + width;  // with a power of two, a column would fill few sets of the cache
  const Scratch<complex<T>> between(rows_ * pitch);
  const int64_t grain = std::max<int64_t>(1, kGrain / (8 * width * rows_));
  parallel_for(0, (columns_ + width - 1) / width, grain, [&](int64_t begin, int64_t end) {
    const FftWorkspace<T> space(rows_, of_rows_->work_points());
    const FftPlanes<T> data = for_direction(space.data, forward), work = for_direction(space.work, forward);
    for (int64_t column = begin * width; column < std::min(end * width, columns_); column += width) {
      const int64_t count = columns_ - column;
      const LineBlock<T, const complex<T>> from(in + column * in_step, in_step, columns_ * in_step, count);
      load_lines(from, rows_, {space.data.re, space.data.im});
      const FftPlanes<T> result = (*of_rows_)(data, work);
      multiply_twiddles(result, column);
      const FftPlanes<T> planes = for_direction(result, forward);
      store_lines(LineBlock<T, complex<T>>(between.data() + column, 1, pitch, count), rows_, {planes.re, planes.im},
                  T(1));
    }
  });
  parallel_for(0, (rows_ + width - 1) / width, grain, [&](int64_t begin, int64_t end) {
    const FftWorkspace<T> space(columns_, of_columns_->work_points());
    const FftPlanes<T> data = for_direction(space.data, forward), work = for_direction(space.work, forward);
    for (int64_t row = begin * width; row < std::min(end * width, rows_); row += width) {
      const int64_t count = rows_ - row;
      const LineBlock<T, const complex<T>> from(between.data() + row * pitch, pitch, 1, count);
      load_lines(from, columns_, {space.data.re, space.data.im});
      const FftPlanes<T> planes = for_direction((*of_columns_)(data, work), forward);
      const LineBlock<T, complex<T>> to(out + row * out_step, out_step, rows_ * out_step, count);
      store_lines(to, columns_, {planes.re, planes.im}, scale);
    }
  });
}

// The backward transform of x is the conjugate of the forward transform of conj(x).
template <class T>
void LongFft<T>::convolve(const complex<T>* in, int64_t in_step, complex<T>* out, int64_t out_step, bool forward,
                          T scale) const {
  const int64_t m = Chirp<T>::padded(n_);
  const complex<T>*chirp = chirp_->factors.data(), *kernel = chirp_->kernel.data();
  const Scratch<complex<T>> padded(m);
  const auto conj_if_backward = [forward](const complex<T>& z) { return forward ? z : conj(z); };
  parallel_for(0, n_, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) padded[k] = conj_if_backward(in[k * in_step]) * chirp[k];
  });
  parallel_for(n_, m, kGrain, [&](int64_t begin, int64_t end) { std::fill_n(&padded[begin], end - begin, T(0)); });
  (*padded_)(padded.data(), 1, padded.data(), 1, true, T(1));
  parallel_for(0, m, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) padded[k] *= kernel[k];
  });
  (*padded_)(padded.data(), 1, padded.data(), 1, false, T(1));
  parallel_for(0, n_, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) out[k * out_step] = conj_if_backward(padded[k] * chirp[k]) * scale;
  });
}

// See Note [Transforms of real lines].
template <class T>
void LongFft<T>::real_to_half(const complex<T>* in, complex<T>* out, int64_t out_step, T scale) const {
  const Scratch<complex<T>> z(n_);
  (*this)(in, 1, z.data(), 1, true, scale / 2);
  parallel_for(0, n_ + 1, kGrain / 4, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const complex<T> a = z[k == n_ ? 0 : k], b = conj(z[k == 0 ? 0 : n_ - k]), difference = a - b;
      out[k * out_step] = a + b + complex<T>(difference.imag(), -difference.real()) * complex<T>(roots_[k]);
    }
  });
}

template <class T>
void LongFft<T>::half_to_real(const complex<T>* in, int64_t in_step, complex<T>* out, T scale) const {
  parallel_for(0, n_, kGrain / 4, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      complex<T> a = in[k * in_step], b = conj(in[(n_ - k) * in_step]);
      if (k == 0) a = a.real(), b = b.real();  // frequencies 0 and n count as real
      const complex<T> odd = (a - b) * conj(complex<T>(roots_[k]));
      out[k] = a + b + complex<T>(-odd.imag(), odd.real());
    }
  });
  (*this)(out, 1, out, 1, false, scale);
}

template class LongFft<float>;
template class LongFft<double>;

}  // namespace rush::cpu
