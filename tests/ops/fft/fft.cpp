#include "core/ops/fft/fft.h"

#include <cmath>
#include <complex>
#include <limits>
#include <thread>

#include "tests/ops/index/index_testing.h"

namespace {

using namespace rush;
using rush::testing::check_gradients;
using rush::testing::Doubles;
using rush::testing::largest;
using rush::testing::leaf;
using rush::testing::values;

using Complexes = std::vector<std::complex<double>>;

Tensor real_signal(IntArrayRef sizes, ScalarType dtype = kFloat64, double phase = 0) {
  const Tensor t = zeros(sizes, kFloat64);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const auto x = static_cast<double>(i);
    t.data_ptr<double>()[i] = std::sin(1.7 * x + 0.3 * x * x + phase);
  }
  return t.to(dtype);
}
Tensor complex_signal(DimVector sizes, ScalarType dtype = kComplex128, double phase = 0) {
  sizes.push_back(2);
  return view_as_complex(real_signal(sizes, kFloat64, phase)).to(dtype);
}

Complexes numbers(const Tensor& t) {
  const Doubles parts = values(view_as_real(t.to(kComplex128)));
  Complexes result;
  for (size_t i = 0; i < parts.size(); i += 2) result.emplace_back(parts[i], parts[i + 1]);
  return result;
}

// The definition, summed in long double: X_k = sum over j of x_j e^(sign 2 pi i jk/n).
Complexes naive_dft(const Complexes& x, int sign) {
  const size_t n = x.size();
  const long double turn = 2 * std::acos(-1.0L) / static_cast<long double>(n);
  std::vector<std::complex<long double>> roots;
  for (size_t k = 0; k < n; ++k) roots.push_back(std::polar(1.0L, static_cast<long double>(sign) * turn * k));
  Complexes result;
  for (size_t k = 0; k < n; ++k) {
    std::complex<long double> sum = 0;
    for (size_t j = 0; j < n; ++j) sum += std::complex<long double>(x[j]) * roots[j * k % n];
    result.emplace_back(sum);
  }
  return result;
}

// Over one dimension of a tensor, line by line.
Tensor naive_dft(const Tensor& x, int64_t dim, int sign) {
  const Tensor rows = x.to(kComplex128).transpose(dim, -1).contiguous();
  const Complexes all = numbers(rows);
  const auto n = static_cast<ptrdiff_t>(rows.size(-1));
  const Tensor out = empty_like(rows);
  auto* to = reinterpret_cast<std::complex<double>*>(out.data_ptr());
  for (auto line = all.begin(); line != all.end(); line += n) {
    for (const auto& number : naive_dft(Complexes(line, line + n), sign)) *to++ = number;
  }
  return out.transpose(dim, -1);
}

// Relative to the largest frequency: what a transform's rounding errors are proportional to.
void check_spectrum(const Tensor& a, const Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  if (a.numel() == 0) return;
  const double error = largest(a.to(b.scalar_type()) - b), size = largest(b);
  CHECK(error <= (to_real(a.scalar_type()) == kFloat32 ? 2e-6 : 1e-12) * (size + 1e-3));
}

// Powers, primes that are transformed as they are and larger ones, alone and in products.
const int64_t kLengths[] = {1,  2,  3,  4,   5,   6,   7,   8,   9,   12,  13,  16,  17,   25,   30,
                            60, 64, 97, 101, 127, 128, 202, 210, 243, 256, 509, 606, 1009, 1024, 1021 * 3};

TEST_CASE("fft, ifft: the definition, at many lengths") {
  for (const int64_t n : kLengths) {
    CAPTURE(n);
    const Tensor x = complex_signal({n});
    const Tensor expected = naive_dft(x, 0, -1), back = naive_dft(x, 0, 1);
    for (const ScalarType dtype : {kComplex128, kComplex64}) {
      const Tensor signal = x.to(dtype), spectrum = fft::fft(signal);
      CHECK(spectrum.scalar_type() == dtype);
      const Tensor of_rounded = dtype == kComplex128 ? expected : naive_dft(signal, 0, -1);
      check_spectrum(spectrum, of_rounded);
      check_spectrum(fft::ifft(spectrum), signal.to(kComplex128));
    }
    check_spectrum(fft::ifft(x, std::nullopt, -1, "forward"), back);
    check_spectrum(fft::ifft(x), back / static_cast<double>(n));
    check_spectrum(fft::ifft(x, std::nullopt, 0, "ortho"), back / std::sqrt(static_cast<double>(n)));
    check_spectrum(fft::fft(x, std::nullopt, -1, "ortho"), expected / std::sqrt(static_cast<double>(n)));
    check_spectrum(fft::fft(x, std::nullopt, -1, "forward"), expected / static_cast<double>(n));
    check_spectrum(fft::fft(x, std::nullopt, -1, "backward"), expected);
  }
}

TEST_CASE("rfft, irfft, hfft, ihfft: the definition, at many lengths") {
  for (const int64_t n : kLengths) {
    CAPTURE(n);
    for (const ScalarType dtype : {kFloat64, kFloat32}) {
      const Tensor x = real_signal({n}, dtype);
      const Tensor expected = naive_dft(x, 0, -1);
      const Tensor half = fft::rfft(x);
      CHECK(half.scalar_type() == to_complex(dtype));
      check_spectrum(half, expected.narrow(0, 0, n / 2 + 1));
      check_spectrum(fft::fft(x), expected);
      check_spectrum(fft::ifft(x), expected.conj() / static_cast<double>(n));
      check_spectrum(fft::irfft(half, n), x.to(kFloat64));
      check_spectrum(fft::ihfft(x), expected.narrow(0, 0, n / 2 + 1).conj() / static_cast<double>(n));
      check_spectrum(fft::hfft(fft::ihfft(x), n), x.to(kFloat64));
      if (n > 1 && n % 2 == 0) check_spectrum(fft::irfft(half), x.to(kFloat64));
    }
  }
  // Frequency 0, and the middle one of an even number, count as real.
  const Tensor odd = fft::irfft(complex_signal({3}), 4), real_ends = complex_signal({3});
  real_ends.narrow(0, 0, 1).copy_(real_ends.narrow(0, 0, 1).abs() * 0 + real(real_ends.narrow(0, 0, 1)));
  real_ends.narrow(0, 2, 1).copy_(real(real_ends.narrow(0, 2, 1)));
  check_spectrum(odd, fft::irfft(real_ends, 4));
}

TEST_CASE("fft: n cuts the input or adds zeros") {
  const Tensor x = complex_signal({3, 7});
  for (const int64_t n : {1, 4, 7, 8, 103}) {
    const Tensor shown = n <= 7 ? x.narrow(1, 0, n) : constant_pad_nd(x, {0, n - 7});
    check_spectrum(fft::fft(x, n), naive_dft(shown, 1, -1));
    check_spectrum(fft::ifft(x, n, 1, "forward"), naive_dft(shown, 1, 1));
    check_spectrum(fft::rfft(real(x), n), naive_dft(real(shown), 1, -1).narrow(1, 0, n / 2 + 1));
    check_spectrum(fft::irfft(fft::rfft(real(x), n), n), real(shown));
  }
  check_spectrum(fft::fftn(x, IntArrayRef{5, -1}),
                 naive_dft(naive_dft(constant_pad_nd(x, {0, 0, 0, 2}), 0, -1), 1, -1));
}

// Tensors of the same elements that lie in memory in other ways.
std::vector<Tensor> layouts(const Tensor& x) {
  const Tensor wide = zeros({x.size(0), 2 * x.size(1), x.size(2) + 3}, x.options());
  const Tensor skipping = wide.slice(1, 1, std::nullopt, 2).narrow(2, 2, x.size(2));
  skipping.copy_(x);
  return {x, x.permute({2, 0, 1}).contiguous().permute({1, 2, 0}), skipping,
          x.transpose(0, 1).contiguous().transpose(0, 1)};
}

TEST_CASE("fft: every dimension, every layout, several dimensions") {
  const DimVector sizes = {4, 11, 6};
  for (const int threads : {1, 3}) {
    const int before = get_num_threads();
    set_num_threads(threads);
    for (const Tensor& x : layouts(complex_signal(sizes))) {
      for (const int64_t d : {0, 1, 2, -1}) check_spectrum(fft::fft(x, std::nullopt, d), naive_dft(x, d, -1));
      const Tensor last_two = naive_dft(naive_dft(x, 1, -1), 2, -1), all = naive_dft(last_two, 0, -1);
      check_spectrum(fft::fft2(x), last_two);
      check_spectrum(fft::fft2(x, std::nullopt, {2, 0}), naive_dft(naive_dft(x, 0, -1), 2, -1));
      check_spectrum(fft::fftn(x), all);
      check_spectrum(fft::ifftn(all), x);
      check_spectrum(fft::ifft2(last_two), x);
      check_spectrum(fft::fftn(x, std::nullopt, {2, 0, 1}), all);
      check_spectrum(fft::fftn(x, std::nullopt, std::nullopt, "ortho"), all / std::sqrt(4.0 * 11 * 6));
    }
    for (const Tensor& x : layouts(real_signal(sizes))) {
      const Tensor all = naive_dft(naive_dft(naive_dft(x, 0, -1), 1, -1), 2, -1);
      check_spectrum(fft::rfftn(x), all.narrow(2, 0, 4));
      check_spectrum(fft::irfftn(fft::rfftn(x)), x);
      check_spectrum(fft::rfftn(x, std::nullopt, {2, 1}), naive_dft(naive_dft(x, 2, -1), 1, -1).narrow(1, 0, 6));
      check_spectrum(fft::irfft2(fft::rfft2(x)), x);
      check_spectrum(fft::irfftn(fft::rfftn(x, std::nullopt, {2, 1}), {6, 11}, {2, 1}), x);
      check_spectrum(fft::fftn(x), all);
      check_spectrum(fft::ihfftn(x), all.narrow(2, 0, 4).conj() / (4.0 * 11 * 6));
      check_spectrum(fft::hfftn(fft::ihfftn(x)), x);
      check_spectrum(fft::hfft2(fft::ihfft2(x)), x);
      check_spectrum(ops::_fft_r2c(x, {0, 1, 2}, 0, false), all);
      check_spectrum(ops::_fft_r2c(x, {1, 0}, 0, false), naive_dft(naive_dft(x, 0, -1), 1, -1));
    }
    const Tensor same = real_signal({1, 1, 6}).expand({4, 11, 6});
    check_spectrum(fft::rfft(same), naive_dft(same, 2, -1).narrow(2, 0, 4));
    set_num_threads(before);
  }
}

TEST_CASE("fft: long lines and many of them, on several threads") {
  const int before = get_num_threads();
  set_num_threads(3);
  const Tensor one = complex_signal({1 << 15});  // fewer lines than threads
  const Tensor back = fft::ifft(fft::fft(one));
  check_spectrum(back, one);
  const double energy = one.abs().square().sum().item<double>();  // Parseval's theorem
  CHECK(fft::fft(one, std::nullopt, -1, "ortho").abs().square().sum().item<double>() == doctest::Approx(energy));
  const Tensor many = real_signal({129, 257});
  check_spectrum(fft::irfft(fft::rfft(many), 257), many);
  check_spectrum(fft::irfft(fft::rfft(many, std::nullopt, 0), 129, 0), many);
  check_spectrum(fft::rfft(many).narrow(0, 77, 1), naive_dft(many.narrow(0, 77, 1), 1, -1).narrow(1, 0, 129));
  set_num_threads(before);
}

// Some of the frequencies of one long line, each by the definition.
void check_frequencies(const Tensor& spectrum, const Tensor& line) {
  const Complexes x = numbers(line), found = numbers(spectrum);
  const auto n = static_cast<int64_t>(x.size());
  const long double turn = -2 * std::acos(-1.0L) / static_cast<long double>(n);
  const double size = line.abs().square().sum().sqrt().item<double>();  // what a frequency of noise has
  const double tolerance = to_real(spectrum.scalar_type()) == kFloat32 ? 2e-6 : 1e-13;
  for (const int64_t k : {int64_t{1}, n / 3, n / 2, n - 1}) {
    if (k >= static_cast<int64_t>(found.size())) continue;
    CAPTURE(k);
    std::complex<long double> sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      const long double angle = turn * static_cast<long double>(j * k % n);
      sum += std::complex<long double>(x[static_cast<size_t>(j)]) * std::polar(1.0L, angle);
    }
    CHECK(std::abs(std::complex<double>(sum) - found[static_cast<size_t>(k)]) <= tolerance * size);
  }
}

TEST_CASE("fft: long lines, alone and few together") {
  const int before = get_num_threads();
  // Powers, products of small primes, an odd one, a prime and twice a prime, which are convolutions; lines above and
  // below what is transformed side by side.
  for (const int64_t n : {256, 1000, 1009, 4096, 16384, 16807, 19683, 20000, 20011, 30030, 20014, 65536}) {
    CAPTURE(n);
    for (const ScalarType dtype : {kFloat64, kFloat32}) {
      set_num_threads(dtype == kFloat64 ? 3 : 1);
      for (const int64_t lines : {1, 3}) {
        CAPTURE(lines);
        const Tensor z = complex_signal({lines, n}, to_complex(dtype), 1), x = real_signal({lines, n}, dtype, 2);
        const Tensor spectrum = fft::fft(z), half = fft::rfft(x);
        check_frequencies(spectrum[lines - 1], z[lines - 1]);
        check_frequencies(half[lines - 1], x[lines - 1]);
        check_spectrum(fft::ifft(spectrum), z.to(kComplex128));
        check_spectrum(fft::irfft(half, n), x.to(kFloat64));
        // Other ways to lie in memory: points apart from each other, real numbers that do not begin in pairs.
        check_spectrum(fft::fft(z.t().contiguous(), std::nullopt, 0).t(), spectrum);
        check_spectrum(fft::rfft(x.t().contiguous(), std::nullopt, 0).t(), half);
        check_spectrum(fft::irfft(half.t().contiguous(), n, 0).t(), x);
        const Tensor odd = zeros({lines, n + 1}, x.options()).narrow(1, 1, n);
        odd.copy_(x);
        check_spectrum(fft::rfft(odd), half);
      }
    }
  }
  const Tensor plane = complex_signal({3, 20000});
  check_spectrum(fft::fft2(plane), naive_dft(fft::fft(plane), 0, -1));
  set_num_threads(before);
}

TEST_CASE("fft: lines do not touch each other") {
  for (const int64_t n : {7, 16, 74, 1000, 20000}) {
    CAPTURE(n);
    // Of such different sizes that one line's rounding errors are larger than another; of the last nothing is left.
    const Tensor x = real_signal({40, n}, kFloat32), z = complex_signal({40, n}, kComplex64);
    for (int64_t i = 0; i < 39; ++i) {
      x[i].mul_(std::pow(10.0, 5 * (i % 6) - 12));
      z[i].mul_(std::pow(10.0, 5 * (i % 6) - 12));
    }
    for (const Tensor& t : {x, z}) t[39][n / 2].fill_(std::numeric_limits<double>::infinity());
    const Tensor half = fft::rfft(x), there = fft::fft(z), back = fft::irfft(half, n);
    for (int64_t i = 0; i < 39; ++i) {
      CHECK(largest(half[i] - fft::rfft(x[i])) <= 2e-6 * largest(half[i]));
      CHECK(largest(there[i] - fft::fft(z[i])) <= 2e-6 * largest(there[i]));
      CHECK(largest(back[i] - x[i]) <= 4e-6 * largest(x[i]));
    }
    CHECK(!half[39].abs().lt(std::numeric_limits<double>::infinity()).any().item<bool>());
  }
}

TEST_CASE("fft: called from several threads at once") {
  std::vector<Tensor> signals, expected;
  for (const int64_t n : {24, 127, 128}) {
    signals.push_back(real_signal({3, n}));
    expected.push_back(naive_dft(signals.back(), 1, -1).narrow(1, 0, n / 2 + 1));
  }
  std::vector<double> errors(4, 1.0);
  std::vector<std::string> thrown(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < errors.size(); ++t) {
    threads.emplace_back([&, t] {
      try {
        double worst = 0;
        for (size_t i = 0; i < 30; ++i) {
          const size_t which = (i + t) % signals.size();
          worst = std::max(worst, largest(fft::rfft(signals[which]) - expected[which]));
        }
        errors[t] = worst;
      } catch (const Error& error) {
        thrown[t] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& message : thrown) CHECK(message == "");
  for (const double error : errors) CHECK(error < 1e-10);
}

TEST_CASE("fft: dtypes and empty tensors") {
  CHECK(fft::fft(arange(4)).scalar_type() == kComplex64);
  CHECK(fft::rfft(arange(4).to(kBool)).scalar_type() == kComplex64);
  CHECK(fft::hfft(arange(4)).scalar_type() == kFloat32);
  CHECK(fft::fftn(tensor(2.0)).item<double>() == 2);
  CHECK(fft::fft(empty({0, 3}, kComplex128)).sizes() == IntArrayRef{0, 3});
  CHECK(fft::rfft(empty({2, 0, 5}, kFloat64)).sizes() == IntArrayRef{2, 0, 3});
  CHECK(fft::irfft(empty({0, 5}, kComplex64)).sizes() == IntArrayRef{0, 8});
  const Tensor meta = empty({3, 5}, TensorOptions(kFloat32).device(kMeta));
  CHECK(fft::fft(meta).sizes() == IntArrayRef{3, 5});
  CHECK(fft::rfft2(meta).sizes() == IntArrayRef{3, 3});
  CHECK(fft::irfft(meta, 6).scalar_type() == kFloat32);
  CHECK(fft::ihfft(meta, 7).sizes() == IntArrayRef{3, 4});
}

TEST_CASE("fftshift, ifftshift, fftfreq, rfftfreq") {
  CHECK(values(fft::fftshift(arange(5))) == Doubles{3, 4, 0, 1, 2});
  CHECK(values(fft::ifftshift(fft::fftshift(arange(5)))) == Doubles{0, 1, 2, 3, 4});
  CHECK(values(fft::fftshift(arange(6).view({2, 3}))) == Doubles{5, 3, 4, 2, 0, 1});
  CHECK(values(fft::fftshift(arange(6).view({2, 3}), -1)) == Doubles{2, 0, 1, 5, 3, 4});
  CHECK(values(fft::ifftshift(arange(6).view({2, 3}), 1)) == Doubles{1, 2, 0, 4, 5, 3});
  CHECK(values(fft::fftfreq(5, 0.5, kFloat64)) == Doubles{0, 0.4, 0.8, -0.8, -0.4});
  CHECK(values(fft::fftfreq(4, kFloat64)) == Doubles{0, 0.25, -0.5, -0.25});
  CHECK(values(fft::fftfreq(1, kFloat64)) == Doubles{0});
  CHECK(values(fft::rfftfreq(5, 0.5, kFloat64)) == Doubles{0, 0.4, 0.8});
  CHECK(values(fft::rfftfreq(4, kFloat64)) == Doubles{0, 0.25, 0.5});
  CHECK(fft::fftfreq(3).scalar_type() == kFloat32);
  CHECK(fft::rfftfreq(3, TensorOptions(kFloat32).requires_grad(true)).requires_grad());
  CHECK_THROWS_AS(fft::fftfreq(0), ValueError);
  CHECK_THROWS_AS(fft::rfftfreq(-2), ValueError);
  CHECK_THROWS_AS(fft::fftfreq(3, kInt64), TypeError);
  CHECK_THROWS_AS(fft::fftshift(arange(5), 1), IndexError);
}

TEST_CASE("fft: bad input") {
  const Tensor x = real_signal({3, 4}), z = complex_signal({3, 4});
  CHECK_THROWS_AS(fft::fft(x, 0), ValueError);
  CHECK_THROWS_AS(fft::fft(x, -5), ValueError);
  CHECK_THROWS_AS(fft::fft(empty({2, 0}, kFloat64)), ValueError);
  CHECK_THROWS_AS(fft::irfft(ones({1}, kFloat64)), ValueError);  // 2 (1 - 1) points
  CHECK_THROWS_AS(fft::fft(x, 4, 2), IndexError);
  CHECK_THROWS_AS(fft::fft(x, 4, -3), IndexError);
  CHECK_THROWS_AS(fft::fft(tensor(1.0)), IndexError);
  CHECK_THROWS_AS(fft::rfft(z), TypeError);
  CHECK_THROWS_AS(fft::ihfft2(z), TypeError);
  if (x.device().is_cpu()) CHECK_THROWS_AS(fft::fft(x.to(kFloat16)), TypeError);
  CHECK_THROWS_AS(fft::rfft(x.to(kBFloat16)), TypeError);
  CHECK_THROWS_AS(fft::fftn(z, {2, 2}, {0}), ValueError);
  CHECK_THROWS_AS(fft::fftn(z, {2, 2, 2}), ValueError);
  CHECK_THROWS_AS(fft::fftn(z, std::nullopt, {0, -2}), ValueError);
  CHECK_THROWS_AS(fft::fftn(z, {2, 0}), ValueError);
  CHECK_THROWS_AS(fft::rfftn(tensor(1.0)), ValueError);
  CHECK_THROWS_AS(ops::_fft_r2c(x, {}, 0, true), ValueError);
  CHECK_THROWS_AS(ops::_fft_c2c(z, {0}, 3, true), ValueError);
  CHECK_THROWS_AS(ops::_fft_c2c(x, {0}, 0, true), TypeError);
  CHECK_THROWS_AS(ops::_fft_c2r(z, {1}, 0, 4), ValueError);
  CHECK_THROWS_WITH(fft::fft2(z, std::nullopt, {-2, -1}, "orto"),
                    "fft_fftn: norm must be 'forward', 'backward' or 'ortho', got 'orto'");
  CHECK_THROWS_WITH(fft::rfft(z), "fft_rfft: expected a real tensor, got complex128");
  CHECK_THROWS_WITH(fft::ifft(z, 0), "fft_ifft: cannot transform 0 points");
}

// A transform as a function of real tensors: of pairs for complex ones.
Tensor pairs_of(const Tensor& t) { return t.is_complex() ? view_as_real(t) : t; }

TEST_CASE("fft: gradients") {
  const auto of_complex = [](auto transform) {
    return [transform](const Tensors& x) { return Tensors{pairs_of(transform(view_as_complex(x[0].contiguous())))}; };
  };
  const auto of_real = [](auto transform) {
    return [transform](const Tensors& x) { return Tensors{pairs_of(transform(x[0]))}; };
  };
  for (const char* norm : {"forward", "backward", "ortho"}) {
    check_gradients(of_complex([&](const Tensor& z) { return fft::fft(z, std::nullopt, 0, norm); }), {leaf({3, 2, 2})});
    check_gradients(of_complex([&](const Tensor& z) { return fft::ifft(z, 5, -1, norm); }), {leaf({2, 3, 2})});
    check_gradients(of_complex([&](const Tensor& z) { return fft::irfft(z, 5, -1, norm); }), {leaf({2, 3, 2})});
    check_gradients(of_complex([&](const Tensor& z) { return fft::hfft(z, 6, 0, norm); }), {leaf({4, 2, 2})});
    check_gradients(of_real([&](const Tensor& x) { return fft::rfft(x, 5, -1, norm); }), {leaf({2, 4})});
    check_gradients(of_real([&](const Tensor& x) { return fft::ihfft(x, 4, 0, norm); }), {leaf({5, 2})});
    check_gradients(of_real([&](const Tensor& x) { return fft::fft(x, 3, -1, norm); }), {leaf({2, 4})});
  }
  check_gradients(of_real([](const Tensor& x) { return fft::fft(x); }), {leaf({1})});
  check_gradients(of_real([](const Tensor& x) { return fft::rfft(x); }), {leaf({2})});
  check_gradients(of_real([](const Tensor& x) { return fft::fftn(x); }), {leaf({2, 3})});
  check_gradients(of_real([](const Tensor& x) { return ops::_fft_r2c(x, {0, 1}, 0, false); }), {leaf({3, 4})});
  check_gradients(of_real([](const Tensor& x) { return fft::rfftn(x, std::nullopt, {1, 0}); }), {leaf({4, 3})});
  check_gradients(of_real([](const Tensor& x) { return fft::rfft2(x); }), {leaf({2, 2, 3})});
  check_gradients(of_real([](const Tensor& x) { return fft::ihfft2(x); }), {leaf({3, 4})});
  check_gradients(of_complex([](const Tensor& z) { return fft::ifft2(z); }), {leaf({2, 3, 2})});
  check_gradients(of_complex([](const Tensor& z) { return fft::fftn(z, {2, 4}); }), {leaf({3, 3, 2})});
  check_gradients(of_complex([](const Tensor& z) { return fft::irfft(z, 1); }), {leaf({2, 2})});
  check_gradients(of_complex([](const Tensor& z) { return fft::irfft2(z); }), {leaf({3, 3, 2})});
  check_gradients(of_complex([](const Tensor& z) { return fft::irfftn(z, {3, 3}, {1, 0}); }), {leaf({2, 3, 2})});
  check_gradients(of_complex([](const Tensor& z) { return fft::hfft2(z); }), {leaf({2, 3, 2})});
  check_gradients(of_complex([](const Tensor& z) { return fft::fftshift(z); }), {leaf({3, 2, 2})});
}

}  // namespace
