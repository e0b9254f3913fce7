// Devices, streams, events, copies and memory on a GPU; and what happens without one.
#include <doctest/doctest.h>

#include <thread>

#include "backends/cuda/cuda.h"
#include "core/ops/factory/pinned.h"
#include "rushlight.h"
#include "tests/cuda/gpu.h"

using namespace rush;
using rush::testing::no_gpu;

namespace {
// Keeps a stream busy for a while.
Tensor long_work(int rounds = 200) {
  Tensor x = ones({1 << 22}, kCUDA);
  for (int i = 0; i < rounds; ++i) x.mul_(1.0f);
  return x;
}
// The losses of fifty steps; with `greedy`, each asks twice for more memory than there is.
std::vector<double> losses_of_a_run(bool greedy) {
  manual_seed(5);
  nn::Sequential net(nn::Linear(32, 64), nn::ReLU(), nn::Linear(64, 10));
  net->to(kCUDA);
  optim::AdamW optimizer(net->parameters(), optim::AdamWOptions(0.01));
  const Tensor x = randn({128, 32}, TensorOptions(kCUDA)), y = randint(0, 10, {128}, TensorOptions(kInt64)).to(kCUDA);
  const auto more_than_there_is = [] { empty({int64_t{1} << 40}, TensorOptions(kCUDA)); };
  std::vector<double> losses;
  for (int step = 0; step < 50; ++step) {
    optimizer.zero_grad();
    const Tensor loss = nn::functional::cross_entropy(net->forward(x), y);
    if (greedy) CHECK_THROWS_AS(more_than_there_is(), OutOfMemoryError);
    loss.backward();
    if (greedy) CHECK_THROWS_AS(more_than_there_is(), OutOfMemoryError);
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

TEST_CASE("a hundred requests for more memory than the card has leave a training run as it was" *
          doctest::skip(no_gpu())) {
  const std::vector<double> undisturbed = losses_of_a_run(false);
  CHECK(undisturbed.back() < undisturbed.front());
  CHECK(losses_of_a_run(true) == undisturbed);
}

}  // namespace

TEST_CASE("a device that is being started computes" * doctest::skip(no_gpu())) {
  const DeviceStart first(kCUDA), second(Device(kCUDA, 0));
  const Tensor x = ones({8, 8}, kCUDA);
  CHECK(mm(x, x).eq(8).all().item<bool>());
  CHECK_THROWS_AS(DeviceStart(Device(kCUDA, 99)), ValueError);
}

TEST_CASE("without a GPU one line says what is missing" * doctest::skip(cuda::is_available())) {
  CHECK(cuda::device_count() == 0);
  for (const auto& call : {+[] { zeros({2}, kCUDA); }, +[] { ones({2}).cuda(); }, +[] { cuda::synchronize(); },
                           +[] { cuda::current_device(); }, +[] { default_generator(kCUDA); },
                           +[] { ones({2}).pin_memory(); }, +[] { DeviceStart start(kCUDA); }}) {
    try {
      call();
      FAIL("expected a CudaError");
    } catch (const CudaError& error) {
      CHECK(std::string(error.what()).starts_with("CUDA: "));
    }
  }
  CHECK_FALSE(ones({2}).is_pinned());
  manual_seed(1);
}

TEST_CASE("devices" * doctest::skip(no_gpu())) {
  CHECK(cuda::current_device() == 0);
  const auto properties = cuda::get_device_properties();
  CHECK(properties.major >= 5);
  CHECK(properties.multi_processor_count > 0);
  const auto memory = cuda::mem_get_info();
  CHECK(memory.free <= memory.total);
  CHECK(memory.total <= properties.total_memory);
  CHECK(empty({2}, kCUDA).device() == Device(kCUDA, 0));
  CHECK_THROWS_AS(empty({2}, Device(kCUDA, 100)), ValueError);
  CHECK_THROWS_AS(cuda::set_device(100), ValueError);
  CHECK_THROWS_AS(DeviceGuard(Device(kCUDA, 100)), ValueError);
  try {
    ones({2}, kCUDA) + ones({2});
    FAIL("expected a ValueError");
  } catch (const ValueError& error) {
    CHECK(std::string(error.what()).starts_with("aten::add.Tensor: its tensors are on different devices"));
  }
  CHECK((ones({2}, kCUDA) + tensor(1.0)).cpu()[0].item<float>() == 2);
}

TEST_CASE("copies between host and device keep values, dtypes and strides" * doctest::skip(no_gpu())) {
  const Tensor host = arange(24, kFloat32).reshape({2, 3, 4});
  for (const Tensor& view : {host, host.transpose(0, 2), host.slice(2, 1, 4, 2), host[1], host.select(2, 1),
                             host.slice(0, 0, 0), host[0][0][0]}) {
    CHECK(view.cuda().cpu().equal(view));
    CHECK(view.to(Device(kCUDA), kInt64).cpu().equal(view.to(kInt64)));
    CHECK(view.cuda().to(Device(kCPU), kFloat64).equal(view.to(kFloat64)));
  }
  const Tensor device = host.cuda();
  CHECK(device.transpose(0, 2).cpu().equal(host.transpose(0, 2)));
  CHECK(device.slice(2, 1, 4, 2).cpu().equal(host.slice(2, 1, 4, 2)));
  Tensor target = zeros({2, 3, 4}, kFloat64);
  target.transpose(0, 2).copy_(device.transpose(0, 2));
  CHECK(target.equal(host.to(kFloat64)));
  Tensor broadcast = zeros({3, 4}, kCUDA);
  broadcast.copy_(arange(4, kInt64));
  CHECK(broadcast.cpu().equal(arange(4, kFloat32).expand({3, 4})));
  CHECK(device[1][2][3].item<float>() == 23);
  CHECK(to_string(ones({2}, kCUDA)).find("device='cuda:0'") != std::string::npos);
  CHECK_THROWS_AS(target.copy_(ones({5}, kCUDA)), ValueError);
}

TEST_CASE("pinned memory" * doctest::skip(no_gpu())) {
  const Tensor host = arange(1 << 20, kFloat32);
  CHECK_FALSE(host.is_pinned());
  const Tensor pinned = host.pin_memory();
  CHECK(pinned.is_pinned());
  CHECK(pinned.pin_memory().is_same(pinned));
  CHECK(pinned.equal(host));
  const Tensor device = pinned.to(Device(kCUDA), true);
  Tensor back = empty({1 << 20}, TensorOptions(kFloat32).pinned_memory(true));
  CHECK(back.is_pinned());
  back.copy_(device, true);
  cuda::synchronize();
  CHECK(back.equal(host));
  CHECK_THROWS_AS(device.pin_memory(), ValueError);
  // Memory that a copy still reads is not handed out again.
  for (int i = 0; i < 20; ++i) {
    const Tensor busy = long_work(20);
    Tensor out = empty({1 << 20}, kCUDA);
    out.copy_(full({1 << 20}, i, kFloat32).pin_memory(), true);
    const Tensor overwritten = full({1 << 20}, -1, kFloat32).pin_memory();
    CHECK(out.cpu().equal(full({1 << 20}, i, kFloat32)));
  }
}

TEST_CASE("streams and events" * doctest::skip(no_gpu())) {
  const auto original = cuda::getCurrentCUDAStream();
  CHECK(original == cuda::getDefaultCUDAStream());
  const auto side = cuda::getStreamFromPool(), urgent = cuda::getStreamFromPool(true);
  CHECK_FALSE(side == original);
  CHECK_FALSE(side == urgent);
  CHECK(urgent.priority() < side.priority());
  Tensor x;
  {
    const cuda::CUDAStreamGuard guard(side);
    CHECK(cuda::getCurrentCUDAStream() == side);
    x = long_work();
    std::thread([&] { CHECK(cuda::getCurrentCUDAStream() == original); }).join();
  }
  CHECK(cuda::getCurrentCUDAStream() == original);
  cuda::CUDAEvent start(cuda::kEventDefault), end(cuda::kEventDefault);
  CHECK(start.query());
  start.record(side);
  {
    const cuda::CUDAStreamGuard guard(side);
    x.add_(1);
  }
  end.record(side);
  original.wait_event(end);
  CHECK((x + 1).sum().item<float>() == doctest::Approx(3.0 * (1 << 22)));
  end.synchronize();
  CHECK(end.query());
  CHECK(start.elapsed_time(end) >= 0);
  CHECK(side.query());
  x.record_stream(side);
  CHECK_THROWS_AS(ones({2}).record_stream(side), ValueError);
}

TEST_CASE("backward runs on the forward's stream and the caller sees the gradients" * doctest::skip(no_gpu())) {
  const auto side = cuda::getStreamFromPool();
  Tensor a = ones({1 << 20}, kCUDA).requires_grad_(true), loss;
  side.wait_stream(cuda::getCurrentCUDAStream());
  {
    const cuda::CUDAStreamGuard guard(side);
    Tensor y = a;
    for (int i = 0; i < 20; ++i) y = y * 2;
    loss = y.sum();
  }
  cuda::getCurrentCUDAStream().wait_stream(side);
  Tensor both = loss + (a * 3).sum();
  both.backward();
  CHECK(a.grad().cpu().equal(full({1 << 20}, 1048576.0f + 3)));
  CHECK(cuda::getCurrentCUDAStream() == cuda::getDefaultCUDAStream());
}

TEST_CASE("memory is counted, returned, and short of it training goes on" *
          doctest::skip(rush::testing::nothing_is_cached())) {
  cuda::empty_cache();
  const int64_t before = cuda::memory_allocated();
  Tensor x = ones({1 << 20}, kCUDA);
  CHECK(cuda::memory_allocated() - before == 4 << 20);
  CHECK(cuda::memory_reserved() >= cuda::memory_allocated());
  CHECK(cuda::memory_stats_by_name().at("allocated_bytes.all.current") == cuda::memory_allocated());
  cuda::reset_peak_memory_stats();
  CHECK(cuda::max_memory_allocated() == cuda::memory_allocated());
  const auto total = static_cast<int64_t>(cuda::mem_get_info().total);
  for (int i = 0; i < 100; ++i) {
    CHECK_THROWS_AS(empty({2 * total}, TensorOptions(kUInt8).device(kCUDA)), OutOfMemoryError);
    x.add_(1);
  }
  CHECK(x[5].item<float>() == 101);
  const cuda::MemPool pool;
  {
    const cuda::MemPoolContext context(pool);
    const Tensor inside = ones({1000}, kCUDA);
    bool found = false;
    const auto snapshots = cuda::memory_snapshot();
    for (const auto& segment : snapshots.at(0).segments) found = found || segment.group == pool.id();
    CHECK(found);
  }
}

TEST_CASE("an allocator of one's own" * doctest::skip(no_gpu())) {
  // Hands out slices of one tensor's memory.
  class Arena final : public cuda::CUDAAllocator {
   public:
    void* malloc(size_t nbytes, int, cudaStream_t) override {
      void* data = static_cast<char*>(memory_.data_ptr()) + used_;
      used_ += (nbytes + 511) / 512 * 512;
      ++live;
      return data;
    }
    void free(void*, size_t, int, cudaStream_t) noexcept override { --live; }
    int live = 0;

   private:
    Tensor memory_ = empty({1 << 20}, TensorOptions(kUInt8).device(kCUDA));
    size_t used_ = 0;
  };
  Arena arena;
  cuda::change_current_allocator(&arena);
  {
    const Tensor x = ones({1000}, kCUDA);
    CHECK(arena.live >= 1);
    CHECK(x.sum().item<float>() == 1000);
  }
  cuda::change_current_allocator(nullptr);
  CHECK(arena.live == 0);
}

TEST_CASE("generators" * doctest::skip(no_gpu())) {
  manual_seed(42);
  Generator generator = default_generator(kCUDA);
  CHECK(generator.current_seed() == 42);
  CHECK(generator.device() == Device(kCUDA, 0));
  CHECK(default_generator(Device(kCUDA, 0)) == generator);
  generator.reserve(7);
  CHECK(generator.get_offset() == 8);
  const auto state = generator.get_state();
  Generator copy = generator.clone();
  CHECK(copy.get_state() == state);
  cuda::manual_seed_all(7);
  CHECK(generator.current_seed() == 7);
}
