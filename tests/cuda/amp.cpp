// Autocast and the gradient scaler on a GPU.
#include <cmath>
#include <limits>

#include "tests/autograd/autocast_calls.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/same_as_cpu.h"

using namespace rush;
using namespace rush::testing;
using autocast::Autocast;

namespace {

// Of more chunks and tensors than one launch takes, among them empty, misaligned and strided ones.
Tensors gradients(ScalarType dtype, Device device) {
  Tensors result;
  for (int64_t i = 0; i < 600; ++i) {
    const int64_t n = i == 3 ? 0 : i == 11 ? 11'000'001 : 5 + 13 * i;
    const Tensor all = numbers({n + 1}, dtype, -8, 8).to(device);
    result.push_back(all.slice(0, i % 2, n + i % 2));
  }
  result.push_back(numbers({33, 65}, dtype, -8, 8).to(device).t());
  const Tensor pair = numbers({77, 2}, dtype, -8, 8).to(device);
  result.push_back(pair.select(1, 1));
  return result;
}

bool found_inf(const Tensors& grads) {
  const Tensor found = zeros({}, on_gpu());
  _amp_foreach_non_finite_check_and_unscale_(grads, found, ones({}, on_gpu()));
  return found.item<float>() != 0;
}

}  // namespace

TEST_CASE("results have the dtypes that PyTorch's lists give them on CUDA" * doctest::skip(!cuda::is_available())) {
  for (ScalarType lower : {kFloat16, kBFloat16}) {
    for (const AutocastCall& call : kAutocastCalls) {
      const bool other_dtype = std::string_view(call.name).find("bfloat16") != std::string_view::npos;
      if (!call.on_cuda || (other_dtype && lower != kBFloat16)) continue;
      INFO(call.name);
      const Autocast scope(kCUDA, lower);
      CHECK(autocast_dtypes(call, kCUDA, lower) == call.on_cuda);
    }
  }
  const Tensor x = rand({4, 4}, on_gpu());
  const Autocast scope(kCUDA);
  CHECK(mm(x, x).scalar_type() == kFloat16);
  CHECK(F::binary_cross_entropy_with_logits(x.to(kFloat16), x).scalar_type() == kFloat32);
  CHECK_THROWS_AS(F::binary_cross_entropy(x, x), Error);
  CHECK(mm(x.cpu(), x.cpu()).scalar_type() == kFloat32);
}

TEST_CASE("many gradients are unscaled as on the CPU" * doctest::skip(!cuda::is_available())) {
  for (ScalarType dtype : {kFloat16, kBFloat16, kFloat32, kFloat64}) {
    INFO(str(dtype));
    const Tensors here = gradients(dtype, kCUDA), there = gradients(dtype, kCPU);
    const Tensor found_here = zeros({}, on_gpu()), found_there = zeros({});
    _amp_foreach_non_finite_check_and_unscale_(here, found_here, full({}, 1 / 1024.0, on_gpu()));
    _amp_foreach_non_finite_check_and_unscale_(there, found_there, full({}, 1 / 1024.0));
    CHECK(found_here.item<float>() == 0);
    for (size_t i = 0; i < here.size(); ++i) {
      INFO(i);
      check_same(here[i], there[i], 0);
    }
  }
}

TEST_CASE("a number that is not finite is found wherever it stands" * doctest::skip(!cuda::is_available())) {
  for (ScalarType dtype : {kFloat16, kBFloat16, kFloat32, kFloat64}) {
    for (int64_t n : {1, 7, 8, 1025, 100'003}) {
      for (int64_t offset : {0, 1}) {
        const Tensor grad = ones({n + 1}, on_gpu(dtype)).slice(0, offset, n + offset);
        CHECK_FALSE(found_inf({grad, grad.clone()}));
        for (int64_t place : {int64_t{0}, n / 2, n - 1}) {
          for (double bad : {std::numeric_limits<double>::infinity(), static_cast<double>(NAN)}) {
            INFO(n, " ", offset, " ", place);
            const Tensor spoilt = grad.clone();
            spoilt[place].fill_(bad);
            CHECK(found_inf({grad.clone(), spoilt}));
          }
        }
      }
    }
  }
}

TEST_CASE("a scale changes on the GPU as on the CPU" * doctest::skip(!cuda::is_available())) {
  Tensor here = full({}, 1024, on_gpu()), there = full({}, 1024, TensorOptions(kFloat32));
  Tensor tracker_here = zeros({}, on_gpu(kInt32)), tracker_there = zeros({}, TensorOptions(kInt32));
  for (int i = 0; i < 20; ++i) {
    const double found = i % 7 == 5;
    _amp_update_scale_(here, tracker_here, full({}, found, on_gpu()), 2, 0.5, 3);
    _amp_update_scale_(there, tracker_there, full({}, found, TensorOptions(kFloat32)), 2, 0.5, 3);
    CHECK(here.item<float>() == there.item<float>());
    CHECK(tracker_here.item<int>() == tracker_there.item<int>());
  }
}

TEST_CASE("a net trained in 16 bits on a GPU reaches float32's loss" * doctest::skip(!cuda::is_available())) {
  const auto train = [](std::optional<ScalarType> lower) {
    manual_seed(3);
    const Tensor x = randn({256, 8}).to(kCUDA);
    const Tensor y = (tanh(mm(x.cpu(), randn({8, 1}))) + 0.5 * randn({256, 1})).to(kCUDA);
    nn::Sequential net(nn::Linear(8, 16), nn::Tanh(), nn::Linear(16, 1));
    net->to(kCUDA);
    optim::Adam optimizer(net->parameters(), optim::AdamOptions(1e-2));
    amp::GradScaler scaler(amp::GradScalerOptions().init_scale(std::ldexp(1.0, 30)).enabled(lower == kFloat16));
    int skipped = 0;
    for (int step = 0; step < 170; ++step) {
      optimizer.zero_grad();
      Tensor loss;
      {
        const Autocast scope(kCUDA, lower, lower.has_value());
        loss = F::mse_loss(net->forward(x), y);
      }
      scaler.scale(loss).backward();
      scaler.step(optimizer);
      scaler.update();
      skipped += scaler.step_was_skipped(optimizer);
    }
    if (lower == kFloat16) {
      CHECK(skipped > 0);  // the scale began too large for float16
      CHECK(skipped < 30);
    }
    return F::mse_loss(net->forward(x), y).item<double>();
  };
  const double exact = train(std::nullopt);
  CHECK(train(kBFloat16) == doctest::Approx(exact).epsilon(0.01));
  CHECK(train(kFloat16) == doctest::Approx(exact).epsilon(0.03));  // it took fewer steps
}
