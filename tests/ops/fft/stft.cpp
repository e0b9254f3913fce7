#include "core/ops/fft/stft.h"

#include <cmath>
#include <complex>
#include <limits>

#include "tests/ops/fft/fft_testing.h"

namespace {

using namespace rush;
using rush::testing::check_gradients;
using rush::testing::check_values;
using rush::testing::Doubles;
using rush::testing::largest;
using rush::testing::leaf;
using rush::testing::values;

TEST_CASE("windows: PyTorch's numbers") {
  check_values(hann_window(4, kFloat64), {0, 0.5, 1, 0.5});
  check_values(hann_window(5, false, kFloat64), {0, 0.5, 1, 0.5, 0});
  check_values(hamming_window(4, kFloat64), {0.08, 0.54, 1, 0.54});
  check_values(hamming_window(3, false, 0.6, kFloat64), {0.14, 1.06, 0.14});
  check_values(hamming_window(5, false, 0.5, 0.3, kFloat64), {0.2, 0.5, 0.8, 0.5, 0.2});
  check_values(blackman_window(5, kFloat64),
               {0, 0.20077014326253045, 0.8492298567374694, 0.8492298567374696, 0.20077014326253056});
  check_values(bartlett_window(6, false, kFloat64), {0, 0.4, 0.8, 0.8, 0.4, 0});
  check_values(bartlett_window(5, kFloat64), {0, 0.4, 0.8, 0.8, 0.4});
  check_values(kaiser_window(5, true, 2.0, kFloat64),
               {0.4386762798370488, 0.7676749968275234, 0.9723298008693713, 0.9723298008693713, 0.7676749968275234});
  check_values(kaiser_window(3, false, kFloat64), {5.2773441320097665e-05, 1, 5.2773441320097665e-05});
  for (const int64_t length : {0, 1}) {
    for (const Tensor& window : {hann_window(length), hamming_window(length, false), blackman_window(length),
                                 bartlett_window(length, false), kaiser_window(length)}) {
      CHECK(window.scalar_type() == kFloat32);
      check_values(window, Doubles(static_cast<size_t>(length), 1));
    }
  }
  CHECK(hann_window(4, kFloat16).scalar_type() == kFloat16);
  CHECK(kaiser_window(4, TensorOptions(kFloat32).device(kMeta)).sizes() == IntArrayRef{4});
  CHECK(hann_window(4, TensorOptions(kFloat32).requires_grad(true)).requires_grad());
  CHECK_THROWS_AS(hann_window(-1), ValueError);
  CHECK_THROWS_AS(kaiser_window(4, kInt64), TypeError);
  CHECK_THROWS_AS(bartlett_window(4, kComplex64), TypeError);
}

Tensor signals(IntArrayRef sizes) {
  const Tensor t = zeros(sizes, kFloat64);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_ptr<double>()[i] = std::sin(0.9 * static_cast<double>(i * i) + 0.3);
  return t;
}

// X_kf = sum over j of window_j signal_(f hop + j) e^(-2 pi i jk/n), by the definition, of a signal (T).
Tensor naive_stft(const Tensor& signal, const Tensor& window, int64_t hop, int64_t frequencies) {
  const Doubles x = values(signal), w = values(window);
  const auto n = static_cast<int64_t>(w.size());
  const int64_t frames = (signal.numel() - n) / hop + 1;
  const Tensor out = empty({frequencies, frames}, kComplex128);
  auto* to = reinterpret_cast<std::complex<double>*>(out.data_ptr());
  for (int64_t k = 0; k < frequencies; ++k) {
    for (int64_t f = 0; f < frames; ++f) {
      std::complex<double> sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        const double angle = -2 * std::acos(-1.0) * static_cast<double>(j * k % n) / static_cast<double>(n);
        sum += x[static_cast<size_t>(f * hop + j)] * w[static_cast<size_t>(j)] * std::polar(1.0, angle);
      }
      *to++ = sum;
    }
  }
  return out;
}

void check_close(const Tensor& a, const Tensor& b) {
  REQUIRE(a.sizes() == b.sizes());
  CHECK(largest(a - b) <= 1e-12 * (1 + largest(b)));
}

// The centred transform, complex.
Tensor centred(const Tensor& x, int64_t n_fft, int64_t hop, std::string_view mode = "reflect",
               const std::optional<Tensor>& window = std::nullopt, std::optional<bool> onesided = std::nullopt,
               bool normalized = false) {
  const std::optional<int64_t> length = window ? std::optional<int64_t>(window->size(0)) : std::nullopt;
  return stft(x, n_fft, hop, length, window, true, mode, normalized, onesided, true);
}

TEST_CASE("stft: the definition") {
  const Tensor x = signals({40}), window = hamming_window(8, kFloat64), short_window = hann_window(5, kFloat64);
  const Tensor both = signals({2, 40});
  check_close(stft(x, 8, 3, 8, window, false, true, true), naive_stft(x, window, 3, 5));
  check_close(stft(x, 8, 3, 8, window, false, false, true), naive_stft(x, window, 3, 8));
  check_close(stft(x, 8, 3, 8, window, true, true, true), naive_stft(x, window, 3, 5) / std::sqrt(8.0));
  check_close(stft(x, 9, std::nullopt, std::nullopt, std::nullopt, false, std::nullopt, true),
              naive_stft(x, ones({9}, kFloat64), 2, 5));
  // A shorter window lies in the middle of the frame, and so do the ones where there is none.
  const Tensor padded = constant_pad_nd(short_window, {1, 2}), box = constant_pad_nd(ones({5}, kFloat64), {1, 2});
  check_close(stft(x, 8, 3, 5, short_window, false, true, true), naive_stft(x, padded, 3, 5));
  check_close(stft(x, 8, 3, 5, std::nullopt, false, true, true), naive_stft(x, box, 3, 5));
  check_close(stft(x, 8, 3, 5, short_window, false, true, true, true),
              naive_stft(constant_pad_nd(x, {1, 2}), padded, 3, 5));
  for (const char* mode : {"reflect", "constant", "replicate", "circular"}) {
    const Tensor around = pad(x.view({1, 1, 40}), {4, 4}, mode).view({48});
    check_close(centred(x, 8, 3, mode, window), naive_stft(around, window, 3, 5));
    check_close(centred(both, 8, 3, mode, window).select(0, 1), centred(both.select(0, 1), 8, 3, mode, window));
  }
  const Tensor pairs = stft(x, 8, 3, 8, window, false, true, false);
  check_close(view_as_complex(pairs.contiguous()), naive_stft(x, window, 3, 5));
  check_close(x.stft(8, 3, 8, window, true, "constant", false, true, true), centred(x, 8, 3, "constant", window));
  check_close(x.stft(8, 3, 8, window, false, true, true), naive_stft(x, window, 3, 5));
  const Tensor z = view_as_complex(signals({40, 2}));  // linear
  check_close(stft(z, 8, 3, 8, window, false, false),
              naive_stft(real(z), window, 3, 8) + naive_stft(imag(z), window, 3, 8) * complex128(0, 1));
  CHECK(stft(empty({3, 40}, TensorOptions(kFloat32).device(kMeta)), 8, 2, std::nullopt, std::nullopt, false,
             std::nullopt, true)
            .sizes() == IntArrayRef{3, 5, 17});
}

TEST_CASE("istft: gives back what stft was made of") {
  const Tensor window = hann_window(8, kFloat64);
  for (const DimVector& sizes : {DimVector{40}, DimVector{3, 40}}) {
    const Tensor x = signals(sizes);
    for (const bool normalized : {false, true}) {
      for (const bool onesided : {false, true}) {
        const Tensor spectra = centred(x, 8, 2, "reflect", window, onesided, normalized);
        const auto back = [&](std::optional<int64_t> length) {
          return istft(spectra, 8, 2, 8, window, true, normalized, onesided, length);
        };
        check_close(back(std::nullopt), x);
        check_close(back(33), x.narrow(-1, 0, 33));
        CHECK(back(50).size(-1) == 50);
        check_close(back(50).narrow(-1, 0, 40), x);
        CHECK(largest(back(50).narrow(-1, 44, 6)) == 0);  // past the last frame
      }
    }
    const Tensor box = stft(x, 8, 4, std::nullopt, std::nullopt, false, std::nullopt, true);
    check_close(istft(box, 8, 4, std::nullopt, std::nullopt, false), x);
    check_close(box.istft(8, 4, std::nullopt, std::nullopt, false), x);
  }
  const Tensor z = view_as_complex(signals({40, 2})), spectra = centred(z, 8, 2, "reflect", window);
  check_close(istft(spectra, 8, 2, 8, window, true, false, false, std::nullopt, true), z);
  // With a window shorter than the frame.
  const Tensor narrow = hann_window(6, kFloat64), x = signals({41});
  check_close(istft(centred(x, 9, 2, "constant", narrow), 9, 2, 6, narrow, true, false, std::nullopt, 40),
              x.narrow(0, 0, 40));
}

TEST_CASE("stft, istft: gradients") {
  const Tensor window = hamming_window(4, kFloat64).requires_grad_();
  check_gradients([](const Tensors& x) { return Tensors{view_as_real(centred(x[0], 4, 2, "reflect", x[1]))}; },
                  {leaf({2, 7}), window.detach().requires_grad_()});
  check_gradients([](const Tensors& x) { return Tensors{istft(view_as_complex(x[0].contiguous()), 4, 2, 4, x[1])}; },
                  {leaf({2, 3, 4, 2}), window.detach().requires_grad_()});
}

TEST_CASE("stft, istft: bad input") {
  const Tensor x = signals({40}), window = hann_window(8, kFloat64), spectra = centred(x, 8, 2, "reflect", window);
  const auto forward = [&](int64_t n, int64_t hop, int64_t length, const std::optional<Tensor>& w) {
    return stft(x, n, hop, length, w, false, std::nullopt, true);
  };
  CHECK_THROWS_WITH(forward(8, 0, 8, window), "stft: hop_length must be positive, got 0");
  CHECK_THROWS_AS(forward(8, -2, 8, window), ValueError);
  CHECK_THROWS_AS(forward(0, 1, 1, std::nullopt), ValueError);
  CHECK_THROWS_AS(forward(41, 1, 41, std::nullopt), ValueError);
  CHECK_THROWS_AS(forward(8, 2, 9, std::nullopt), ValueError);
  CHECK_THROWS_AS(forward(8, 2, 0, std::nullopt), ValueError);
  CHECK_THROWS_WITH(forward(8, 2, 7, window), "stft: expected a window of 7 values, got shape (8)");
  CHECK_THROWS_AS(forward(8, 2, 8, window.view({1, 8})), ValueError);
  CHECK_THROWS_AS(stft(x, 8), ValueError);  // return_complex is not given
  CHECK_THROWS_AS(stft(x, 2, std::nullopt, std::nullopt, std::nullopt, false, std::nullopt, true), ValueError);
  CHECK_THROWS_AS(stft(arange(40), 8, 2, std::nullopt, std::nullopt, false, std::nullopt, true), TypeError);
  CHECK_THROWS_AS(stft(x.view({1, 1, 40}), 8, 2, std::nullopt, std::nullopt, false, std::nullopt, true), ValueError);
  CHECK_THROWS_AS(stft(x.to(kComplex128), 8, 2, 8, window, false, true), ValueError);
  CHECK_THROWS_AS(centred(x, 100, 2), ValueError);  // reflection needs as many values
  CHECK_THROWS_AS(stft(x, 8, 2, 8, window, true, "reflect", false, true, true, true), ValueError);
  const Tensor nan = full({8}, std::numeric_limits<double>::quiet_NaN(), kFloat64);
  CHECK(view_as_real(centred(x, 8, 2, "reflect", nan)).isnan().any().item<bool>());

  CHECK_THROWS_AS(istft(x, 8), TypeError);
  CHECK_THROWS_WITH(istft(spectra, 8, 0, 8, window), "istft: hop_length must be positive, got 0");
  CHECK_THROWS_AS(istft(spectra, 8, 9, 8, window), ValueError);
  CHECK_THROWS_AS(istft(spectra, 10, 2, 8, window), ValueError);
  CHECK_THROWS_AS(istft(spectra, 8, 2, 8, window, true, false, false), ValueError);
  CHECK_THROWS_AS(istft(spectra, 8, 2, 7, window), ValueError);
  CHECK_THROWS_AS(istft(spectra.view({1, 1, 5, 21}), 8, 2, 8, window), ValueError);
  CHECK_THROWS_AS(istft(spectra.narrow(1, 0, 0), 8, 2, 8, window), ValueError);
  CHECK_THROWS_AS(istft(spectra, 8, 2, 8, window, true, false, true, -3), ValueError);
  CHECK_THROWS_AS(istft(spectra, 8, 2, 8, window, true, false, true, std::nullopt, true), ValueError);
  CHECK_THROWS_AS(istft(spectra, 8, 2, 8, window.to(kComplex128)), ValueError);
  CHECK_THROWS_WITH(istft(spectra, 8, 2, 8, window, false),
                    "istft: the windows leave a gap: the sum of their squares is zero somewhere");
  CHECK(istft(spectra, 8, 2, 8, nan).isnan().all().item<bool>());
}

}  // namespace
