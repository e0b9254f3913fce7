#include "backends/cpu/fft/fft_table.h"

#include <cmath>
#include <numbers>

namespace rush::cpu {

namespace {

// A pass of a factor r other than 2, 3, 4, 5, 7 and 8 takes about n r / 2 products, a convolution about as long as four
// transforms.
constexpr int kLargestFactor = 31;

complex<double> root_of_unity(int64_t k, int64_t n) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

// The factors of n, for which has_small_factors(n) holds. Large factors come first, for fewer passes over memory.
std::vector<int> factors_of(int64_t n) {
  std::vector<int> factors;
  for (; n % 8 == 0; n /= 8) factors.push_back(8);
  if (n % 2 == 0 && n % 4 != 0 && !factors.empty()) {  // 8 * 2 = 4 * 4
    factors.back() = 4;
    factors.push_back(4);
    n /= 2;
  }
  for (const int p : {4, 2, 5, 3}) {
    for (; n % p == 0; n /= p) factors.push_back(p);
  }
  for (int p = 7; p <= kLargestFactor; p += 2) {
    for (; n % p == 0; n /= p) factors.push_back(p);
  }
  return factors;
}

}  // namespace

bool has_small_factors(int64_t n) {
  for (int64_t p = 2; p <= kLargestFactor; ++p) {
    while (n % p == 0) n /= p;
  }
  return n == 1;
}

RootsOfUnity::RootsOfUnity(int64_t n) {
  while (int64_t{1} << (2 * bits_) < n) ++bits_;
  const int64_t step = int64_t{1} << bits_;
  for (int64_t k = 0; k < step; ++k) fine_.push_back(root_of_unity(k, n));
  for (int64_t k = 0; k < n; k += step) coarse_.push_back(root_of_unity(k, n));
}

template <class T>
int64_t Chirp<T>::padded(int64_t n) {
  int64_t power = 16;
  while (power < 2 * n - 1) power *= 2;
  if (power / 8 * 5 >= 2 * n - 1) return power / 8 * 5;
  if (power / 4 * 3 >= 2 * n - 1) return power / 4 * 3;
  return power;
}

template <class T>
Chirp<T>::Chirp(int64_t n) : factors(n), kernel(padded(n)) {
  const int64_t m = padded(n);
  for (int64_t k = n; k <= m - n; ++k) kernel[k] = T(0);
  uint64_t square = 0;  // k^2 mod 2 n
  for (int64_t k = 0; k < n; ++k) {
    const complex<double> w = root_of_unity(static_cast<int64_t>(square), 2 * n);
    factors[k] = complex<T>(w);
    kernel[k] = kernel[k == 0 ? 0 : m - k] = complex<T>(conj(w) / static_cast<double>(m));
    square = (square + 2 * static_cast<uint64_t>(k) + 1) % (2 * static_cast<uint64_t>(n));
  }
}

template <class T>
FftTable<T>::FftTable(int64_t n) : n_(n), roots_(2 * n) {
  if (!has_small_factors(n)) {
    chirp_ = std::make_unique<Chirp<T>>(n);
    const int64_t m = Chirp<T>::padded(n);
    padded_ = of(m);
    // All lanes hold the kernel; the result is read from lane 0.
    const FftWorkspace<T> space(m, m);
    const FftPlanes<T>& data = space.data;
    for (int64_t k = 0; k < m; ++k) {
      data.re[k] = FftVector<T>{} + chirp_->kernel[k].real();
      data.im[k] = FftVector<T>{} + chirp_->kernel[k].imag();
    }
    const FftPlanes<T> result = (*padded_)(data, space.work);
    for (int64_t k = 0; k < m; ++k) chirp_->kernel[k] = complex<T>(result.re[k][0], result.im[k][0]);
    return;
  }
  int64_t length = n, done = 1;
  for (const int radix : factors_of(n)) {
    Pass pass{radix, length / radix, done, {}, {}};
    for (int64_t p = 0; p < pass.rest; ++p) {
      for (int64_t k = 1; k < radix; ++k) {
        const complex<double> w = root_of_unity(p * k, length);
        pass.twiddles.push_back(static_cast<T>(w.real()));
        pass.twiddles.push_back(static_cast<T>(w.imag()));
      }
    }
    for (int64_t j = 0; j < radix; ++j) {
      const complex<double> w = root_of_unity(j, radix);
      pass.roots.push_back(static_cast<T>(w.real()));
      pass.roots.push_back(static_cast<T>(-w.imag()));
    }
    passes_.push_back(std::move(pass));
    length /= radix;
    done *= radix;
  }
}

template <class T>
template <int fixed_radix>
void FftTable<T>::run_pass(const Pass& pass, const FftPlanes<T>& from, const FftPlanes<T>& to) {
  const int radix = fixed_radix ? fixed_radix : pass.radix;
  const int64_t rest = pass.rest, done = pass.done;
  const T cos45 = static_cast<T>(std::numbers::sqrt2 / 2);
  for (int64_t p = 0; p < rest; ++p) {
    const T* twiddles = pass.twiddles.data() + 2 * (radix - 1) * p;
    for (int64_t q = 0; q < done; ++q) {
      Lanes<T> x[fixed_radix ? fixed_radix : kLargestFactor];
      const int64_t read = q + done * p, write = q + done * radix * p;
#pragma GCC unroll 8
      for (int j = 0; j < radix; ++j) x[j] = {from.re[read + done * rest * j], from.im[read + done * rest * j]};
      if constexpr (fixed_radix == 8) {
        butterfly8(x, cos45);
      } else if constexpr (fixed_radix == 4) {
        butterfly4(x[0], x[1], x[2], x[3]);
      } else if constexpr (fixed_radix == 2) {
        butterfly2(x);
      } else {
        Lanes<T> folded[fixed_radix ? fixed_radix : kLargestFactor];
        butterfly_odd(x, radix, pass.roots.data(), folded);
      }
      to.re[write] = x[0].re;
      to.im[write] = x[0].im;
#pragma GCC unroll 8
      for (int k = 1; k < radix; ++k) {
        const Lanes<T> y = times(x[k], twiddles[2 * k - 2], twiddles[2 * k - 1]);
        to.re[write + done * k] = y.re;
        to.im[write + done * k] = y.im;
      }
    }
  }
}

template <class T>
FftPlanes<T> FftTable<T>::operator()(const FftPlanes<T>& data, const FftPlanes<T>& work) const {
  if (chirp_) return convolve(data, work);
  FftPlanes<T> from = data, to = work;
  for (const Pass& pass : passes_) {
    switch (pass.radix) {
      case 2: run_pass<2>(pass, from, to); break;
      case 3: run_pass<3>(pass, from, to); break;
      case 4: run_pass<4>(pass, from, to); break;
      case 5: run_pass<5>(pass, from, to); break;
      case 7: run_pass<7>(pass, from, to); break;
      case 8: run_pass<8>(pass, from, to); break;
      default: run_pass<0>(pass, from, to); break;
    }
    std::swap(from, to);
  }
  return from;
}

// See Note [Transforms of real lines].
template <class T>
FftPlanes<T> FftTable<T>::real_to_half(const FftPlanes<T>& data, const FftPlanes<T>& work) const {
  const FftPlanes<T> z = (*this)(data, work), to = z.re == data.re ? work : data;
  for (int64_t k = 0; k <= n_; ++k) {
    const int64_t at = k == n_ ? 0 : k, mirror = k == 0 ? 0 : n_ - k;
    const Lanes<T> a{z.re[at], z.im[at]}, b{z.re[mirror], -z.im[mirror]};
    const complex<T> root(roots_[k]);
    const Lanes<T> x = a + b + times(times_minus_i(a - b), root.real(), root.imag());
    to.re[k] = x.re;
    to.im[k] = x.im;
  }
  return to;
}

template <class T>
FftPlanes<T> FftTable<T>::half_to_real(const FftPlanes<T>& data, const FftPlanes<T>& work) const {
  work.im[0] = work.im[n_] = FftVector<T>{};  // frequencies 0 and n count as real
  for (int64_t k = 0; k < n_; ++k) {
    const Lanes<T> a{work.re[k], work.im[k]}, b{work.re[n_ - k], -work.im[n_ - k]};
    const complex<T> root(roots_[k]);
    const Lanes<T> z = a + b - times_minus_i(times(a - b, root.real(), -root.imag()));
    data.re[k] = z.re;
    data.im[k] = z.im;
  }
  return (*this)(data.swapped(), work.swapped()).swapped();
}

// See Note [Transforms of prime length].
template <class T>
FftPlanes<T> FftTable<T>::convolve(const FftPlanes<T>& data, const FftPlanes<T>& work) const {
  using V = FftVector<T>;
  const int64_t m = padded_->n_;
  const auto multiply = [](const FftPlanes<T>& to, const FftPlanes<T>& from, const complex<T>* factors, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
      const Lanes<T> product = times(Lanes<T>{from.re[k], from.im[k]}, factors[k].real(), factors[k].imag());
      to.re[k] = product.re;
      to.im[k] = product.im;
    }
  };
  const FftPlanes<T> first = work, second{work.re + m + FftWorkspace<T>::kApart, work.im + m + FftWorkspace<T>::kApart};
  multiply(first, data, chirp_->factors.data(), n_);
  for (int64_t k = n_; k < m; ++k) first.re[k] = first.im[k] = V{};
  const FftPlanes<T> spectrum = (*padded_)(first, second);
  multiply(spectrum, spectrum, chirp_->kernel.data(), m);
  const bool in_first = spectrum.re == first.re;
  const FftPlanes<T> result = (*padded_)(spectrum.swapped(), (in_first ? second : first).swapped()).swapped();
  multiply(data, result, chirp_->factors.data(), n_);
  return data;
}

template struct Chirp<float>;
template struct Chirp<double>;
template class FftTable<float>;
template class FftTable<double>;

}  // namespace rush::cpu
