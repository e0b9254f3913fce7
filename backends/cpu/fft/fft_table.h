// Fourier transforms of several lines in vector registers, and the tables that they need.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backends/cpu/fft/fft_lanes.h"
#include "backends/cpu/scratch.h"
#include "core/complex.h"

namespace rush::cpu {

// Transform(n), from a cache. The tables in the cache have at most 2^24 numbers together; a larger table is cached
// alone.
template <class Transform>
std::shared_ptr<const Transform> kept_transform(int64_t n) {
  constexpr int64_t kMostNumbers = int64_t{1} << 24;
  struct Kept {
    std::mutex mutex;
    std::map<int64_t, std::shared_ptr<const Transform>> transforms;
    int64_t numbers = 0;
  };
  static auto& kept = *new Kept;
  {
    const std::lock_guard<std::mutex> lock(kept.mutex);
    const auto found = kept.transforms.find(n);
    if (found != kept.transforms.end()) return found->second;
  }
  const auto made = std::make_shared<const Transform>(n);  // without the lock: it may call kept_transform
  const std::lock_guard<std::mutex> lock(kept.mutex);
  if (kept.numbers + made->table_numbers() > kMostNumbers) {  // their users keep cleared transforms alive
    kept.transforms.clear();
    kept.numbers = 0;
  }
  if (kept.transforms.emplace(n, made).second) kept.numbers += made->table_numbers();
  return made;
}

// Whether all prime factors of n are small enough to do without the convolution of Note [Transforms of prime length].
bool has_small_factors(int64_t n);

// The roots of unity e^(-2 pi i k/n), 0 <= k < n. Each is the product of two from tables of about sqrt(n) each.
class RootsOfUnity {
 public:
  explicit RootsOfUnity(int64_t n);
  complex<double> operator[](int64_t k) const {
    return coarse_[static_cast<size_t>(k >> bits_)] * fine_[static_cast<size_t>(k & ((int64_t{1} << bits_) - 1))];
  }

 private:
  int bits_ = 0;
  std::vector<complex<double>> coarse_, fine_;
};

// Note [Transforms of real lines]
// Let x be 2 n real numbers and z_j = x_2j + i x_2j+1. The frequencies of z are Z_k = E_k + i O_k, where E and O are
// the frequencies of the even and of the odd numbers: E_k = (Z_k + conj Z_n-k) / 2 and O_k = (Z_k - conj Z_n-k) / 2i.
// The frequencies of x are X_k = E_k + w^k O_k with w = e^(-2 pi i/2n), for k from 0 to n. (A line as the real and
// another as the imaginary part would be as fast, but rounding errors, infinities and NaN of one would reach the
// other.)

// Note [Transforms of prime length]
// With jk = (j^2 + k^2 - (k - j)^2) / 2 and w = e^(-2 pi i/n), X_k = w^(k^2/2) sum over j of (x_j w^(j^2/2))
// w^(-(k-j)^2/2): a convolution of two sequences, which transforms of any length m >= 2 n - 1 compute (Bluestein, "A
// linear filtering approach to the computation of the discrete Fourier transform", 1970). The chirp w^(k^2/2) has the
// period 2 n in k^2, so that its angle is exact for every k.
template <class T>
struct Chirp {
  // w^(k^2/2) for 0 <= k < n: the factors before and after the convolution.
  Scratch<complex<T>> factors;
  // The m numbers w^(-k^2/2) / m. The user of a Chirp replaces them by their transform.
  Scratch<complex<T>> kernel;

  explicit Chirp(int64_t n);
  // The least m that is a power of two, or three or five times one.
  static int64_t padded(int64_t n);
};

// Memory for the planes of a transform. kApart vectors separate the planes: with a power of two between them, the
// numbers that a pass reads and writes together would be in the same set of the cache.
template <class T>
struct FftWorkspace {
  static constexpr int64_t kApart = 8;
  Scratch<T> memory;
  FftPlanes<T> data, work;
  FftWorkspace(int64_t points, int64_t work_points) : memory((2 * (points + work_points) + 4 * kApart) * kFftLanes<T>) {
    auto* vectors = reinterpret_cast<FftVector<T>*>(memory.data());
    const auto take = [&](int64_t count) { return std::exchange(vectors, vectors + count + kApart); };
    data.re = take(points);
    data.im = take(points);
    work.re = take(work_points);
    work.im = take(work_points);
  }
};

// Transforms n points of kFftLanes<T> lines at a time, without dividing by n.
template <class T>
class FftTable {
 public:
  static std::shared_ptr<const FftTable> of(int64_t n) { return kept_transform<FftTable>(n); }
  explicit FftTable(int64_t n);

  int64_t table_numbers() const { return 2 * (chirp_ ? n_ + padded_->n_ : n_); }
  int64_t work_points() const { return chirp_ ? 2 * padded_->n_ + FftWorkspace<T>::kApart : n_; }
  // Transforms `data` forward. Returns the planes that hold the result, which are `data` or `work`.
  FftPlanes<T> operator()(const FftPlanes<T>& data, const FftPlanes<T>& work) const;
  // Twice the frequencies 0 to n of 2 n real numbers, of which `data` holds pairs. `data` and `work` must have n + 1
  // points.
  FftPlanes<T> real_to_half(const FftPlanes<T>& data, const FftPlanes<T>& work) const;
  // The inverse of real_to_half, from n + 1 frequencies in `work`, without dividing by 2 n.
  FftPlanes<T> half_to_real(const FftPlanes<T>& data, const FftPlanes<T>& work) const;

 private:
  // Note [Passes of a transform]
  // For n = r m, a transform is m transforms of r points, products with twiddles, and r transforms of m points. Each
  // pass does the first two for one factor r (radix). Before it there are `done` interleaved sequences of length r *
  // rest; afterwards there are r * done of length `rest`. A pass writes to other memory in the order that sorts the
  // frequencies (Stockham; C. Van Loan, "Computational frameworks for the fast Fourier transform", 1992).
  struct Pass {
    int radix;
    int64_t rest, done;
    std::vector<T> twiddles;  // [rest][radix - 1][2]: e^(-2 pi i pk/length) for point p and frequency k > 0
    std::vector<T> roots;     // [radix][2]: the cosine and the sine of 2 pi j/radix
  };
  template <int fixed_radix>
  static void run_pass(const Pass& pass, const FftPlanes<T>& from, const FftPlanes<T>& to);
  FftPlanes<T> convolve(const FftPlanes<T>& data, const FftPlanes<T>& work) const;

  int64_t n_;
  RootsOfUnity roots_;  // of 2 n
  std::vector<Pass> passes_;
  // If n has a large prime factor.
  std::unique_ptr<Chirp<T>> chirp_;
  std::shared_ptr<const FftTable> padded_;
};

extern template struct Chirp<float>;
extern template struct Chirp<double>;
extern template class FftTable<float>;
extern template class FftTable<double>;

}  // namespace rush::cpu
