// Kernels that move elements about, or sum what was moved, against the CPU's.
#include "tests/cuda/same_as_cpu.h"

using namespace rush;
using namespace rush::testing;

namespace {

struct Rearranging {
  const char* name;
  DimVector shape;
  TensorToTensor fn;
};

const Rearranging kAnyType[] = {
    {"flip",
     {5, 7, 9},
     [](const Tensor& x) {
       return flip(x, {0, 2});
     }},
    {"roll",
     {5, 7, 9},
     [](const Tensor& x) {
       return roll(x, {2, -3}, {0, 2});
     }},
    {"triu", {3, 6, 8}, [](const Tensor& x) { return triu(x, 1); }},
    {"tril", {8, 6}, [](const Tensor& x) { return tril(x, -2); }},
    {"tril of a view", {8, 6}, [](const Tensor& x) { return tril(x.t()); }},
    {"reflect",
     {2, 3, 6, 7},
     [](const Tensor& x) {
       return pad(x, {2, 3, 1, 4}, "reflect");
     }},
    {"replicate",
     {2, 3, 6, 7},
     [](const Tensor& x) {
       return pad(x, {2, 3, 1, 4}, "replicate");
     }},
    {"constant",
     {2, 3, 6, 7},
     [](const Tensor& x) {
       return pad(x, {2, -1, 1, 4});
     }},
    {"im2col",
     {2, 3, 9, 8},
     [](const Tensor& x) {
       return im2col(x, {3, 2}, {1, 2}, {1, 0}, {2, 1});
     }},
    {"nonzero", {4, 5, 6}, [](const Tensor& x) { return nonzero(x); }},
    {"masked_select", {7, 30}, [](const Tensor& x) { return masked_select(x, x != 0); }},
    {"masked_scatter", {7, 30}, [](const Tensor& x) { return masked_scatter(x, x == 0, flip(x, {0})); }},
};

const Rearranging kFloating[] = {
    {"nearest",
     {2, 3, 6, 7},
     [](const Tensor& x) {
       return upsample_nearest2d(x, {13, 5});
     }},
    {"bilinear",
     {2, 3, 6, 7},
     [](const Tensor& x) {
       return upsample_bilinear2d(x, {13, 5}, false);
     }},
    {"bicubic",
     {2, 3, 6, 7},
     [](const Tensor& x) {
       return upsample_bicubic2d(x, {13, 5}, true);
     }},
    {"trilinear",
     {2, 3, 4, 5, 6},
     [](const Tensor& x) {
       return upsample_trilinear3d(x, {7, 3, 11}, false);
     }},
    {"cdist 1", {2, 9, 5}, [](const Tensor& x) { return cdist(x, flip(x, {1}), 1); }},
    {"cdist 3", {2, 9, 5}, [](const Tensor& x) { return cdist(x, flip(x, {1}), 3); }},
};

}  // namespace

TEST_CASE("rearranging kernels give what the CPU's give" * doctest::skip(!cuda::is_available())) {
  for (const Rearranging& c : kAnyType) {
    for (ScalarType dtype : {kFloat32, kBFloat16, kInt64, kComplex64}) {
      INFO(str(c.name, " ", name(dtype)));
      const Tensor x = numbers(c.shape, dtype, -2, 2);
      check_same(c.fn(x.cuda()), c.fn(x), 0);
    }
  }
  for (const Rearranging& c : kFloating) {
    for (ScalarType dtype : {kFloat32, kFloat64}) {
      INFO(str(c.name, " ", name(dtype)));
      const Tensor x = numbers(c.shape, dtype, -2, 2);
      check_same(c.fn(x.cuda()), c.fn(x), 20);
    }
  }
}

TEST_CASE("gradients of rearranging operators" * doctest::skip(!cuda::is_available())) {
  const auto gradient = [](const Rearranging& c, const Tensor& x) {
    const Tensor leaf = x.clone().requires_grad_();
    (c.fn(leaf) * 1.5).sum().backward();
    return leaf.grad();
  };
  for (const Rearranging& c : kFloating) {
    INFO(str(c.name));
    const Tensor x = numbers(c.shape, kFloat64, -2, 2);
    check_same(gradient(c, x.cuda()), gradient(c, x), 100);
  }
  for (const Rearranging& c : kAnyType) {
    if (c.name == std::string("nonzero") || c.name == std::string("masked_scatter")) continue;
    INFO(str(c.name));
    const Tensor x = numbers(c.shape, kFloat64, -2, 2);
    check_same(gradient(c, x.cuda()), gradient(c, x), 10);
  }
}

TEST_CASE("ranges" * doctest::skip(!cuda::is_available())) {
  const auto gpu = [](ScalarType dtype) { return TensorOptions(dtype).device(kCUDA); };
  for (ScalarType dtype : {kFloat32, kFloat64, kBFloat16, kInt32, kInt64}) {
    INFO(str(name(dtype)));
    check_same(arange(3, 700, 2, gpu(dtype)), arange(3, 700, 2, dtype), 0);
    check_same(linspace(-3, 5, 301, gpu(dtype)), linspace(-3, 5, 301, dtype), 4);
  }
  check_same(logspace(-1, 2, 33, 10, gpu(kFloat64)), logspace(-1, 2, 33, 10, kFloat64), 10);
  for (int64_t offset : {-7, -2, 0, 1, 4, 9}) {
    INFO(offset);
    check_same(tril_indices(6, 4, offset, gpu(kInt64)), tril_indices(6, 4, offset, kInt64), 0);
    check_same(triu_indices(6, 4, offset, gpu(kInt64)), triu_indices(6, 4, offset, kInt64), 0);
  }
}
