// Signals: Fourier transforms, windows, spectrograms, filters, and complex numbers.
#include "show.h"

#include <complex>
#include <iostream>

static void show_complex(const char* name, const torch::Tensor& z) { show(name, torch::view_as_real(z)); }

int main() {
  const auto x = wave({8}, 0.3), image = wave({3, 4}, 1.2);
  const auto spectrum = torch::fft::fft(x);
  show_complex("fft", spectrum);
  show("there and back", torch::real(torch::fft::ifft(spectrum)) - x);
  show_complex("rfft", torch::fft::rfft(x, 6, -1, "ortho"));
  show("irfft", torch::fft::irfft(torch::fft::rfft(x), 8) - x);
  show_complex("fft2", torch::fft::fft2(image));
  show_complex("rfftn", torch::fft::rfftn(image, c10::nullopt, c10::nullopt, "forward"));
  show("hfft", torch::fft::hfft(spectrum.slice(0, 0, 5)));
  show("frequencies", torch::fft::fftfreq(6, 0.5));
  show("shifted", torch::fft::fftshift(torch::fft::fftfreq(5)));
  show("parseval", torch::abs(spectrum).square().sum() / 8 - x.square().sum());

  show("hann", torch::hann_window(6, torch::kFloat64));
  show("hamming", torch::hamming_window(5, /*periodic=*/false, torch::kFloat64));
  show("blackman", torch::blackman_window(5, torch::kFloat64));
  show("kaiser", torch::kaiser_window(5, true, 8.0, torch::kFloat64));
  const auto signal = wave({40}, 0.2);
  const auto window = torch::hann_window(8, torch::kFloat64);
  const auto stft = torch::stft(signal, 8, 4, 8, window, /*center=*/true, "reflect", /*normalized=*/false,
                                /*onesided=*/true, /*return_complex=*/true);
  std::cout << stft.sizes() << stft.dtype() << "\n";
  show("magnitudes", stft.abs().sum(1));
  show("istft", torch::istft(stft, 8, 4, 8, window, true, false, true, 40) - signal);
  // Convolution by the theorem.
  const auto kernel = torch::tensor({0.25, 0.5, 0.25}, torch::kFloat64);
  const auto by_product = torch::fft::irfft(torch::fft::rfft(x, 10) * torch::fft::rfft(kernel, 10), 10);
  const auto direct = torch::conv1d(x.view({1, 1, -1}), kernel.flip(0).view({1, 1, -1}), {}, 1, 2).flatten();
  show("convolution", by_product - direct);

  // Complex numbers.
  const auto z = torch::complex(x.slice(0, 0, 4), x.slice(0, 4, 8));
  show_complex("product", z * z.conj());
  show("modulus", z.abs());
  show("angle", z.angle());
  show_complex("polar", torch::polar(z.abs(), z.angle()) - z);
  show_complex("exp", torch::exp(z * c10::complex<double>(0, 1)));
  show_complex("from real", torch::view_as_complex(wave({2, 2}, 0.9)));
  std::cout << z.is_complex() << torch::real(z).dtype() << z.dtype() << z.sizes() << "\n";
  const auto element = z[1].item<c10::complex<double>>();
  std::printf("%.4f %.4f %.4f\n", element.real(), element.imag(), std::abs(element));
  show_complex("matrix product", z.view({2, 2}).mm(z.view({2, 2}).conj().transpose(0, 1)));
  auto w = z.clone().requires_grad_();
  w.abs().square().sum().backward();
  show_complex("gradient of |w|^2", w.grad() - 2 * z);
  auto t = wave({6}, 0.5).requires_grad_();
  torch::fft::fft(t).abs().square().sum().backward();
  show("through a transform", t.grad() - 12 * t);
  show("cumulative", torch::cumsum(x, 0).diff());
  show("gradient", torch::gradient(x.slice(0, 0, 5), at::Scalar(0.5), /*dim=*/0)[0]);
  show("unwrapped", torch::trapezoid(x, 0.1));
  return 0;
}
