// What a function checks about its arguments with the names of <ATen/TensorUtils.h>, as torchvision's operators do, and
// what an undefined tensor answers.
#include <torch/torch.h>

#include <iostream>

// Prints the first line of the error.
template <class F>
static void says(const char* what, F f) {
  try {
    f();
    std::cout << what << ": fine\n";
  } catch (const c10::Error& e) {
    const std::string text = e.what_without_backtrace();
    std::cout << what << ": " << text.substr(0, text.find('\n')) << '\n';
  }
}
int main() {
  const auto a = torch::ones({2, 3}), b = torch::ones({2, 4}, torch::kDouble), c = torch::ones({2, 3, 1}),
             d = torch::ones({3, 2}).t();
  const torch::Tensor none;
  at::TensorArg A{a, "input", 1}, B{b, "rois", 2}, C{c, "grad", 3}, D{d, "turned", 4}, N{none, "bias", 5};
  at::CheckedFrom from = "roi_align";
  says("dim", [&] {
    at::checkDim(from, A, 2);
    at::checkDim(from, A, 4);
  });
  says("dim of a tensor", [&] { at::checkDim(from, a, "x", 1, 3); });
  says("range", [&] {
    at::checkDimRange(from, A, 1, 3);
    at::checkDimRange(from, A, 3, 5);
  });
  says("same dim", [&] {
    at::checkSameDim(from, A, B);
    at::checkSameDim(from, A, C);
  });
  says("contiguous", [&] {
    at::checkContiguous(from, A);
    at::checkContiguous(from, D);
  });
  says("all contiguous", [&] {
    at::checkAllContiguous(from, {A, B, N});
    at::checkAllContiguous(from, {A, D});
  });
  says("sizes", [&] {
    at::checkSize(from, A, {2, 3});
    at::checkSize(from, A, {2, 4});
  });
  says("size of other dims", [&] { at::checkSize(from, C, {2, 4}); });
  says("size", [&] {
    at::checkSize(from, A, 1, 3);
    at::checkSize(from, A, -1, 5);
  });
  says("numel", [&] {
    at::checkNumel(from, A, 6);
    at::checkNumel(from, A, 8);
  });
  says("same numel", [&] {
    at::checkSameNumel(from, A, C);
    at::checkSameNumel(from, A, B);
  });
  says("all same numel", [&] {
    at::checkAllSameNumel(from, {A, N, C});
    at::checkAllSameNumel(from, {A, C, B});
  });
  says("type", [&] {
    at::checkScalarType(from, A, at::kFloat);
    at::checkScalarType(from, A, at::kLong);
  });
  says("types", [&] {
    at::checkScalarTypes(from, A, {at::kLong, at::kFloat});
    at::checkScalarTypes(from, A, {at::kLong, at::kInt});
  });
  says("same type", [&] {
    at::checkSameType(from, A, C);
    at::checkSameType(from, A, B);
  });
  says("all same type", [&] {
    at::checkAllSameType(from, {A, N, C});
    at::checkAllSameType(from, {A, C, B});
  });
  says("same sizes", [&] {
    at::checkSameSize(from, A, D);
    at::checkSameSize(from, A, C);
  });
  says("all same sizes", [&] {
    at::checkAllSameSize(from, {A, D, N});
    at::checkAllSameSize(from, {A, D, B});
  });
  says("same gpu", [&] { at::checkSameGPU(from, A, B); });
  says("all same gpu", [&] { at::checkAllSameGPU(from, {A, B}); });
  says("defined", [&] { at::checkDefined(from, A); });
  says("all defined", [&] { at::checkAllDefined(from, {A, B}); });
  says("device", [&] {
    at::checkDeviceType(from, {a, none}, at::kCPU);
    at::checkDeviceType(from, {a}, at::kCUDA);
  });
  says("layout", [&] {
    at::checkLayout(from, a, at::kStrided);
    at::checkLayout(from, {a, a.to_sparse()}, at::kStrided);
  });
  says("dim size", [&] {
    at::check_dim_size(a, 2, 1, 3);
    at::check_dim_size(a, 2, 1, 5);
  });
  at::TensorGeometryArg g = D;
  std::cout << g << ' ' << g->sizes() << g->strides() << g->dim() << g->numel() << g->is_contiguous() << g->size(-1)
            << g->stride(0) << '\n';
  std::cout << (at::maybe_data_ptr(a) == a.data_ptr()) << (at::maybe_data_ptr(none) == nullptr)
            << (at::maybe_data_ptr(N) == nullptr) << '\n';
  std::cout << "undefined: " << none.numel() << ' ' << none.dim() << ' ' << none.sizes() << ' ' << none.size(0) << ' '
            << none.is_contiguous() << none.is_cpu() << none.is_cuda() << none.is_sparse() << none.is_floating_point()
            << none.is_complex() << '\n';
  try {
    none.grad();
  } catch (const c10::Error&) {
    std::cout << "it has no place for a gradient\n";
  }
}
