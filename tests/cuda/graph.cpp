// CUDA graphs: what is replayed is what the same calls do outside of a graph, and what cannot be captured is refused
// while the capture goes on.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "backends/cuda/cuda.h"
#include "core/ops/factory/pinned.h"
#include "rushlight.h"
#include "tests/cuda/graph_testing.h"
#include "tests/temporary_folder.h"

using namespace rush;
using namespace rush::testing;
using cuda::CUDAGraph;
namespace F = nn::functional;

namespace {

using Function = std::function<Tensor(const Tensor&)>;

// fn(input) as a graph, after one call of it on the captured stream.
struct Captured {
  Captured(const Tensor& sample, const Function& fn) : input(sample.clone()) {
    cuda::synchronize();
    {
      const StreamGuard on(cuda::capture_stream());
      fn(input);
    }
    const cuda::graph capture(graph);
    output = fn(input);
  }
  Tensor operator()(const Tensor& x) {
    input.copy_(x);
    graph.replay();
    return output;
  }

  Tensor input, output;
  CUDAGraph graph;
};

void check_replays(const Tensor& sample, const Function& fn) {
  Captured captured(sample, fn);
  for (int i = 0; i < 3; ++i) {
    const Tensor x = sample * (i - 1.5);
    CHECK(equal(captured(x), fn(x)));
  }
}

}  // namespace

TEST_CASE("without a GPU graphs say what is missing, and nobody is capturing" * doctest::skip(cuda::is_available())) {
  CHECK_FALSE(cuda::is_current_stream_capturing());
  CHECK_THROWS_AS(CUDAGraph(), CudaError);
  CHECK_THROWS_AS(cuda::graph_pool_handle(), CudaError);
  CHECK_THROWS_AS(cuda::before_replay(nullptr), Error);
}

TEST_CASE("a replay does what the calls did" * doctest::skip(nothing_is_cached())) {
  manual_seed(1);
  const Tensor x = randn({33, 65}, on_gpu()), w = randn({65, 40}, on_gpu()), b = randn({40}, on_gpu());
  check_replays(x, [](const Tensor& t) { return ((t * 2 + 1).sin() - t).sum(1); });
  check_replays(x, [&](const Tensor& t) { return mm(t, w).relu(); });
  check_replays(x, [&](const Tensor& t) { return linear(t, w.t().contiguous(), b); });
  check_replays(x.to(kBFloat16), [&](const Tensor& t) { return softmax(mm(t, w.to(kBFloat16)), 1); });
  check_replays(x, [](const Tensor& t) { return std::get<0>(t.sort(1)).cumsum(0); });
  check_replays(x, [](const Tensor& t) { return t.narrow(1, 3, 50).t().contiguous().flip({0}); });
  const Tensor image = randn({2, 3, 16, 16}, on_gpu()), kernel = randn({4, 3, 3, 3}, on_gpu());
  check_replays(image, [&](const Tensor& t) { return F::max_pool2d(conv2d(t, kernel), F::MaxPool2dFuncOptions(2)); });
  check_replays(image, [](const Tensor& t) { return upsample_bicubic2d(t, {24, 40}, false); });
  // What checks its numbers does not wait for the answer.
  check_replays(x, [](const Tensor& t) {
    const Tensor n = (t * 100).to(kInt64);
    return div(n, n % 7 + 1, "floor") + fmod(n, 5);
  });
  check_replays(x, [](const Tensor& t) { return t.masked_scatter(t > 0.5, t.sin()); });
  check_replays(x, [](const Tensor& t) { return F::binary_cross_entropy(t.sigmoid(), t.sigmoid().round()); });
  const Tensor grid = rand({2, 5, 7, 2}, on_gpu()) * 2 - 1;
  check_replays(image, [&](const Tensor& t) {
    const Tensor leaf = t.detach().requires_grad_();
    return autograd::grad({grid_sampler(leaf, grid, 0, 0, false).exp()}, {leaf}, {ones({2, 3, 5, 7}, on_gpu())})[0];
  });
}

TEST_CASE("kernels find errors in a replay too" * doctest::skip(nothing_is_cached())) {
  const Tensor table = arange(10, on_gpu());
  Captured captured(zeros({4}, on_gpu(kInt64)), [&](const Tensor& i) { return table.index_select(0, i); });
  CHECK(captured(full({4}, 9, on_gpu(kInt64))).sum().item<float>() == 36);
  captured(full({4}, 10, on_gpu(kInt64)));
  CHECK_THROWS_AS(cuda::synchronize(), IndexError);
  CHECK(captured(full({4}, 8, on_gpu(kInt64))).sum().item<float>() == 32);
  Captured divided(ones({4}, on_gpu(kInt64)), [](const Tensor& n) { return remainder(9, n); });
  CHECK(divided(full({4}, 4, on_gpu(kInt64))).sum().item<int64_t>() == 4);
  divided(zeros({4}, on_gpu(kInt64)));
  CHECK_THROWS_WITH_AS(cuda::synchronize(), doctest::Contains("remainder: an integer is divided by 0"), ValueError);
}

TEST_CASE("random numbers in a graph are those of the same calls outside" * doctest::skip(nothing_is_cached())) {
  const Tensor x = ones({1000}, on_gpu());
  const Function draws[] = {
      [](const Tensor& t) { return dropout(t, 0.3, true); },
      [](const Tensor& t) { return dropout(t.sin() * 2, 0.3, true); },  // after memory was freed
      [](const Tensor& t) { return dropout(randn_like(t), 0.5, true) + rand_like(t); },
      [](const Tensor& t) { return t + randperm(1000, on_gpu(kInt64)) + randint(0, 9, {1000}, on_gpu(kInt64)); },
      [](const Tensor& t) { return empty_like(t).exponential_(2).bernoulli_(0.4) + bernoulli(t * 0.3); },
      [](const Tensor& t) { return t + multinomial(t, 1000, true) + multinomial(t, 1000, false); },
      [](const Tensor& t) {  // draws again in the backward pass what it drew before
        const Tensor leaf = t.detach().requires_grad_();
        const Tensor y = autograd::checkpoint(
            [](const Tensor& x) { return dropout(dropout(x.sin(), 0.3, true).exp(), 0.5, true); }, leaf);
        return autograd::grad({(y * rand_like(y)).sum()}, {leaf})[0] + rand_like(t);
      },
  };
  for (const Function& draw : draws) {
    Captured captured(x, draw);
    manual_seed(7);
    std::vector<Tensor> eager, replayed;
    for (int i = 0; i < 4; ++i) eager.push_back(draw(x));
    const uint64_t offset = default_generator(kCUDA).get_offset();
    manual_seed(7);
    // All take from one stream.
    for (int i = 0; i < 4; ++i) replayed.push_back(i == 2 ? draw(x) : captured(x).clone());
    check_equal_lists(replayed, eager);
    CHECK_FALSE(equal(replayed[0], replayed[1]));
    CHECK(default_generator(kCUDA).get_offset() == offset);
    // A state is got and set between replays.
    Generator generator = default_generator(kCUDA);
    const std::vector<uint8_t> state = generator.get_state();
    const Tensor first = captured(x).clone();
    generator.set_state(state);
    CHECK(equal(captured(x), first));
  }
  // A generator of one's own.
  const Generator own = make_generator<CPUGeneratorImpl>(3), own_gpu = default_generator(kCUDA).clone();
  Captured captured(x, [&](const Tensor& t) { return empty_like(t).uniform_(0, 1, own_gpu); });
  Generator seeded = own_gpu;
  seeded.set_current_seed(3);
  captured(x);
  CHECK(allclose(captured.output.cpu(), empty({1000}).uniform_(0, 1, own)));
}

TEST_CASE("a graph's memory is its own and comes back" * doctest::skip(nothing_is_cached())) {
  const int64_t numel = int64_t{1} << 22;  // 16 MiB
  const Tensor x = ones({numel}, on_gpu());
  cuda::synchronize();
  cuda::empty_cache();
  const int64_t before = cuda::memory_reserved();
  const cuda::MempoolId_t pool = cuda::graph_pool_handle();
  CUDAGraph first, second;
  Tensor a, b;
  {
    const cuda::graph capture(first, pool);
    a = (x + 1) * 2;
  }
  const int64_t with_one = cuda::memory_reserved();
  CHECK(with_one > before);
  CHECK(first.pool() == pool);
  {
    // Takes over what the first graph used in between.
    const cuda::graph capture(second, pool);
    b = x * 3;
  }
  CHECK(cuda::memory_reserved() == with_one);
  // Nobody else gets that memory.
  const Tensor other = full({numel}, 5, on_gpu());
  first.replay();
  second.replay();
  CHECK(a.eq(4).all().item<bool>());
  CHECK(b.eq(3).all().item<bool>());
  CHECK(other.eq(5).all().item<bool>());
  cuda::synchronize();
  first.reset();
  CHECK_THROWS_AS(first.replay(), Error);
  CHECK_THROWS_AS(first.pool(), Error);
  second.replay();
  CHECK(b.eq(3).all().item<bool>());
  a = Tensor();
  b = Tensor();
  second.reset();
  cuda::empty_cache();
  CHECK(cuda::memory_reserved() <= before + 16 * (int64_t{1} << 20) + 4 * (int64_t{1} << 20));
  // And the graph can be captured again.
  {
    const cuda::graph capture(first);
    a = x * 7;
  }
  first.replay();
  CHECK(a.eq(7).all().item<bool>());
}

TEST_CASE("functions of a graph called out of order throw" * doctest::skip(nothing_is_cached())) {
  CUDAGraph g;
  CHECK_THROWS_AS(g.replay(), Error);
  CHECK_THROWS_AS(g.capture_end(), Error);
  CHECK_THROWS_AS(g.debug_dump("x"), Error);
  CHECK_THROWS_AS(g.nodes(), Error);
  CHECK_THROWS_AS(g.capture_begin(), Error);  // the default stream
  g.abandon();
  const Tensor x = ones({8}, on_gpu());
  {
    const cuda::graph capture(g);
    CUDAGraph inner;
    CHECK_THROWS_AS(inner.capture_begin(), Error);
    CHECK(cuda::is_current_stream_capturing());
    x.add_(1);
  }
  CHECK_FALSE(cuda::is_current_stream_capturing());
  CHECK_THROWS_AS(g.capture_begin(), Error);  // captured already
  CHECK(x.sum().item<float>() == 8);          // a capture runs nothing
  CHECK(g.nodes() == 1);
  g.replay();
  g.replay();
  CHECK(x.sum().item<float>() == 24);
  const TemporaryFolder folder;
  const std::string path = folder / "graph.dot";
  g.debug_dump(path);
  CHECK(std::filesystem::file_size(path) > 0);
}

TEST_CASE("what cannot be captured is refused, and the capture goes on" * doctest::skip(nothing_is_cached())) {
  const Tensor x = full({8}, 2, on_gpu()), pageable = ones({8}), y = zeros({8}, on_gpu());
  const Tensor pinned = full({8}, 3, TensorOptions(kFloat32)).pin_memory();
  Generator generator = default_generator(kCUDA);
  const cuda::CUDAStream elsewhere = cuda::getStreamFromPool();
  cuda::CUDAEvent outside;
  outside.record();
  x.nonzero();
  const Tensor square = eye(8, on_gpu());
  linalg_eigh(square);
  cuda::synchronize();
  CUDAGraph g;
  Tensor out;
  {
    const cuda::graph capture(g);
    out = x * 2;
    check_refused([&] { x.sum().item<float>(); }, {"CUDA graph", "to the host", "aten::_to_copy"});
    check_refused([&] { x.cpu(); }, {"to the host", "aten::_to_copy"});
    check_refused([&] { x.nonzero(); }, {"aten::nonzero"});
    check_refused([&] { x.masked_select(x > 1); }, {"CUDA graph", "aten::"});
    check_refused([&] { y.copy_(pageable); }, {"from the host", "aten::copy_"});
    check_refused([&] { y.copy_(pinned); }, {"from the host", "non_blocking"});
    check_refused([&] { x.equal(y); }, {"CUDA graph", "looking at numbers", "aten::equal"});
    check_refused([&] { linalg_eigh(square); }, {"one symmetric matrix", "cuSOLVER"});
    check_refused([&] { cuda::synchronize(); }, {"waiting for the GPU"});
    check_refused([&] { cuda::getCurrentCUDAStream().synchronize(); }, {"waiting for a stream"});
    check_refused([&] { outside.query(); }, {"event"});
    check_refused([&] { outside.synchronize(); }, {"event"});
    check_refused([&] { outside.block(cuda::getCurrentCUDAStream()); }, {"from outside of the graph"});
    check_refused([&] { cuda::empty_cache(); }, {"empty_cache"});
    check_refused([&] { generator.set_current_seed(3); }, {"seeding"});
    check_refused([&] { g.replay(); }, {"the replay of a graph"});
    {
      const cuda::CUDAStreamGuard guard(elsewhere);
      check_refused([&] { x + 1; }, {"an allocation", "aten::add.Tensor"});
      elsewhere.wait_stream(cuda::CUDAStream(cuda::capture_stream()));
      out = out + 1;  // now it takes part
    }
    cuda::CUDAStream(cuda::capture_stream()).wait_stream(elsewhere);
    y.copy_(pinned, /*non_blocking=*/true);
    out = out + y;
  }
  g.replay();
  CHECK(out.sum().item<float>() == 8 * (2 * 2 + 1 + 3));
  x.fill_(5);
  g.replay();
  CHECK(out.sum().item<float>() == 8 * (2 * 5 + 1 + 3));
}

TEST_CASE("a thread that waits for the device while another captures waits for the capture" *
          doctest::skip(nothing_is_cached())) {
  const Tensor x = ones({4}, on_gpu());
  std::atomic<bool> has_waited = false;
  std::string error;
  std::thread other;
  cuda::CUDAGraph graph;
  Tensor y;
  {
    const cuda::graph capture(graph);
    y = x + 1;
    other = std::thread([&] {
      try {
        cuda::synchronize();
      } catch (const Error& thrown) {
        error = thrown.what();
      }
      has_waited = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK_FALSE(has_waited);
    y = y * 2;
  }
  other.join();
  CHECK(error == "");
  graph.replay();
  CHECK(y.sum().item<float>() == 16);
}

TEST_CASE("an exception in the scope leaves the graph uncaptured" * doctest::skip(nothing_is_cached())) {
  CUDAGraph g;
  const Tensor x = ones({8}, on_gpu());
  const auto fail = [&] {
    const cuda::graph capture(g);
    x.add_(1);
    throw ValueError("stop");
  };
  CHECK_THROWS_WITH_AS(fail(), "stop", ValueError);
  CHECK_FALSE(cuda::is_current_stream_capturing());
  CHECK_THROWS_AS(g.replay(), Error);
  CHECK(x.sum().item<float>() == 8);
  {
    const cuda::graph capture(g);
    x.add_(1);
  }
  g.replay();
  CHECK(x.sum().item<float>() == 16);
}
