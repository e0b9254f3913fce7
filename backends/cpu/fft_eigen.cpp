// FftLine by Eigen's FFT module (kissfft), which splits n into its prime factors, and by a convolution where one of
// them is so large that this would take long.
#ifndef RUSH_HAS_FFTW
#include <climits>
#include <cmath>
#include <complex>
#include <numbers>
#include <set>
#include <unsupported/Eigen/FFT>
#include <vector>

#include "backends/cpu/fft_line.h"
#include "core/error.h"

namespace rush::cpu {

namespace {

// kissfft's step for a factor p other than 2, 3, 4 and 5 costs n p; the convolution below costs about as much as 8
// transforms of the next power of two.
constexpr int64_t kLargestFactor = 100;

int64_t largest_factor(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; p += p == 2 ? 1 : 2) {
    for (; n % p == 0; n /= p) largest = p;
  }
  return std::max(largest, n);
}

// Eigen's module with its tables, which it makes for each length and keeps. One for each thread.
template <class T>
class Tables {
 public:
  static Tables& own() {
    thread_local Tables tables;
    return tables;
  }
  // The module, which has forgotten other lengths where they came to too much memory.
  Eigen::FFT<T>& for_length(int64_t n) {
    constexpr int64_t kMostPoints = int64_t{1} << 22;
    if (lengths_.insert(n).second) points_ += n;
    if (points_ > std::max(kMostPoints, n)) {
      fft_.impl().clear();
      lengths_ = {n};
      points_ = n;
    }
    return fft_;
  }

 private:
  Tables() {
    fft_.SetFlag(Eigen::FFT<T>::Unscaled);
    fft_.SetFlag(Eigen::FFT<T>::HalfSpectrum);
  }

  Eigen::FFT<T> fft_;
  std::set<int64_t> lengths_;
  int64_t points_ = 0;
};

// Note [Transforms of prime length]
// With jk = (j^2 + k^2 - (k - j)^2) / 2 and w = e^(-2 pi i/n), X_k = w^(k^2/2) sum over j of (x_j w^(j^2/2))
// w^(-(k-j)^2/2): a convolution of two sequences, which transforms of any length m >= 2 n - 1 compute (Bluestein, "A
// linear filtering approach to the computation of the discrete Fourier transform", 1970). The chirp w^(k^2/2) has the
// period 2 n in k^2, so that its angle is exact for every k.
template <class T>
class Chirp {
 public:
  using Complex = std::complex<T>;

  explicit Chirp(int64_t n) : n_(static_cast<size_t>(n)), chirp_(n_) {
    size_t m = 1;
    while (m < 2 * n_ - 1) m *= 2;
    first_.resize(m);
    second_.resize(m);
    spectrum_.resize(m);
    std::vector<Complex> other(m);
    uint64_t square = 0;  // k^2 mod 2 n
    for (size_t k = 0; k < n_; ++k) {
      const double angle = std::numbers::pi * static_cast<double>(square) / static_cast<double>(n);
      chirp_[k] = Complex(static_cast<T>(std::cos(angle)), static_cast<T>(-std::sin(angle)));
      other[k] = std::conj(chirp_[k]);
      if (k > 0) other[m - k] = other[k];
      square = (square + 2 * k + 1) % (2 * static_cast<uint64_t>(n));
    }
    fft().fwd(spectrum_.data(), other.data(), static_cast<Eigen::Index>(m));
  }

  size_t length() const { return n_; }

  // Of n complex numbers, forward.
  void operator()(const Complex* in, Complex* out) {
    const auto m = static_cast<Eigen::Index>(first_.size());
    Eigen::FFT<T>& fft = this->fft();
    for (size_t k = 0; k < n_; ++k) first_[k] = in[k] * chirp_[k];
    std::fill(first_.begin() + static_cast<ptrdiff_t>(n_), first_.end(), Complex());
    fft.fwd(second_.data(), first_.data(), m);
    for (size_t k = 0; k < second_.size(); ++k) second_[k] *= spectrum_[k];
    fft.inv(first_.data(), second_.data(), m);
    const T scale = T(1) / static_cast<T>(m);
    for (size_t k = 0; k < n_; ++k) out[k] = first_[k] * chirp_[k] * scale;
  }

 private:
  Eigen::FFT<T>& fft() { return Tables<T>::own().for_length(static_cast<int64_t>(first_.size())); }

  size_t n_;
  std::vector<Complex> chirp_, spectrum_, first_, second_;
};

}  // namespace

template <class T>
class FftEngine {
 public:
  using Complex = std::complex<T>;

  FftEngine(const char* op, FftKind kind, int64_t n) : kind_(kind), n_(n) {
    const bool chirp = n <= INT_MAX && largest_factor(n) > kLargestFactor;
    // Of four times the length of a table Eigen's loops count in int; the chirp's is up to four times as long.
    RUSH_CHECK_VALUE(n <= INT_MAX / (chirp ? 16 : 4), op, ": ", n,
                     " points are more than Eigen's transforms can count");
    if (!chirp) {
      fft_ = &Tables<T>::own().for_length(n);
      return;
    }
    thread_local std::unique_ptr<Chirp<T>> last;
    if (!last || last->length() != static_cast<size_t>(n)) last = std::make_unique<Chirp<T>>(n);
    chirp_ = last.get();
    in_.resize(static_cast<size_t>(n));
    out_.resize(static_cast<size_t>(n));
  }

  void run(const void* in, void* out) {
    if (n_ == 1) return copy_point(in, out);  // for which Eigen has no table
    if (chirp_) return run_chirp(in, out);
    const Eigen::Index n = n_;
    switch (kind_) {
      case FftKind::Forward: return fft_->fwd(static_cast<Complex*>(out), static_cast<const Complex*>(in), n);
      case FftKind::Backward: return fft_->inv(static_cast<Complex*>(out), static_cast<const Complex*>(in), n);
      case FftKind::RealToHalf: return fft_->fwd(static_cast<Complex*>(out), static_cast<const T*>(in), n);
      case FftKind::HalfToReal: return fft_->inv(static_cast<T*>(out), static_cast<const Complex*>(in), n);
    }
  }

 private:
  void copy_point(const void* in, void* out) const {
    if (kind_ == FftKind::HalfToReal) {
      *static_cast<T*>(out) = static_cast<const Complex*>(in)->real();
    } else {
      *static_cast<Complex*>(out) =
          kind_ == FftKind::RealToHalf ? *static_cast<const T*>(in) : *static_cast<const Complex*>(in);
    }
  }

  // As a forward transform of complex numbers; backward is forward of the conjugates, conjugated.
  void run_chirp(const void* in, void* out) {
    const size_t n = in_.size(), half = n / 2 + 1;
    const auto* numbers = static_cast<const Complex*>(in);
    switch (kind_) {
      case FftKind::Forward: return (*chirp_)(numbers, static_cast<Complex*>(out));
      case FftKind::Backward: {
        for (size_t k = 0; k < n; ++k) in_[k] = std::conj(numbers[k]);
        (*chirp_)(in_.data(), out_.data());
        for (size_t k = 0; k < n; ++k) static_cast<Complex*>(out)[k] = std::conj(out_[k]);
        return;
      }
      case FftKind::RealToHalf: {
        for (size_t k = 0; k < n; ++k) in_[k] = static_cast<const T*>(in)[k];
        (*chirp_)(in_.data(), out_.data());
        std::copy(out_.begin(), out_.begin() + static_cast<ptrdiff_t>(half), static_cast<Complex*>(out));
        return;
      }
      case FftKind::HalfToReal: {
        for (size_t k = 0; k < half; ++k) in_[k] = std::conj(numbers[k]);
        for (size_t k = half; k < n; ++k) in_[k] = numbers[n - k];
        in_[0] = numbers[0].real();
        (*chirp_)(in_.data(), out_.data());
        for (size_t k = 0; k < n; ++k) static_cast<T*>(out)[k] = out_[k].real();
        return;
      }
    }
  }

  FftKind kind_;
  int64_t n_;
  Eigen::FFT<T>* fft_ = nullptr;  // or
  Chirp<T>* chirp_ = nullptr;
  std::vector<Complex> in_, out_;
};

template <class T>
FftLine<T>::FftLine(const char* op, FftKind kind, int64_t n, int /*threads*/)
    : engine_(std::make_unique<FftEngine<T>>(op, kind, n)) {}
template <class T>
FftLine<T>::~FftLine() = default;
template <class T>
void FftLine<T>::operator()(const void* in, void* out) const {
  engine_->run(in, out);
}
template <class T>
bool FftLine<T>::shares_lines(int64_t) {
  return false;
}

template class FftLine<float>;
template class FftLine<double>;

}  // namespace rush::cpu
#endif
