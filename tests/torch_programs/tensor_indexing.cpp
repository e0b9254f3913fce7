// Indexing: the table of PyTorch's page "Tensor Indexing API", reading and writing.
#include "show.h"

using namespace torch::indexing;

int main() {
  auto tensor = torch::arange(24).view({2, 3, 4});
  std::cout << tensor.index({None}).sizes() << tensor.index({Ellipsis, Slice()}).sizes() << std::endl;
  std::cout << tensor.index({"..."}).sizes() << std::endl;
  std::cout << tensor.index({1}) << std::endl;
  std::cout << tensor.index({true}).sizes() << tensor.index({false}).sizes() << std::endl;
  std::cout << tensor.index({Slice(1, None, 2)}) << std::endl;
  std::cout << tensor.index({Slice(), Slice(0, 2), Slice(None, None, 2)}) << std::endl;
  std::cout << tensor.index({torch::tensor({1, 0})}).sizes() << std::endl;
  std::cout << tensor.index({Ellipsis, torch::tensor({0, 3})}) << std::endl;
  std::cout << tensor.index({Slice(), torch::tensor({true, false, true})}) << std::endl;
  std::cout << tensor.index({1, Ellipsis, 2}) << std::endl;
  std::cout << tensor.index({Slice(), 1, Slice(1, -1)}) << std::endl;
  std::cout << tensor.index({torch::tensor({0, 1}), torch::tensor({2, 0}), torch::tensor({3, 1})}) << std::endl;
  std::cout << tensor.index({tensor > 20}) << std::endl;

  tensor.index_put_({1, Slice(), 0}, 100);
  tensor.index_put_({0, 2}, torch::tensor({-1, -2, -3, -4}));
  tensor.index_put_({tensor > 99}, 5);
  tensor.index_put_({Ellipsis, Slice(None, None, 3)}, torch::zeros({2, 3, 2}, torch::kInt64));
  std::cout << tensor << std::endl;
  tensor[1][2][3] = 77;
  std::cout << tensor[1] << std::endl;

  auto x = torch::arange(10, torch::kFloat32);
  std::cout << x.index({Slice(-3, None)}) << x.slice(0, 1, 9, 3) << x.narrow(0, 2, 3) << std::endl;
  std::cout << x.index_select(0, torch::tensor({9, 0, 0})) << x.masked_select(x > 7.5) << x.take(torch::tensor({2, 4}))
            << std::endl;
  auto matrix = x.view({2, 5});
  std::cout << matrix.gather(1, torch::tensor({{0, 4}, {1, 1}})) << matrix.diag() << matrix.t() << std::endl;
  std::cout << torch::zeros({2, 5}).scatter_(1, torch::tensor({{0, 4}, {1, 2}}), 1.0) << std::endl;
  std::cout << torch::zeros({3}).index_add_(0, torch::tensor({0, 2, 2}), torch::tensor({1.0f, 2.0f, 3.0f}))
            << std::endl;
  std::cout << torch::where(matrix > 3, matrix, torch::zeros_like(matrix)) << std::endl;
  for (const auto& part : matrix.split(2, 1)) std::cout << part.sizes();
  for (const auto& part : matrix.chunk(3, 1)) std::cout << part.sizes();
  for (const auto& part : torch::unbind(matrix)) std::cout << part.sizes();
  std::cout << std::endl << torch::nonzero(matrix > 6) << std::endl;
  try {
    tensor.index({5});
  } catch (const c10::Error& error) {
    const std::string message = error.what();
    std::cout << "out of range: " << (message.find("out of") != std::string::npos) << std::endl;
  }
}
