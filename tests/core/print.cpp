// Expected texts are what str(tensor) gives in PyTorch 2.11.
#include <doctest/doctest.h>

#include <sstream>

#include "rushlight.h"
#include "tests/not_finite.h"

namespace {

using namespace rush;
using rush::testing::kInf;
using rush::testing::kNan;

TEST_CASE("tensors print as PyTorch prints them") {
  const struct {
    std::string text;
    const char* expected;
  } cases[] = {
      {to_string(tensor({{1, 2}, {3, 4}})), "tensor([[1, 2],\n        [3, 4]])"},
      {to_string(tensor({{1.0, 2.0}, {3.0, 4.0}})), "tensor([[1., 2.],\n        [3., 4.]])"},
      {to_string(tensor({0.5, -1.25, 3.14159})), "tensor([ 0.5000, -1.2500,  3.1416])"},
      {to_string(tensor({1e-5, 1.0})), "tensor([1.0000e-05, 1.0000e+00])"},
      {to_string(tensor({1.0, 2000.0, 0.5})), "tensor([1.0000e+00, 2.0000e+03, 5.0000e-01])"},
      {to_string(tensor({1.0, 1000000.0})), "tensor([1.0000e+00, 1.0000e+06])"},
      {to_string(tensor({1e9, 2e9}, kFloat64)), "tensor([1.0000e+09, 2.0000e+09], dtype=torch.float64)"},
      {to_string(tensor({kInf, -kInf, kNan, 1.0})), "tensor([inf, -inf, nan, 1.])"},
      {to_string(tensor({kInf, -kInf, -kNan, 1.5})), "tensor([   inf,   -inf,    nan, 1.5000])"},
      {to_string(tensor({kNan, 1e-10})), "tensor([       nan, 1.0000e-10])"},
      {to_string(tensor({0.0, -0.0})), "tensor([0., -0.])"},
      {to_string(tensor({true, false})), "tensor([ True, False])"},
      {to_string(tensor({100, -5, 0})), "tensor([100,  -5,   0])"},
      {to_string(tensor(3)), "tensor(3)"},
      {to_string(tensor(2.5)), "tensor(2.5000)"},
      {to_string(tensor(true)), "tensor(True)"},
      {to_string(tensor(1e-8)), "tensor(1.0000e-08)"},
      {to_string(tensor(16777216.0)), "tensor(16777216.)"},
      {to_string(tensor({1, 2}, kInt32)), "tensor([1, 2], dtype=torch.int32)"},
      {to_string(tensor({1.5, 2.0}, kFloat64)), "tensor([1.5000, 2.0000], dtype=torch.float64)"},
      {to_string(tensor({1.5, 2.1}, kBFloat16)), "tensor([1.5000, 2.0938], dtype=torch.bfloat16)"},
      {to_string(tensor({0.1, 65504.0}, kFloat16)), "tensor([9.9976e-02, 6.5504e+04], dtype=torch.float16)"},
      {to_string(tensor({1, 255}, kUInt8)), "tensor([  1, 255], dtype=torch.uint8)"},
      {to_string(empty({0})), "tensor([])"},
      {to_string(empty({0}, kInt64)), "tensor([], dtype=torch.int64)"},
      {to_string(empty({2, 0, 3})), "tensor([], size=(2, 0, 3))"},
      {to_string(empty({2, 0}, kBool)), "tensor([], size=(2, 0), dtype=torch.bool)"},
      {to_string(empty({2, 3}, kMeta)), "tensor(..., device='meta', size=(2, 3))"},
      {to_string(empty({5}, TensorOptions(kInt64).device(kMeta))),
       "tensor(..., device='meta', size=(5,), dtype=torch.int64)"},
      {to_string(arange(30)),
       "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
       "        18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29])"},
      {to_string(arange(1001)), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"},
  };
  for (const auto& [text, expected] : cases) CHECK(text == expected);
}

TEST_CASE("printing: more than 1000 elements are summarised, and 1000 are not") {
  CHECK(to_string(arange(1000)).find("...") == std::string::npos);
  CHECK(to_string(arange(1001)).find("...") != std::string::npos);
}

TEST_CASE("printing does not record, and names the function that made a tensor") {
  const Tensor x = ones({2}, requires_grad());
  const Tensor y = x * 2;
  CHECK(to_string(y) == "tensor([2., 2.], grad_fn=<MulBackward>)");
  std::ostringstream stream;
  stream << x << Tensor();
  CHECK(stream.str() == "tensor([1., 1.], requires_grad=True)tensor(undefined)");
}

TEST_CASE("printing: the default dtype is not named") {
  set_default_dtype(kFloat64);
  const std::string texts[] = {to_string(ones({1})), to_string(ones({1}, kFloat32)), to_string(ones({1}, kComplex128))};
  set_default_dtype(kFloat32);
  CHECK(texts[0] == "tensor([1.])");
  CHECK(texts[1] == "tensor([1.], dtype=torch.float32)");
  CHECK(texts[2] == "tensor([1.+0.j])");
}

}  // namespace

TEST_CASE("sparse tensors are printed as PyTorch prints them") {
  const Tensor indices = tensor({{0, 2, 1}, {1, 0, 3}});
  const Tensor t = sparse_coo_tensor(indices, tensor({1.0, 2.5, -3.0}, kFloat32), {3, 4});
  CHECK(to_string(t) ==
        "tensor(indices=tensor([[0, 2, 1],\n"
        "                       [1, 0, 3]]),\n"
        "       values=tensor([ 1.0000,  2.5000, -3.0000]),\n"
        "       size=(3, 4), nnz=3, layout=torch.sparse_coo)");
  CHECK(to_string(t.to(kFloat64).coalesce().requires_grad_()) ==
        "tensor(indices=tensor([[0, 1, 2],\n"
        "                       [1, 3, 0]]),\n"
        "       values=tensor([ 1.0000, -3.0000,  2.5000]),\n"
        "       size=(3, 4), nnz=3, dtype=torch.float64, layout=torch.sparse_coo,\n"
        "       requires_grad=True)");
  CHECK(to_string(t.to_sparse_csr()) ==
        "tensor(crow_indices=tensor([0, 1, 2, 3]),\n"
        "       col_indices=tensor([1, 3, 0]),\n"
        "       values=tensor([ 1.0000, -3.0000,  2.5000]), size=(3, 4), nnz=3,\n"
        "       layout=torch.sparse_csr)");
  CHECK(to_string(t.to_dense().to_sparse_csc()) ==
        "tensor(ccol_indices=tensor([0, 1, 2, 2, 3]),\n"
        "       row_indices=tensor([2, 0, 1]),\n"
        "       values=tensor([ 2.5000,  1.0000, -3.0000]), size=(3, 4), nnz=3,\n"
        "       layout=torch.sparse_csc)");
  CHECK(to_string(t.to_dense().to(kInt64).to_sparse_bsr({3, 2})) ==
        "tensor(crow_indices=tensor([0, 2]),\n"
        "       col_indices=tensor([0, 1]),\n"
        "       values=tensor([[[ 0,  1],\n"
        "                       [ 0,  0],\n"
        "                       [ 2,  0]],\n"
        "\n"
        "                      [[ 0,  0],\n"
        "                       [ 0, -3],\n"
        "                       [ 0,  0]]]), size=(3, 4), nnz=2,\n"
        "       layout=torch.sparse_bsr)");
  CHECK(to_string(sparse_coo_tensor({2, 3}, kFloat32)) ==
        "tensor(indices=tensor([], size=(2, 0)),\n"
        "       values=tensor([], size=(0,)),\n"
        "       size=(2, 3), nnz=0, layout=torch.sparse_coo)");
  const Tensor imaginary = tensor({complex<float>(0), complex<float>(0, 2)});
  CHECK(to_string(imaginary.to_sparse()) ==
        "tensor(indices=tensor([[1]]),\n"
        "       values=tensor([0.+2.j]),\n"
        "       size=(2,), nnz=1, layout=torch.sparse_coo)");
}
