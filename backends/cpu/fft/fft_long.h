// The Fourier transform of one long line, by several threads.
#pragma once
#include <memory>

#include "backends/cpu/fft/fft_table.h"

namespace rush::cpu {

// Transforms one line of n complex numbers, or of 2 n real ones.
template <class T>
class LongFft {
 public:
  static std::shared_ptr<const LongFft> of(int64_t n) { return kept_transform<LongFft>(n); }
  explicit LongFft(int64_t n);
  int64_t table_numbers() const { return 2 * (chirp_ ? n_ + padded_->n_ : columns_); }  // columns_: about its roots

  // out[k * out_step] = scale * the sum over j of in[j * in_step] e^(-+2 pi i jk/n); `out` may be `in`. It runs
  // parallel_for over points, which is serial inside of another parallel_for.
  void operator()(const complex<T>* in, int64_t in_step, complex<T>* out, int64_t out_step, bool forward,
                  T scale) const;
  // out[0], ..., out[n] = scale * the first half of the frequencies of 2 n real numbers, of which `in` holds pairs.
  void real_to_half(const complex<T>* in, complex<T>* out, int64_t out_step, T scale) const;
  // The inverse of real_to_half, without dividing by 2 n.
  void half_to_real(const complex<T>* in, int64_t in_step, complex<T>* out, T scale) const;

 private:
  // Note [Long transforms]
  // n = rows * columns points x_j with j = columns * a + b have the frequencies k = c + rows * d: the columns are
  // transformed over a, each result (c, b) times e^(-2 pi i bc/n), then the rows over b (D. H. Bailey, "FFTs in
  // external or hierarchical memory", Journal of Supercomputing 4, 1990). A block of lines of about sqrt(n) points
  // stays in the cache, and memory is read and written twice, in whole cache lines.
  void columns_then_rows(const complex<T>* in, int64_t in_step, complex<T>* out, int64_t out_step, bool forward,
                         T scale) const;
  void convolve(const complex<T>* in, int64_t in_step, complex<T>* out, int64_t out_step, bool forward, T scale) const;
  void multiply_twiddles(const FftPlanes<T>& block, int64_t column) const;

  int64_t n_, rows_ = 1, columns_ = 1;
  std::shared_ptr<const FftTable<T>> of_rows_, of_columns_;  // of rows_ points, and of columns_ points
  RootsOfUnity roots_;                                       // of 2 n
  // If n has a large prime factor: see Note [Transforms of prime length].
  std::unique_ptr<Chirp<T>> chirp_;
  std::shared_ptr<const LongFft> padded_;
};

extern template class LongFft<float>;
extern template class LongFft<double>;

}  // namespace rush::cpu
