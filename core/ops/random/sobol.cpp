#include "core/ops/random/sobol.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error/error.h"
#include "core/ops/random/random_factories.h"

namespace rush::quasirandom {

namespace {

// Whether x generates the field of 2^degree elements that the polynomial, whose constant term is 1, defines.
bool is_primitive(uint32_t polynomial, int degree) {
  const uint32_t order = (1u << degree) - 1;
  uint32_t power = 1;
  for (uint32_t i = 1;; ++i) {
    power <<= 1;
    if (power >> degree) power ^= polynomial;
    if (power == 1) return i == order;
  }
}

// Reads the table of initial numbers, front to back. m_i of a dimension is odd and below 2^i: its i - 1 bits without
// the last one are in the table, highest first, six bits in a character.
class InitialNumbers {
 public:
  uint32_t next(int i) {
    uint32_t number = 0;
    for (int bit = 1; bit < i; ++bit, ++at_) {
      number = number << 1 | ((static_cast<uint32_t>(kPacked[at_ / 6] - '0') >> (5 - at_ % 6)) & 1);
    }
    return number << 1 | 1;
  }

 private:
  static constexpr const char* kPacked =
#include "core/ops/random/sobol_numbers.inc"
      ;
  size_t at_ = 0;
};

// Direction numbers v_b of a dimension, v_b = m_{b+1} 2^(kBits-1-b). Bratley and Fox (1988), Algorithm 659: a
// polynomial x^s + a_1 x^(s-1) + ... + 1 gives v_b = a_1 v_{b-1} ^ ... ^ v_{b-s} ^ (v_{b-s} >> s).
void set_directions(uint32_t polynomial, InitialNumbers& initial, uint32_t* v, int64_t stride) {
  const int degree = std::bit_width(polynomial) - 1;
  for (int b = 0; b < SobolEngine::kBits; ++b) {
    if (b < std::max(degree, 1)) {
      v[b * stride] = (degree == 0 ? 1 : initial.next(b + 1)) << (SobolEngine::kBits - 1 - b);
      continue;
    }
    uint32_t next = degree == 0 ? v[(b - 1) * stride] >> 1 : v[(b - degree) * stride] >> degree;
    for (int k = 1; k <= degree; ++k) {
      if (polynomial >> (degree - k) & 1) next ^= v[(b - k) * stride];
    }
    v[b * stride] = next;
  }
}

void check_count(const char* op, int64_t n, int64_t generated) {
  RUSH_CHECK_VALUE(n >= 0, op, ": expected a number of points of at least 0, got ", n);
  constexpr int64_t kMost = int64_t{1} << SobolEngine::kBits;
  RUSH_CHECK_VALUE(n <= kMost - generated, op, ": a Sobol' sequence has 2^", SobolEngine::kBits, " points; ", generated,
                   " are used, and ", n, " more were asked for");
}

}  // namespace

SobolEngine::SobolEngine(int64_t dimension, bool scramble, std::optional<uint64_t> seed, Device device)
    : dimension_(dimension), device_(device) {
  RUSH_CHECK_VALUE(dimension >= 1 && dimension <= kMaxDimension, "SobolEngine: expected a dimension from 1 to ",
                   kMaxDimension, ", got ", dimension);
  directions_.resize(static_cast<size_t>(kBits * dimension));
  shift_.resize(static_cast<size_t>(dimension));
  InitialNumbers initial;
  set_directions(1, initial, directions_.data(), dimension);
  uint32_t polynomial = 1;
  for (int64_t d = 1; d < dimension; ++d) {
    do polynomial += 2;
    while (!is_primitive(polynomial, std::bit_width(polynomial) - 1));
    set_directions(polynomial, initial, directions_.data() + d, dimension);
  }
  if (scramble) this->scramble(seed);
}

// Multiplies the binary digits of every direction by a lower triangular matrix of ones and random bits, most
// significant digit first.
void SobolEngine::scramble(std::optional<uint64_t> seed) {
  const OptionalGenerator generator =
      seed ? OptionalGenerator(make_generator<CPUGeneratorImpl>(*seed)) : OptionalGenerator();
  const Tensor bits = randint(2, {dimension_, kBits + 1, kBits}, generator, TensorOptions(kBool).device(kCPU));
  const bool* random = bits.const_data_ptr<bool>();
  const auto row = [&](int64_t d, int r) {
    uint32_t digits = 0;
    for (int c = 0; c < kBits; ++c) digits = digits << 1 | uint32_t{random[(d * (kBits + 1) + r) * kBits + c]};
    return digits;
  };
  for (int64_t d = 0; d < dimension_; ++d) {
    uint32_t matrix[kBits];
    for (int r = 0; r < kBits; ++r) {
      const uint32_t diagonal = 1u << (kBits - 1 - r);
      matrix[r] = (row(d, r) & ~(diagonal - 1)) | diagonal;
    }
    for (int b = 0; b < kBits; ++b) {
      uint32_t& direction = directions_[static_cast<size_t>(b * dimension_ + d)];
      uint32_t product = 0;
      for (const uint32_t digits : matrix) product = product << 1 | (std::popcount(digits & direction) & 1u);
      direction = product;
    }
    shift_[static_cast<size_t>(d)] = row(d, kBits);
  }
}

// Points first, first + step, ... of the sequence, (count, dimension) int32; shifted or not.
Tensor SobolEngine::points(int64_t first, int64_t count, int log2_step, bool shifted) const {
  Tensor result = empty({count, dimension_}, TensorOptions(kInt32).device(kCPU));
  auto* row = result.data_ptr<int32_t>();
  for (int64_t i = 0; i < count; ++i, row += dimension_) {
    const int64_t number = first + (i << log2_step);
    std::memcpy(row, shift_.data(), shift_.size() * sizeof shift_[0]);
    if (!shifted) std::fill_n(row, dimension_, 0);
    for (auto gray = static_cast<uint64_t>(number ^ (number >> 1)); gray != 0; gray &= gray - 1) {
      const uint32_t* v = directions_.data() + std::countr_zero(gray) * dimension_;
      for (int64_t d = 0; d < dimension_; ++d) row[d] ^= static_cast<int32_t>(v[d]);
    }
  }
  return result.to(device_);
}

// Point n = high 2^k + low is point(high 2^k) ^ point(low), because Gray codes are linear over bits. Two short tables
// on the host and one broadcast operation on the device therefore make any number of points.
Tensor SobolEngine::draw(int64_t n, ScalarType dtype) {
  check_count("SobolEngine::draw", n, num_generated_);
  RUSH_CHECK_TYPE(is_floating_point(dtype), "SobolEngine::draw: expected a floating dtype, got ", dtype);
  const int k = std::bit_width(static_cast<uint64_t>(n)) / 2;
  const int64_t low = int64_t{1} << k, skipped = num_generated_ & (low - 1);
  const int64_t begin = num_generated_ - skipped, count = (skipped + n + low - 1) >> k;
  const Tensor numbers = points(begin, count, k, true).unsqueeze(1).bitwise_xor(points(0, low, 0, false).unsqueeze(0));
  Tensor drawn = numbers.reshape({-1, dimension_}).narrow(0, skipped, n);
  drawn = drawn.to(dtype == kFloat64 ? kFloat64 : kFloat32).mul_(1.0 / (1 << kBits)).to(dtype);
  num_generated_ += n;
  return drawn;
}

Tensor SobolEngine::draw_base2(int m, ScalarType dtype) {
  RUSH_CHECK_VALUE(m >= 0 && m <= kBits, "SobolEngine::draw_base2: expected an exponent from 0 to ", kBits, ", got ",
                   m);
  const auto total = static_cast<uint64_t>(num_generated_ + (int64_t{1} << m));
  RUSH_CHECK_VALUE(std::has_single_bit(total), "SobolEngine::draw_base2: ", num_generated_, " + 2^", m, " = ", total,
                   " points are no power of two, and hence not balanced; draw() takes any number");
  return draw(int64_t{1} << m, dtype);
}

SobolEngine& SobolEngine::reset() {
  num_generated_ = 0;
  return *this;
}

SobolEngine& SobolEngine::fast_forward(int64_t n) {
  check_count("SobolEngine::fast_forward", n, num_generated_);
  num_generated_ += n;
  return *this;
}

}  // namespace rush::quasirandom
