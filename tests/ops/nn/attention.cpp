#include "core/ops/nn/attention.h"

#include <cmath>
#include <limits>

#include "core/device/context.h"
#include "core/ops/nn/fused_attention.h"
#include "tests/ops/nn/nn_testing.h"

namespace {

using namespace rush;
using namespace rush::testing;

struct Inputs {
  Tensor q = leaf({2, 3, 4, 5}).detach(), k = leaf({2, 3, 6, 5}, 1).detach(), v = leaf({2, 3, 6, 7}, 2).detach();
};

TEST_CASE("scaled_dot_product_attention: its formula") {
  const Inputs in;
  const Tensor scores = in.q.matmul(in.k.mT()) / std::sqrt(5.0);
  CHECK(distance_between(scaled_dot_product_attention(in.q, in.k, in.v), scores.softmax(-1).matmul(in.v)) < 1e-13);
  CHECK(distance_between(scaled_dot_product_attention(in.q, in.k, in.v, std::nullopt, 0, false, 0.3),
                         (in.q.matmul(in.k.mT()) * 0.3).softmax(-1).matmul(in.v)) < 1e-13);
  const Tensor bias = leaf({4, 6}, 4).detach();
  CHECK(distance_between(scaled_dot_product_attention(in.q, in.k, in.v, bias),
                         (scores + bias).softmax(-1).matmul(in.v)) < 1e-13);
}

TEST_CASE("scaled_dot_product_attention: masks hide keys") {
  const Inputs in;
  // Causal: position i is attention to the first i + 1 keys alone.
  const Tensor causal = scaled_dot_product_attention(in.q, in.k, in.v, std::nullopt, 0, true);
  for (int64_t i = 0; i < 4; ++i) {
    const auto first = [i](const Tensor& t) { return t.narrow(-2, 0, i + 1); };
    const Tensor row = scaled_dot_product_attention(in.q.narrow(-2, i, 1), first(in.k), first(in.v));
    CHECK(distance_between(causal.narrow(-2, i, 1), row) < 1e-13);
  }
  // A bool mask keeps what is true; a row of nothing is zero, and so are its gradients.
  const Tensor mask = zeros({4, 6}, kBool);
  mask.narrow(0, 0, 3).narrow(1, 1, 3).fill_(true);
  const Tensor q = in.q.clone().requires_grad_();
  const Tensor out = scaled_dot_product_attention(q, in.k, in.v, mask);
  const auto kept = [](const Tensor& t) { return t.narrow(-2, 1, 3); };
  CHECK(distance_between(out.narrow(-2, 0, 3),
                         scaled_dot_product_attention(in.q.narrow(-2, 0, 3), kept(in.k), kept(in.v))) < 1e-13);
  CHECK(largest(out.select(-2, 3)) == 0);
  out.sum().backward();
  CHECK(largest(q.grad().select(-2, 3)) == 0);
  CHECK(std::isfinite(q.grad().sum().item<double>()));
}

TEST_CASE("scaled_dot_product_attention: shared heads") {
  const Tensor q = leaf({2, 4, 3, 5}).detach(), k = leaf({2, 2, 6, 5}, 1).detach(), v = leaf({2, 2, 6, 5}, 2).detach();
  const Tensor out = scaled_dot_product_attention(q, k, v, std::nullopt, 0, false, std::nullopt, true);
  for (int64_t h = 0; h < 4; ++h) {
    const Tensor one = scaled_dot_product_attention(q.select(1, h), k.select(1, h / 2), v.select(1, h / 2));
    CHECK(distance_between(out.select(1, h), one) < 1e-13);
  }
}

TEST_CASE("scaled_dot_product_attention: derivatives") {
  const Tensors inputs = {leaf({1, 2, 3, 2}), leaf({1, 2, 4, 2}, 1), leaf({1, 2, 4, 3}, 2)};
  check_gradients([](const Tensors& t) { return Tensors{scaled_dot_product_attention(t[0], t[1], t[2])}; }, inputs);
  check_gradients(
      [](const Tensors& t) { return Tensors{scaled_dot_product_attention(t[0], t[1], t[2], std::nullopt, 0, true)}; },
      inputs);
  check_gradients([](const Tensors& t) { return Tensors{scaled_dot_product_attention(t[0], t[1], t[2], t[3])}; },
                  {inputs[0], inputs[1], inputs[2], leaf({3, 4}, 4)});
  check_gradients([](const Tensors& t) { return Tensors{scaled_dot_product_attention(t[0], t[1], t[2])}; },
                  {leaf({2, 1, 2, 3}), leaf({2, 1, 3, 3}, 1), leaf({2, 1, 3, 2}, 2)});
}

TEST_CASE("scaled_dot_product_attention: the gradients of parts of a packed projection are not copied") {
  const int64_t batch = 2, length = 4, heads = 3, width = 5;
  const Tensor packed = leaf({batch, length, 3 * heads * width}, 1), weights = leaf({batch, heads, length, width}, 2);
  const auto by_head = [&](const Tensor& t) { return t.view({batch, length, heads, width}).transpose(1, 2); };
  // In the order in which they lie, in another, and from a copy, whose gradients lie apart.
  for (const std::array<size_t, 3>& order : {std::array<size_t, 3>{0, 1, 2}, std::array<size_t, 3>{2, 0, 1}}) {
    Tensor by_query, by_product, expected;
    for (const bool apart : {true, false}) {
      packed.mutable_grad() = Tensor();
      const Tensor product = packed * 2;
      product.register_hook([&](const Tensor& g) { by_product = g; });
      const Tensors parts = product.split(heads * width, -1);
      Tensors in;
      for (const size_t i : order) in.push_back(by_head(apart ? parts[i].clone() : parts[i]));
      if (!apart) in[0].register_hook([&](const Tensor& g) { by_query = g; });
      const Tensor out = scaled_dot_product_attention(in[0], in[1], in[2], std::nullopt, 0, /*is_causal=*/true);
      (out * weights.detach()).sum().backward();
      if (apart) {
        expected = packed.grad();
      } else {
        CHECK(distance_between(packed.grad(), expected) < 1e-13);
        // On a GPU no fused kernel takes float64.
        const bool fused = fused_sdp_choice(in[0], in[1], in[2], std::nullopt, 0, true) != SDPBackend::math;
        CHECK((fused || !in[0].is_cpu()));
        CHECK(by_product.is_alias_of(by_query) == (fused && order[0] == 0));
        CHECK(by_product.is_contiguous());
      }
    }
  }
}

TEST_CASE("scaled_dot_product_attention: bad input") {
  const Tensor t = ones({2, 3, 4});
  CHECK_THROWS_AS(scaled_dot_product_attention(ones({4}), t, t), ValueError);
  CHECK_THROWS_AS(scaled_dot_product_attention(t, ones({2, 3, 5}), t), ValueError);
  CHECK_THROWS_AS(scaled_dot_product_attention(t, t, ones({2, 5, 4})), ValueError);
  CHECK_THROWS_AS(scaled_dot_product_attention(t, t, t.to(kFloat64)), TypeError);
  CHECK_THROWS_AS(scaled_dot_product_attention(t, t, t, ones({3, 3}), 0, true), ValueError);
  CHECK_THROWS_AS(scaled_dot_product_attention(t, t, t, ones({3, 3}, kInt64)), TypeError);
  CHECK_THROWS_AS(scaled_dot_product_attention(t, t, t, std::nullopt, 1.5), ValueError);
  const Tensor q = ones({1, 1, 4, 8});
  CHECK_THROWS_AS(ops::_scaled_dot_product_flash_attention_for_cpu(q, q, q, 0, false, ones({1, 1, 2, 4}), std::nullopt),
                  ValueError);
}

// On the CPU, whatever the default device.
Tensor host(IntArrayRef sizes, ScalarType dtype = kFloat32) { return ones(sizes, TensorOptions(dtype).device(kCPU)); }

TEST_CASE("fused_sdp_choice: flash on the CPU, math for what it refuses") {
  const Tensor t = host({1, 2, 8, 4});
  CHECK(fused_sdp_choice(t, t, t) == SDPBackend::flash_attention);
  CHECK(ops::_fused_sdp_choice(t, t, t, {}, 0, false, {}, false) == 1);
  CHECK(sdp_refusals(t, t, t) == "");
  CHECK(fused_sdp_choice(t, t, t, std::nullopt, 0.5) == SDPBackend::math);
  CHECK(sdp_refusals(t, t, t, std::nullopt, 0.5) == "flash_attention: has no dropout on the CPU");
  const Tensor mask = host({8, 8}).requires_grad_();
  CHECK(fused_sdp_choice(t, t, t, mask) == SDPBackend::math);
  CHECK(fused_sdp_choice(t, t, t, mask.detach()) == SDPBackend::flash_attention);
  const Tensor z = host({1, 2, 8, 4}, kComplex64);
  CHECK(fused_sdp_choice(z, z, z) == SDPBackend::math);
  CHECK_THROWS_AS(fused_sdp_choice(t, t, host({1, 2, 9, 4})), ValueError);
}

TEST_CASE("SDPBackendGuard: what is switched off does not run, and is back afterwards") {
  const Tensor q = leaf({2, 3, 4, 5}).detach().cpu(), k = leaf({2, 3, 6, 5}, 1).detach().cpu();
  const Tensor flash = scaled_dot_product_attention(q, k, k);
  {
    const SDPBackendGuard only{SDPBackend::math};
    CHECK(fused_sdp_choice(q, k, k) == SDPBackend::math);
    CHECK(!globalContext().userEnabledFlashSDP());
    CHECK(!globalContext().userEnabledMemEfficientSDP());
    CHECK(!globalContext().userEnabledCuDNNSDP());
    CHECK(distance_between(scaled_dot_product_attention(q, k, k), flash) < 1e-13);
  }
  {
    const SDPBackendGuard neither{SDPBackend::cudnn_attention};
    CHECK(fused_sdp_choice(q, k, k) == SDPBackend::error);
    const char* expected =
        "scaled_dot_product_attention: no back end computes this: flash_attention: switched off; math: switched off";
    CHECK_THROWS_WITH_AS(scaled_dot_product_attention(q, k, k), expected, NotImplementedError);
  }
  CHECK(globalContext().userEnabledFlashSDP());
  CHECK(globalContext().userEnabledMemEfficientSDP());
  CHECK(globalContext().userEnabledMathSDP());
  CHECK(globalContext().userEnabledCuDNNSDP());
  globalContext().setSDPUseFlash(false);
  CHECK(fused_sdp_choice(q, k, k) == SDPBackend::math);
  globalContext().setSDPUseFlash(true);
}

TEST_CASE("fused attention: shapes on the meta device") {
  const auto meta = [](IntArrayRef sizes) { return empty(sizes, TensorOptions(kFloat32).device(kMeta)); };
  const Tensor q = meta({2, 6, 5, 8}), k = meta({2, 3, 7, 8}), v = meta({2, 3, 7, 4});
  const auto [out, sums, seed, offset] =
      ops::_scaled_dot_product_efficient_attention(q, k, v, std::nullopt, true, 0, false, std::nullopt);
  CHECK(out.sizes() == IntArrayRef{2, 6, 5, 4});
  CHECK(out.strides() == IntArrayRef{5 * 6 * 4, 4, 6 * 4, 1});
  CHECK(sums.sizes() == IntArrayRef{2, 6, 5});
  CHECK(!seed.defined());
  const auto [dq, dk, dv, dmask] = ops::_scaled_dot_product_efficient_attention_backward(
      out, q, k, v, Tensor(), out, sums, Tensor(), Tensor(), 0, {true, false, true, false}, false, std::nullopt);
  CHECK(dq.sizes() == q.sizes());
  CHECK(!dk.defined());
  CHECK(dv.sizes() == v.sizes());
  const auto cudnn =
      ops::_scaled_dot_product_cudnn_attention(q, k, v, std::nullopt, false, 0, false, false, std::nullopt);
  CHECK(std::get<0>(cudnn).sizes() == IntArrayRef{2, 6, 5, 4});
  CHECK(!std::get<1>(cudnn).defined());
  CHECK(std::get<4>(cudnn) == 5);
  CHECK(std::get<5>(cudnn) == 7);
}

TEST_CASE("fused attention: the backward pass takes a logsumexp of any strides") {
  const Inputs in;
  const Tensor q = in.q.cpu(), k = in.k.cpu(), v = in.v.cpu();
  const auto [out, sums] =
      ops::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, true, std::nullopt, std::nullopt);
  const auto backward = [&, out = out](const Tensor& logsumexp) {
    return ops::_scaled_dot_product_flash_attention_for_cpu_backward(out, q, k, v, out, logsumexp, 0, true,
                                                                     std::nullopt, std::nullopt);
  };
  const auto grads = backward(sums), turned = backward(sums.mT().contiguous().mT());
  CHECK(equal(std::get<0>(grads), std::get<0>(turned)));
  CHECK(equal(std::get<1>(grads), std::get<1>(turned)));
  CHECK(equal(std::get<2>(grads), std::get<2>(turned)));
}

TEST_CASE("fused attention: bad input") {
  const Tensor t = host({1, 4, 3, 8});
  const auto efficient = [](const Tensor& q, const Tensor& k, const Tensor& v) {
    ops::_scaled_dot_product_efficient_attention(q, k, v, std::nullopt, true, 0, false, std::nullopt);
  };
  CHECK_THROWS_AS(efficient(t, t, t), NotImplementedError);  // no kernel on the CPU
  CHECK_THROWS_AS(efficient(t, host({1, 3, 3, 8}), host({1, 3, 3, 8})), ValueError);
  CHECK_THROWS_AS(efficient(t, t, host({1, 2, 3, 8})), ValueError);
  CHECK_THROWS_AS(efficient(t, host({2, 4, 3, 8}), host({2, 4, 3, 8})), ValueError);
  CHECK_THROWS_AS(efficient(host({4, 3, 8}), host({4, 3, 8}), host({4, 3, 8})), ValueError);
  const Tensor sums = host({1, 4, 3});
  const auto backward = [&](const Tensor& grad, const Tensor& logsumexp, double p, bool by_mask) {
    ops::_scaled_dot_product_efficient_attention_backward(grad, t, t, t, Tensor(), t, logsumexp, Tensor(), Tensor(), p,
                                                          {true, true, true, by_mask}, false, std::nullopt);
  };
  CHECK_THROWS_AS(backward(host({1, 4, 3, 7}), sums, 0, false), ValueError);
  CHECK_THROWS_AS(backward(t, host({1, 4, 2}), 0, false), ValueError);
  CHECK_THROWS_AS(backward(t, Tensor(), 0, false), ValueError);
  CHECK_THROWS_AS(backward(t, sums, 0.5, false), ValueError);
  CHECK_THROWS_AS(backward(t, sums, 0, true), NotImplementedError);
  CHECK_THROWS_AS(
      ops::_scaled_dot_product_flash_attention_for_cpu(t, host({1, 2, 3, 8}), host({1, 2, 3, 8}), 0, false, {}, {}),
      ValueError);
}

}  // namespace
