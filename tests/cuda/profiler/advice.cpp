// Programs with a flaw each, and the same without: a profile names the flaw, and says nothing of the mended one.
#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "backends/cuda/cuda.h"
#include "backends/cuda/cuda_kernel.h"
#include "rushlight.h"
#include "tests/compute_sanitizer.h"

using namespace rush;

namespace {

// The advice is on times, which are others where each launch is watched.
bool no_times() { return !cuda::is_available() || testing::under_compute_sanitizer(); }

std::string flaws_of(const std::function<void()>& program) {
  program();  // once before: plans are made, memory is taken
  cuda::synchronize();
  profiler::Profile profile;
  program();
  cuda::synchronize();
  profile.stop();
  std::string flaws;
  for (const profiler::Advice& advice : profile.advice()) flaws += (flaws.empty() ? "" : ", ") + advice.flaw;
  return flaws;
}

// About 50 us of a fast GPU's memory for each round.
void stream_through(const Tensor& x, int rounds) {
  for (int i = 0; i < rounds; ++i) x.mul_(1.0F);
}

struct SlowDigits : data::datasets::Dataset<SlowDigits, Tensor> {
  explicit SlowDigits(int milliseconds) : pause(milliseconds) {}
  Tensor get(size_t) override {
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    return image;
  }
  std::optional<size_t> size() const override { return 40; }
  std::chrono::milliseconds pause;
  Tensor image = ones({16});
};

void train_from(int milliseconds_an_example, const Tensor& x) {
  auto loader = data::make_data_loader<data::samplers::SequentialSampler>(SlowDigits(milliseconds_an_example),
                                                                          data::DataLoaderOptions(1));
  for (const auto& batch : *loader) {
    static_cast<void>(batch);
    stream_through(x, 20);
  }
}

void convolve(MemoryFormat format) {
  const Tensor x = ones({64, 128, 56, 56}, TensorOptions(kCUDA).dtype(kBFloat16)).contiguous(format);
  const Tensor w = ones({128, 128, 3, 3}, TensorOptions(kCUDA).dtype(kBFloat16)).contiguous(format);
  for (int i = 0; i < 20; ++i) conv2d(x, w, {}, 1, 1);
}

// Long work for each element, by a block for 256 of them.
Tensor iterate(const Tensor& x, int64_t rounds) {
  static const auto kernel =
      cuda_kernel<Tensor(const Tensor&, int64_t)>("iterate.cu", R"(
__global__ void iterate(float* out, const float* x, int64_t rounds, int64_t n) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i >= n) return;
  float value = x[i];
  for (int64_t k = 0; k < rounds; ++k) value = value * 0.5f + 1;
  out[i] = value;
})",
                                                  "advice::iterate(Tensor x, int rounds) -> Tensor");
  return kernel(x, rounds);
}

}  // namespace

TEST_CASE("a profile names a program's flaw, and none of the mended program" * doctest::skip(no_times())) {
  const TensorOptions on_gpu(kCUDA);
  const Tensor large = ones({1 << 24}, on_gpu), small = ones({1 << 10}, on_gpu);
  const Tensor square = randn({4096, 4096}, on_gpu);
  const Tensor pageable = ones({1 << 22}), pinned = pageable.pin_memory();
  const Tensor q = randn({32, 16, 512, 64}, on_gpu).to(kBFloat16);
  struct Program {
    const char* flaw;
    std::function<void()> flawed, mended;
  };
  const std::vector<Program> programs = {
      {"sync",
       [&] {
         for (int i = 0; i < 200; ++i) {
           stream_through(large, 1);
           small.sum().item<float>();
         }
       },
       [&] { stream_through(large, 200); }},
      {"loader", [&] { train_from(3, large); }, [&] { train_from(0, large); }},
      {"launches", [&] { stream_through(small, 2000); }, [&] { stream_through(large, 200); }},
      {"float32",
       [&] {
         for (int i = 0; i < 50; ++i) linear(square, square);
       },
       [&] {
         const autocast::Autocast sixteen_bits(kCUDA, kBFloat16);
         for (int i = 0; i < 50; ++i) linear(square, square);
       }},
      {"layout", [] { convolve(MemoryFormat::Contiguous); }, [] { convolve(MemoryFormat::ChannelsLast); }},
      {"pageable",
       [&] {
         for (int i = 0; i < 20; ++i) pageable.to(kCUDA);
       },
       [&] {
         for (int i = 0; i < 20; ++i) pinned.to(kCUDA, /*non_blocking=*/true);
       }},
      {"attention",
       [&] {
         for (int i = 0; i < 20; ++i) matmul(softmax(matmul(q, q.transpose(-2, -1)), -1), q);
       },
       [&] {
         for (int i = 0; i < 20; ++i) scaled_dot_product_attention(q, q, q);
       }},
      {"small kernels",
       [&] {
         for (int i = 0; i < 20; ++i) iterate(small, 100'000);
       },
       [&] {
         for (int i = 0; i < 20; ++i) iterate(large, 100);
       }},
  };
  for (const Program& program : programs) {
    CAPTURE(std::string(program.flaw));
    const std::string found = flaws_of(program.flawed);
    CAPTURE(found);
    CHECK(found.find(program.flaw) != std::string::npos);
    CHECK(flaws_of(program.mended) == "");
  }
}
