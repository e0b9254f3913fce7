// launch_kernel: what reaches the kernel, from which thread, on which device, and how a refusal is told.
#include "backends/cuda/launch_kernel.h"

#include <thread>
#include <vector>

#include "tests/cuda/gpu.h"
#include "tests/cuda/graph_testing.h"
#include "tests/cuda/probe_kernel.h"

using namespace rush;
using namespace rush::testing;
using cuda::launch_kernel;

namespace {

Tensor room() { return zeros({kProbed}, on_gpu(kInt64)); }

LargeArgument ending_in(int64_t last) {
  LargeArgument large{};
  large.values[479] = last;
  return large;
}

std::vector<int64_t> told(const Tensor& out) {
  const Tensor host = out.cpu();
  return {host.data_ptr<int64_t>(), host.data_ptr<int64_t>() + kProbed};
}

void a_function_of_the_host(int) {}

}  // namespace

TEST_CASE("a kernel gets its shape and its arguments, converted to its parameters" * doctest::skip(no_gpu())) {
  const Tensor out = room();
  const int number = -5;
  launch_kernel("probe", probe_kernel(), {dim3(3, 2, 1), dim3(8, 4, 2), 1024}, out.data_ptr<int64_t>(), number,
                ending_in(77), nullptr);
  CHECK(told(out) == std::vector<int64_t>{3, 2, 1, 8, 4, 2, 1024, -5, 77, 1});
  launch_kernel("probe", probe_kernel(), {1, 1}, out.data_ptr<int64_t>(), 1, ending_in(-1), nullptr);
  CHECK(told(out) == std::vector<int64_t>{1, 1, 1, 1, 1, 1, 0, 1, -1, 1});
}

TEST_CASE("a refused launch names the operator and its shape, and the next one goes on" * doctest::skip(no_gpu())) {
  const Tensor out = room();
  const auto launch = [&](const cuda::LaunchShape& shape) {
    launch_kernel("probe", probe_kernel(), shape, out.data_ptr<int64_t>(), 1, ending_in(2), nullptr);
  };
  check_refused([&] { launch({1, 2048}); }, {"the launch of probe", "1 x 1 x 1", "2048 x 1 x 1", "invalid argument"});
  check_refused([&] { launch({0, 32}); }, {"the launch of probe", "0 x 1 x 1"});
  check_refused([&] { launch({1, 32, size_t{1} << 20}); }, {"the launch of probe", "1048576 bytes"});
  check_refused(
      [&] {
        launch_kernel("probe", &a_function_of_the_host, {1, 1}, 0);
      },
      {"the launch of probe", "cudaErrorInvalidDeviceFunction"});
  launch({1, 32});
  CHECK(told(out) == std::vector<int64_t>{1, 1, 1, 32, 1, 1, 0, 1, 2, 1});
}

TEST_CASE("a thread may begin with a launch" * doctest::skip(no_gpu())) {
  const Tensor out = room();
  cuda::synchronize();
  std::thread([&] {
    launch_kernel("probe", probe_kernel_for_thread(), {1, 32}, out.data_ptr<int64_t>(), 3, ending_in(4), nullptr);
    cuda::synchronize();
  }).join();
  CHECK(told(out) == std::vector<int64_t>{1, 1, 1, 32, 1, 1, 0, 3, 4, 1});
}

TEST_CASE("a kernel may be launched for the first time while a stream is captured" *
          doctest::skip(nothing_is_cached())) {
  const Tensor out = room();
  cuda::synchronize();
  cuda::CUDAGraph graph;
  {
    const cuda::graph capture(graph);
    launch_kernel("probe", probe_kernel_for_capture(), {1, 32}, out.data_ptr<int64_t>(), 5, ending_in(6), nullptr);
  }
  CHECK(told(out) == std::vector<int64_t>(kProbed));
  graph.replay();
  CHECK(told(out) == std::vector<int64_t>{1, 1, 1, 32, 1, 1, 0, 5, 6, 1});
}

TEST_CASE("a kernel is launched on the current device" * doctest::skip(cuda::device_count() < 2)) {
  for (int round = 0; round < 3; ++round) {
    for (int index = 0; index < 2; ++index) {
      const DeviceGuard on(Device(kCUDA, index));
      const Tensor out = room();
      CHECK(out.device().index == index);
      launch_kernel("probe", probe_kernel(), {1, 32}, out.data_ptr<int64_t>(), round, ending_in(index), nullptr);
      CHECK(told(out) == std::vector<int64_t>{1, 1, 1, 32, 1, 1, 0, round, index, 1});
    }
  }
}
