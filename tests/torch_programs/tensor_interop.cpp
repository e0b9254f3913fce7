// Tensors and other people's memory: accessors, from_blob in all its forms, storages, and copies to and from the
// standard library.
#include <torch/torch.h>

#include <array>
#include <iostream>
#include <numeric>
#include <sstream>

struct Image {
  int width, height;
  std::vector<uint8_t> pixels;  // interleaved RGB
};

static float trace_of(torch::Tensor matrix) {
  auto a = matrix.accessor<float, 2>();
  float sum = 0;
  for (int i = 0; i < a.size(0); i++) sum += a[i][i];
  return sum;
}

template <typename Accessor>
static int64_t weigh(Accessor a) {
  int64_t sum = 0;
  for (int32_t i = 0; i < a.size(0); ++i) {
    for (int32_t j = 0; j < a.size(1); ++j) sum += a[i][j] * (i + 1) * (j + 2);
  }
  return sum;
}

int main() {
  auto foo = torch::arange(12, torch::kFloat).view({3, 4});
  auto accessor = foo.accessor<float, 2>();
  std::cout << accessor.size(0) << accessor.size(1) << accessor.stride(0) << accessor.sizes() << accessor.strides()
            << accessor[1][2] << *accessor[2].data() << trace_of(foo) << "\n";
  accessor[0][0] = 100;
  std::cout << foo[0][0].item<float>() << "\n";
  auto turned = torch::arange(6).view({2, 3}).t();
  std::cout << weigh(turned.packed_accessor32<int64_t, 2>()) << " " << weigh(turned.packed_accessor64<int64_t, 2>())
            << " " << weigh(turned.accessor<int64_t, 2>()) << " " << turned.packed_accessor32<int64_t, 2>().stride(1)
            << "\n";
  for (int wrong : {0, 1}) {
    try {
      wrong == 0 ? static_cast<void>(foo.accessor<double, 2>()) : static_cast<void>(foo.accessor<float, 3>());
    } catch (const c10::Error& e) {
      const std::string text = e.what();
      std::cout << (text.find("expected scalar type Double but found Float") != std::string::npos)
                << (text.find("TensorAccessor expected 3 dims but tensor has 2") != std::string::npos) << "\n";
    }
  }

  // From an image: (H, W, C) bytes to (C, H, W) floats, without a copy until the conversion.
  Image image{3, 2, std::vector<uint8_t>(18)};
  std::iota(image.pixels.begin(), image.pixels.end(), 0);
  auto bytes = torch::from_blob(image.pixels.data(), {image.height, image.width, 3}, torch::kByte);
  auto planes = bytes.permute({2, 0, 1}).to(torch::kFloat).div_(255);
  std::cout << bytes.is_contiguous() << planes.sizes() << planes.is_contiguous() << planes.stride(0) << "\n"
            << planes[1] << "\n";
  image.pixels[0] = 200;
  std::cout << static_cast<int>(bytes[0][0][0].item<uint8_t>()) << bytes.data_ptr<uint8_t>()[0] << "\n";

  std::vector<double> values = {1, 2, 3, 4, 5, 6};
  auto strided = torch::from_blob(values.data(), {2, 2}, {1, 3}, torch::kDouble);
  auto constant = torch::from_blob(values.data(), at::IntArrayRef{6}, torch::TensorOptions().dtype(torch::kFloat64));
  std::cout << strided << "\n" << constant.sum().item<double>() << "\n";
  {
    double* owned = new double[4]{1, 2, 3, 4};
    auto tensor = torch::from_blob(
        owned, {2, 2},
        [](void* p) {
          std::cout << "freed\n";
          delete[] static_cast<double*>(p);
        },
        torch::kFloat64);
    auto view = tensor[1];
    tensor.reset();
    std::cout << tensor.defined() << view.sum().item<double>() << "\n";
  }
  auto cloned = torch::from_blob(values.data(), {6}, torch::kDouble).clone();
  values.assign(6, 0);
  std::cout << cloned.sum().item<double>() << " " << constant.sum().item<double>() << "\n";

  // Back to the standard library.
  auto t = torch::rand({2, 3}).mul(10).floor().to(torch::kInt);
  auto flat = t.contiguous().view(-1);
  std::vector<int> out(flat.data_ptr<int>(), flat.data_ptr<int>() + flat.numel());
  std::cout << (std::accumulate(out.begin(), out.end(), 0) == t.sum().item<int>()) << out.size() << "\n";
  std::array<float, 3> array = {1.f, 2.f, 3.f};
  std::cout << torch::tensor(at::ArrayRef<float>(array)) << "\n" << torch::tensor({true, false}).dtype() << "\n";
  std::memcpy(foo.data_ptr(), array.data(), sizeof array);
  std::cout << foo[0] << "\n";

  // Storages.
  auto base = torch::arange(10, torch::kInt);
  auto part = base.slice(0, 4, 8);
  std::cout << part.storage_offset() << (part.storage().data() == base.storage().data()) << base.storage().nbytes()
            << part.nbytes() << part.itemsize() << part.is_alias_of(base) << base.storage().use_count() << "\n";
  std::cout << static_cast<const int*>(part.const_data_ptr())[0] << part.mutable_data_ptr<int>()[1] << "\n";
  std::cout << part.toString() << " " << part[0].is_nonzero() << "\n";
  std::cout << part.storage() << (part.storage().data_ptr() == base.storage().data_ptr()) << "\n";

  // What computed a tensor prints as its address, and as 0 where there is nothing.
  const auto leaf = torch::ones({2}, torch::requires_grad());
  std::ostringstream address;
  address << (leaf * 2).grad_fn();
  std::cout << (address.str().size() > 2) << leaf.grad_fn() << "\n";
  return 0;
}
