// Several GPUs in one process: tensors on cuda:1, copies between devices, and what each device has of its own.
#include <thread>

#include "backends/cuda/check.h"
#include "backends/cuda/cuda.h"
#include "backends/cuda/stream/current_stream.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/same_as_cpu.h"

using namespace rush;

namespace {

bool one_gpu() { return cuda::device_count() < 2; }

Device gpu(int index) { return Device(kCUDA, index); }

// Keeps the current stream of x's device busy, and leaves x with `rounds` more in every element.
void add_slowly(const Tensor& x, int rounds = 200) {
  for (int i = 0; i < rounds; ++i) x.add_(1);
}

// What a copy between the GPUs may meet: layouts, dtypes, waiting or not.
void check_copies() {
  for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0)}) {
    for (const auto& layout : testing::kLayouts) {
      CAPTURE(from);
      CAPTURE(layout.name);
      const Tensor host = testing::numbers({37, 65}, kFloat32, -9, 9);
      const Tensor x = layout.arrange(host.to(gpu(from)));
      for (const ScalarType dtype : {kFloat32, kBFloat16, kFloat64, kInt32}) {
        CAPTURE(str(dtype));
        for (const bool non_blocking : {false, true}) {
          const Tensor y = x.to(gpu(to), dtype, non_blocking);
          CHECK(y.device() == gpu(to));
          CHECK(y.cpu().equal(host.to(dtype)));
          // Into memory that is laid out otherwise.
          const Tensor target = zeros({65, 74}, TensorOptions(dtype).device(gpu(to)));
          target.t().slice(0, 0, 74, 2).copy_(x, non_blocking);
          CHECK(target.cpu().t().slice(0, 0, 74, 2).equal(host.to(dtype)));
          CHECK_FALSE(target.cpu().t().slice(0, 1, 74, 2).any().item<bool>());
        }
      }
      const Tensor rows = zeros({3, 65}, gpu(to));
      rows.copy_(x[5]);  // broadcasts
      CHECK(rows.cpu().equal(host[5].expand({3, 65})));
    }
    const Tensor none = zeros({0, 4}, gpu(from));
    CHECK(none.to(gpu(to)).sizes() == IntArrayRef({0, 4}));
    CHECK(full({}, 3.5, gpu(from)).to(gpu(to)).item<float>() == 3.5f);
  }
  CHECK(cuda::current_device() == 0);
}

// While there is one, copies go from GPU to GPU without the access that the first copy between them enabled.
class NoPeerAccess {
 public:
  NoPeerAccess() {
    for (const int device : {0, 1}) {
      const cuda::CUDAGuard guard(device);
      RUSH_CUDA_CHECK(cudaDeviceDisablePeerAccess(1 - device));
    }
  }
  ~NoPeerAccess() {
    for (const int device : {0, 1}) {
      const cuda::CUDAGuard guard(device);
      CHECK(cudaDeviceEnablePeerAccess(1 - device, 0) == cudaSuccess);
    }
  }
};

// Losses of a few steps with the first half of the model on one device and the second on another.
std::vector<double> losses_of_a_split_run(Device first, Device second) {
  manual_seed(11);
  nn::Sequential front(nn::Linear(16, 32), nn::Tanh(), nn::Linear(32, 32));
  nn::Sequential back(nn::LayerNorm(nn::LayerNormOptions({32})), nn::GELU(), nn::Linear(32, 5));
  const Tensor x = randn({64, 16}), y = randint(0, 5, {64}, kInt64);
  front->to(first);
  back->to(second);
  std::vector<Tensor> parameters = front->parameters();
  for (const Tensor& parameter : back->parameters()) parameters.push_back(parameter);
  optim::AdamW adam(parameters, optim::AdamWOptions(0.01));
  optim::SGD sgd(parameters, optim::SGDOptions(0.05).momentum(0.9));
  const Tensor input = x.to(first), target = y.to(second);
  std::vector<double> losses;
  for (int step = 0; step < 12; ++step) {
    optim::Optimizer& optimizer = step % 2 == 0 ? static_cast<optim::Optimizer&>(adam) : sgd;
    optimizer.zero_grad();
    const Tensor loss = nn::functional::cross_entropy(back->forward(front->forward(input).to(second)), target);
    loss.backward();
    nn::utils::clip_grad_norm_(parameters, 0.5);
    optimizer.step();
    losses.push_back(loss.item<double>());
    for (const Tensor& parameter : front->parameters()) REQUIRE(parameter.grad().device() == first);
    for (const Tensor& parameter : back->parameters()) REQUIRE(parameter.grad().device() == second);
  }
  return losses;
}

}  // namespace

TEST_CASE("several GPUs: each operator runs where its tensors are" * doctest::skip(one_gpu())) {
  const Tensor x = testing::numbers({24, 24}, kFloat32, -1, 1), y = x.to(gpu(1));
  CHECK(y.device() == gpu(1));
  CHECK(cuda::current_device() == 0);
  testing::check_same(y * 2 + y.t(), x * 2 + x.t(), 0);
  testing::check_same(y.mm(y), x.mm(x), 10);
  testing::check_same(y.sum(0), x.sum(0), 10);
  testing::check_same(softmax(y, 1), softmax(x, 1), 10);
  testing::check_same(std::get<0>(y.sort(1)), std::get<0>(x.sort(1)), 0);
  testing::check_same(y.cumsum(1), x.cumsum(1), 10);
  const Tensor image = x.view({1, 1, 24, 24}), weight = testing::numbers({2, 1, 3, 3}, kFloat64, -1, 1);
  const Tensor smoothed = conv2d(image.to(kFloat64), weight);
  CHECK(conv2d(image.to(gpu(1), kFloat64), weight.to(gpu(1))).cpu().allclose(smoothed));
  CHECK(to_string(y).find("device='cuda:1'") != std::string::npos);
  CHECK(empty_like(y).device() == gpu(1));
  CHECK(cuda::current_device() == 0);
}

TEST_CASE("several GPUs: copies between them" * doctest::skip(one_gpu())) {
  check_copies();
  int there = 0, back = 0;
  RUSH_CUDA_CHECK(cudaDeviceCanAccessPeer(&there, 0, 1));
  RUSH_CUDA_CHECK(cudaDeviceCanAccessPeer(&back, 1, 0));
  if (!there || !back) return;  // then the copies above had no access either
  const NoPeerAccess without;
  check_copies();
}

TEST_CASE("several GPUs: copies keep to the order of both streams" * doctest::skip(one_gpu())) {
  constexpr int64_t kMany = int64_t{1} << 22;
  for (const auto& [from, to] : {std::pair(0, 1), std::pair(1, 0)}) {
    const cuda::CUDAStream source = cuda::getStreamFromPool(false, from), sink = cuda::getStreamFromPool(false, to);
    const Device previous = gpu(0);
    cuda::setCurrentCUDAStream(source);
    cuda::setCurrentCUDAStream(sink);
    const Tensor x = zeros({kMany}, gpu(from)), y = full({kMany}, -1.0f, gpu(to));
    add_slowly(y);
    const Tensor read = y * 1;  // queued behind that, and before the copy overwrites y
    add_slowly(x);
    y.copy_(x, true);
    x.fill_(7);  // behind the copy, which reads x
    const Tensor result = y + 1;
    CHECK(read.cpu().equal(full({kMany}, 199.0f)));
    CHECK(result.cpu().equal(full({kMany}, 201.0f)));
    CHECK(x.cpu().equal(full({kMany}, 7.0f)));
    cuda::setCurrentCUDAStream(cuda::getDefaultCUDAStream(0));
    cuda::setCurrentCUDAStream(cuda::getDefaultCUDAStream(1));
    cuda::synchronize(0);
    cuda::synchronize(1);
    CHECK(gpu(static_cast<int>(cuda::current_device())) == previous);
  }
}

TEST_CASE("several GPUs: an event of one holds up a stream of another" * doctest::skip(one_gpu())) {
  const cuda::CUDAStream far = cuda::getStreamFromPool(false, 1), near = cuda::getStreamFromPool(false, 0);
  Tensor x, y;
  cuda::CUDAEvent done;
  {
    const cuda::CUDAStreamGuard guard(far);
    CHECK(cuda::current_device() == 1);
    x = zeros({1 << 22}, kCUDA);
    CHECK(x.device() == gpu(1));
    add_slowly(x);
    done.record();
  }
  CHECK(cuda::current_device() == 0);
  CHECK(done.device_index() == 1);
  {
    const cuda::CUDAStreamGuard guard(near);
    y = empty({1 << 22}, kCUDA);
    near.wait_event(done);
    RUSH_CUDA_CHECK(cudaMemcpyAsync(y.data_ptr(), x.data_ptr(), static_cast<size_t>(x.nbytes()), cudaMemcpyDefault,
                                    cuda::current_stream()));
    near.synchronize();
  }
  CHECK(done.query());
  CHECK(y.cpu().equal(full({1 << 22}, 200.0f)));
}

TEST_CASE("several GPUs: operators refuse tensors of two devices" * doctest::skip(one_gpu())) {
  const Tensor a = ones({4, 4}, gpu(0)), b = ones({4, 4}, gpu(1)),
               index = zeros({4}, TensorOptions(kInt64).device(gpu(1)));
  using Call = void (*)(const Tensor& a, const Tensor& b, const Tensor& index);
  const Call calls[] = {
      [](const Tensor& a, const Tensor& b, const Tensor&) { a + b; },
      [](const Tensor& a, const Tensor& b, const Tensor&) { a.mul_(b); },
      [](const Tensor& a, const Tensor& b, const Tensor&) { a.mm(b); },
      [](const Tensor& a, const Tensor& b, const Tensor&) {
        cat({a, b});
      },
      [](const Tensor& a, const Tensor& b, const Tensor&) { where(a > 0, a, b); },
      [](const Tensor& a, const Tensor&, const Tensor& index) { index_select(a, 0, index); },
      [](const Tensor& a, const Tensor&, const Tensor& index) { embedding(a, index); },
      [](const Tensor& a, const Tensor& b, const Tensor&) { layer_norm(a, {4}, b[0], b[0]); },
      [](const Tensor& a, const Tensor& b, const Tensor&) {
        conv1d(a.view({1, 4, 4}), b.view({4, 4, 1}));
      },
      [](const Tensor& a, const Tensor& b, const Tensor&) { nn::functional::linear(a, b); },
      [](const Tensor& a, const Tensor&, const Tensor& index) { nn::functional::cross_entropy(a, index); },
  };
  for (const Call& call : calls) {
    try {
      call(a, b, index);
      FAIL("expected a ValueError");
    } catch (const ValueError& error) {
      const std::string line = error.what();
      CAPTURE(line);
      CHECK(line.find('\n') == line.npos);
      CHECK(line.find("device") != line.npos);
      CHECK(line.find("cuda:0") != line.npos);
      CHECK(line.find("cuda:1") != line.npos);
    }
  }
  CHECK(a.cpu().equal(ones({4, 4})));
  CHECK(cuda::current_device() == 0);
  CHECK((b + full({}, 2.0f, gpu(1)) + tensor(3.f))
            .cpu()
            .equal(full({4, 4}, 6.0f)));  // a number of the host's may come along
}

TEST_CASE("several GPUs: the current device is a thread's own, and guards restore it" * doctest::skip(one_gpu())) {
  {
    const cuda::CUDAGuard guard(1);
    CHECK(cuda::current_device() == 1);
    CHECK(empty({1}, kCUDA).device() == gpu(1));
    CHECK(ones({2}).cuda().device() == gpu(1));
    std::thread([] { CHECK(cuda::current_device() == 0); }).join();
    CHECK(ones({2}, gpu(0)).add(1).device() == gpu(0));
    CHECK(cuda::current_device() == 1);
    try {
      const cuda::CUDAGuard inner(0);
      ones({2}, kCUDA) + ones({3}, kCUDA);
    } catch (const ValueError&) {
    }
    CHECK(cuda::current_device() == 1);
  }
  CHECK(cuda::current_device() == 0);
  cuda::set_device(1);
  CHECK(zeros({1}, kCUDA).device() == gpu(1));
  cuda::set_device(0);
}

TEST_CASE("several GPUs: a model split over two trains as on one" * doctest::skip(one_gpu())) {
  const std::vector<double> whole = losses_of_a_split_run(gpu(0), gpu(0));
  CHECK(whole.back() < whole.front());
  for (const auto& [first, second] : {std::pair(0, 1), std::pair(1, 0), std::pair(1, 1)}) {
    CAPTURE(first);
    CAPTURE(second);
    const std::vector<double> split = losses_of_a_split_run(gpu(first), gpu(second));
    REQUIRE(split.size() == whole.size());
    for (size_t i = 0; i < whole.size(); ++i) CHECK(split[i] == doctest::Approx(whole[i]).epsilon(1e-6));
  }
  CHECK(cuda::current_device() == 0);
}

TEST_CASE("several GPUs: memory is counted and handed out by device" *
          doctest::skip(one_gpu() || testing::nothing_is_cached())) {
  cuda::empty_cache();
  const int64_t here = cuda::memory_allocated(0), there = cuda::memory_allocated(1);
  {
    const Tensor x = zeros({1 << 20}, gpu(1));
    CHECK(cuda::memory_allocated(1) - there == 4 << 20);
    CHECK(cuda::memory_allocated(0) == here);
    try {
      const auto total = static_cast<int64_t>(cuda::mem_get_info(1).total);
      empty({2 * total}, TensorOptions(kUInt8).device(gpu(1)));
      FAIL("expected an OutOfMemoryError");
    } catch (const OutOfMemoryError& error) {
      CHECK(std::string(error.what()).find("cuda:1") != std::string::npos);
    }
    CHECK(x.add(1).cpu().equal(ones({1 << 20})));
    const cuda::MemPool pool(1);
    CHECK(pool.device_index() == 1);
    const cuda::MemPoolContext context(pool);
    const Tensor inside = ones({1000}, gpu(1));
    bool found = false;
    for (const cuda::DeviceSnapshot& snapshot : cuda::memory_snapshot()) {
      for (const cuda::SegmentInfo& segment : snapshot.segments) {
        if (segment.group == pool.id()) found = snapshot.device == 1;
      }
    }
    CHECK(found);
  }
  CHECK(cuda::memory_allocated(1) == there);
  std::thread([] { const Tensor freed_elsewhere = ones({1 << 20}, gpu(1)); }).join();
  CHECK(cuda::memory_allocated(1) == there);
}

TEST_CASE("several GPUs: each has its generator" * doctest::skip(one_gpu())) {
  cuda::manual_seed_all(7);
  const Tensor a = randn({1000}, gpu(0)), b = randn({1000}, gpu(1));
  CHECK(a.cpu().equal(b.cpu()));
  const auto offset = default_generator(gpu(0)).get_offset();
  const Tensor more = rand({1000}, gpu(1));
  CHECK(default_generator(gpu(0)).get_offset() == offset);
  CHECK(default_generator(gpu(1)).get_offset() != offset);
  CHECK(rand({1000}, gpu(0)).cpu().equal(more.cpu()));
}

TEST_CASE("several GPUs: what a kernel finds is told when its own device is waited for" * doctest::skip(one_gpu())) {
  const Tensor x = ones({4}, gpu(1)), beyond = full({1}, 9, TensorOptions(kInt64).device(gpu(1)));
  index_select(x, 0, beyond);
  CHECK(ones({3}, gpu(0)).sum().item<float>() == 3);
  CHECK_THROWS_AS(cuda::synchronize(1), IndexError);
  CHECK(x.sum().item<float>() == 4);
}
