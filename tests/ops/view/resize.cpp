#include <doctest/doctest.h>

#include <vector>

#include "rushlight.h"

using namespace rush;

TEST_CASE("resize_ keeps elements where they are, and grows the storage of all that share it") {
  std::vector<Device> devices = {kCPU};
  if (cuda::is_available()) devices.emplace_back(kCUDA);
  for (const Device device : devices) {
    Tensor x = arange(6, TensorOptions(kFloat32).device(device));
    const Tensor view = x.view({2, 3});
    x.resize_({2, 2});
    CHECK(x.cpu().equal(tensor({{0., 1.}, {2., 3.}}, TensorOptions(kFloat32).device(kCPU))));
    CHECK(x.storage() == view.storage());
    x.resize_({4, 4});
    CHECK(x.storage().nbytes() == 64);
    CHECK(x.flatten().slice(0, 0, 6).cpu().equal(arange(6, TensorOptions(kFloat32).device(kCPU))));
    CHECK(view.cpu().equal(arange(6, TensorOptions(kFloat32).device(kCPU)).view({2, 3})));
    x.fill_(7);
    CHECK(view.cpu().eq(7).all().item<bool>());
    Tensor part = x.flatten().slice(0, 10, 12);
    part.resize_({8});
    CHECK(part.storage_offset() == 10);
    CHECK(x.storage().nbytes() == 72);
  }
  Tensor meta = empty({2}, TensorOptions(kMeta));
  CHECK(meta.resize_({3, 4}).sizes() == IntArrayRef({3, 4}));
}

TEST_CASE("resize_ refuses what it cannot do, and changes nothing") {
  float values[4] = {1, 2, 3, 4};
  Tensor blob = from_blob(values, {4});
  CHECK(blob.resize_({2}).sizes() == IntArrayRef({2}));
  CHECK_THROWS_AS(blob.resize_({5}), Error);
  CHECK(blob.sizes() == IntArrayRef({2}));
  CHECK_THROWS_AS(ones({2}).requires_grad_().resize_({2}), Error);
  CHECK_THROWS_AS(ones({2}).resize_({-1}), ValueError);
  CHECK_THROWS_AS(ones({2}).resize_({int64_t{1} << 62, 4}), ValueError);
  CHECK_THROWS_AS(ones({2}).resize_({2, 2}, MemoryFormat::ChannelsLast), ValueError);
}

TEST_CASE("a sparse tensor is not turned in place") {
  for (Tensor sparse : {arange(6).view({2, 3}).to_sparse(), arange(6).view({2, 3}).to_sparse_csr()}) {
    CHECK_THROWS_WITH_AS(sparse.t_(), doctest::Contains("t_"), NotImplementedError);
    CHECK_THROWS_WITH_AS(sparse.transpose_(0, 1), doctest::Contains("transpose_"), NotImplementedError);
    CHECK(sparse.to_dense().equal(arange(6).view({2, 3})));
  }
}
