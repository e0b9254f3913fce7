// Tensors without dimensions in print, rows of a given width, and the dtypes that small numbers bring along.
#include <torch/torch.h>

#include <iomanip>
#include <iostream>

static void without_dimensions() {
  for (const float value :
       {1.0f / 3, 0.1f, -2.5f, 1e-5f, 1e-4f, 0.00012345f, 1e5f, 123456789.0f, 1e15f, 1e16f, 1e22f}) {
    std::cout << torch::tensor(value) << "\n";
  }
  for (const double value : {1.0 / 3, -0.0, 1.5e300, 1e-300, -1e17}) {
    std::cout << torch::tensor(value, torch::kFloat64) << "\n";
  }
  std::cout << torch::tensor(123456789012345) << torch::tensor(true) << torch::ones({}, torch::kHalf) / 3 << "\n";
  std::cout << std::setprecision(3) << std::fixed << torch::tensor(1.0f / 3) << 1.0 / 3 << "\n";
}

static void widths() {
  const torch::Tensor rows = torch::arange(24.0).view({2, 12});
  torch::print(rows, 30);
  std::cout << "\n";
  torch::print(std::cout, rows, 120) << "\n";
  at::print(torch::tensor({0.5f, 1.5f}));
  std::cout << "\n";
}

static void small_numbers() {
  std::cout << torch::tensor(uint8_t{7}).dtype() << " " << torch::tensor(int8_t{7}).dtype() << " "
            << torch::tensor({int16_t{7}, int16_t{8}}).dtype() << " " << torch::tensor(c10::Half(1.5f)).dtype() << " "
            << torch::tensor({c10::BFloat16(1.0f)}).dtype() << " " << torch::tensor(c10::complex<double>(1, 2)).dtype()
            << " " << torch::tensor('a').dtype() << " " << torch::tensor({1, 2}).dtype() << " "
            << torch::tensor(2.5).dtype() << "\n";
}

int main() {
  without_dimensions();
  widths();
  small_numbers();
}
