// Batches that are copied to the GPU while it works on the one before.
#include <doctest/doctest.h>

#include "backends/cuda/cuda.h"
#include "core/ops/factory/pinned.h"
#include "rushlight.h"
#include "tests/compute_sanitizer.h"
#include "tests/cuda/gpu.h"

using namespace rush;
using namespace rush::data;
using rush::testing::no_gpu;

namespace {

// 100 ms and more on a fast GPU.
Tensor long_products(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < 200; ++i) y = mm(y, x) * 1e-3;
  return y;
}

auto loader_of(int64_t count, int64_t width, bool pinned, size_t workers) {
  const Tensor numbers = arange(count, kFloat32).view({-1, 1}).expand({count, width}).contiguous();
  return make_data_loader<samplers::SequentialSampler>(
      datasets::TensorPairDataset(numbers, arange(count, kInt64))
          .map(transforms::Stack<>())
          .map(transforms::BatchLambda<Example<>>([pinned](Example<> batch) {
            return pinned ? transforms::PinMemory<>().apply_batch(std::move(batch)) : batch;
          })),
      DataLoaderOptions(4).workers(workers));
}

}  // namespace

TEST_CASE("prefetched batches are right and in order while the stream that uses them is busy" *
          doctest::skip(no_gpu())) {
  const Tensor factor = randn({2048, 2048}, kCUDA);
  for (const bool pinned : {false, true}) {
    for (const size_t ahead : {1, 3}) {
      const auto loader = loader_of(46, 1 << 18, pinned, 2);  // 4 MiB a batch
      DevicePrefetcher batches(*loader, kCUDA, ahead);
      for (int repeat = 0; repeat < 2; ++repeat) {
        std::vector<Tensor> sums, targets;
        for (const Example<>& batch : batches) {
          CHECK(batch.data.is_cuda());
          const Tensor delay = mm(factor, factor).sum() * 0;  // memory that is reused too early would change meanwhile
          sums.push_back((batch.data + delay).sum(1) / (1 << 18));
          targets.push_back(batch.target);
        }
        CHECK(targets.size() == 12);
        CHECK(equal(cat(targets).cpu(), arange(46, kInt64)));
        CHECK(equal(cat(sums).cpu(), arange(46, kFloat32)));
      }
    }
  }
}

TEST_CASE("a copy is done before the work that the current stream was given earlier" * doctest::skip(no_gpu())) {
  const data::detail::DeviceCopies copies(kCUDA);
  const Tensor x = randn({2048, 2048}, kCUDA), host = full({1 << 22}, 3, kFloat32).pin_memory();
  Tensor warm_up = host;
  copies.begin(warm_up);
  long_products(x);
  cuda::synchronize();
  const Tensor busy = long_products(x);
  cuda::CUDAEvent work_done;
  work_done.record();
  Tensor copy = host;
  copies.begin(copy);
  const Event copied = copies.mark();
  copied.synchronize();
  CHECK((testing::under_compute_sanitizer() || !work_done.query()));  // where launches may wait for their kernels
  copies.wait(copied);
  copies.hand_over(copy);
  CHECK((copy - 3).abs().sum().item<float>() == 0);
  CHECK(work_done.query());
}

TEST_CASE("the state of a prefetcher on a GPU leaves out what is on its way" * doctest::skip(no_gpu())) {
  for (const size_t ahead : {1, 3}) {
    const auto loader = loader_of(20, 8, true, 2), other = loader_of(20, 8, true, 0);
    DevicePrefetcher batches(*loader, kCUDA, ahead), twin(*other, kCUDA, ahead);
    int taken = 0;
    for (const Example<>& batch : batches) {
      twin.load_state_dict(batches.state_dict());
      std::vector<int64_t> rest;
      for (const Example<>& later : twin) rest.push_back(later.target[0].item<int64_t>());
      ++taken;
      if (taken == 5) break;  // after the last batch comes a new epoch
      CHECK(rest.size() == static_cast<size_t>(5 - taken));
      CHECK(rest[0] == 4 * taken);
      CHECK(batch.target[0].item<int64_t>() == 4 * (taken - 1));
    }
  }
}
