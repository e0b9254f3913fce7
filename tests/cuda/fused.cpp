// Fused chains of operators on a GPU against the CPU's, with gradients, and what they save under autocast.
#include <cmath>

#include "core/ops/nn/fused.h"

#include "backends/cuda/cuda.h"
#include "examples/gpt/gpt.h"
#include "examples/gpt/linear_cross_entropy.h"
#include "tests/cuda/gpu.h"
#include "tests/cuda/same_gradient.h"

using namespace rush;
using namespace rush::testing;

namespace {

// Both results of add_layer_norm in one, in the wider dtype.
Tensor joined(const std::tuple<Tensor, Tensor>& results) {
  const auto& [out, sum] = results;
  return cat({out.to(sum.scalar_type()), sum * 0.5}, -1);
}

}  // namespace

TEST_CASE("add_layer_norm on a GPU" * doctest::skip(!cuda::is_available())) {
  // Rows of whole vectors, shared by few threads and many, rows that are none, and rows too long to be held.
  for (const int64_t columns : {4, 64, 65, 516, 768, 1000, 1024, 1030, 8192, 8200, 20000}) {
    for (const ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
      INFO(str(name(dtype), " ", columns));
      const Tensors in = {numbers({37, columns}, dtype, -1, 2), numbers({37, columns}, dtype, -2, 1),
                          numbers({columns}, dtype, 0.5, 1.5), numbers({columns}, dtype, -1, 1)};
      check_on_both(
          in, [=](const Tensors& t) { return joined(add_layer_norm(t[0], t[1], {columns}, t[2], t[3])); }, 100);
      check_on_both(
          {in[0], in[1]}, [=](const Tensors& t) { return joined(add_layer_norm(t[0], t[1], {columns})); }, 100);
    }
    for (const ScalarType low : {kFloat16, kBFloat16}) {
      INFO(str(name(low), " beside float32, ", columns));
      const Tensors in = {numbers({37, columns}, kFloat32, -1, 2), numbers({37, columns}, low, -2, 1),
                          numbers({columns}, kFloat32, 0.5, 1.5), numbers({columns}, kFloat32, -1, 1)};
      // What was rounded to 16 bits may be rounded to the neighbour: steps of 1e-2.
      check_on_both(
          in, [=](const Tensors& t) { return joined(add_layer_norm(t[0], t[1], {columns}, t[2], t[3], 1e-5, low)); },
          2e4);
      check_on_both(
          in,
          [=](const Tensors& t) { return std::get<1>(add_layer_norm(t[0], t[1], {columns}, t[2], t[3], 1e-5, low)); },
          1,
          /*differentiable=*/false);
    }
  }
}

TEST_CASE("many rows of add_layer_norm on a GPU" * doctest::skip(!cuda::is_available())) {
  const Tensors in = {numbers({5000, 768}, kFloat32, -1, 2), numbers({5000, 768}, kFloat32, -2, 1),
                      numbers({768}, kFloat32, 0.5, 1.5), numbers({768}, kFloat32, -1, 1)};
  check_on_both(
      in, [=](const Tensors& t) { return joined(add_layer_norm(t[0], t[1], {768}, t[2], t[3])); }, 2000);
}

TEST_CASE("gelu_perceptron on a GPU" * doctest::skip(!cuda::is_available())) {
  // Sizes with and without a kernel of cuBLASLt's, and no rows.
  for (const int64_t rows : {0, 3, 32}) {
    for (const int64_t width : {7, 64}) {
      for (const ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
        INFO(str(name(dtype), " ", rows, " x ", width));
        const double scale = 1 / std::sqrt(static_cast<double>(width));
        const Tensors in = {numbers({2, rows, width}, dtype, -1, 1), numbers({4 * width, width}, dtype, -scale, scale),
                            numbers({4 * width}, dtype, -1, 1), numbers({width, 4 * width}, dtype, -scale, scale),
                            numbers({width}, dtype, -1, 1)};
        check_on_both(
            in, [](const Tensors& t) { return gelu_perceptron(t[0], t[1], t[2], t[3], t[4]); },
            dtype == kFloat16 || dtype == kBFloat16 ? 20 : 200);
      }
    }
  }
}

TEST_CASE("GELU's derivative and the sums of its columns on a GPU" * doctest::skip(!cuda::is_available())) {
  // Columns of whole tiles, of a part of one, of no whole vectors; rows in one piece and several, which end anywhere.
  for (const int64_t rows : {1, 67, 1000, 20011}) {
    for (const int64_t columns : {8, 264, 13, 768}) {
      for (const ScalarType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
        for (const bool aligned : {true, false}) {
          INFO(str(name(dtype), " ", rows, " x ", columns, aligned ? "" : ", unaligned"));
          const Tensor pre = numbers({rows, columns}, dtype, -3, 3), grad = numbers({rows, columns}, dtype, -1, 2);
          const Tensor expected =
              ops::gelu_backward(grad.to(kFloat64), pre.to(kFloat64), "tanh").to(dtype).to(kFloat64);
          const Tensor storage = zeros({rows * columns + 1}, TensorOptions(dtype).device(kGpu));
          const Tensor on_gpu = storage.narrow(0, aligned ? 0 : 1, rows * columns).view({rows, columns});
          on_gpu.copy_(grad);
          const Tensor sums = empty({columns}, TensorOptions(dtype).device(kGpu));
          kernels::gelu_bias_backward(kCUDA, on_gpu, pre.to(kGpu), sums);
          const bool narrow = pre.element_size() == 2;
          const double most = dtype == kFloat64 ? 1e-11 : narrow ? 1e-2 : 2e-5;
          CHECK(allclose(on_gpu.cpu().to(kFloat64), expected, most, most * 0.1));
          CHECK(allclose(sums.cpu().to(kFloat64), expected.sum(0), most, most * std::sqrt(static_cast<double>(rows))));
        }
      }
    }
  }
}

TEST_CASE("linear's gradients of weight and bias on a GPU" * doctest::skip(!cuda::is_available())) {
  for (const int64_t rows : {0, 1, 48}) {
    for (const int64_t width : {5, 64}) {
      INFO(str(rows, " x ", width));
      const Tensors in = {numbers({rows, 3, width}, kFloat32, -1, 1), numbers({2 * width, width}, kFloat32, -1, 1),
                          numbers({2 * width}, kFloat32, -1, 1)};
      check_on_both(
          in, [](const Tensors& t) { return linear(t[0], t[1], t[2]); }, 200);
    }
  }
}

TEST_CASE("cuda: autocast's cross entropy does not copy 16-bit scores" * doctest::skip(testing::nothing_is_cached())) {
  const int64_t rows = 512, classes = 8192;
  const Tensor scores = numbers({rows, classes}, kBFloat16, -3, 3).cuda().requires_grad_();
  const Tensor target = (arange(rows, kLong) * 7).remainder(classes).cuda();
  const Tensor exact = scores.detach().to(kFloat32).requires_grad_();
  const Tensor expected = nn::functional::cross_entropy(exact, target);
  expected.backward();
  cuda::synchronize();
  cuda::reset_peak_memory_stats();
  const int64_t before = cuda::memory_allocated();
  Tensor loss;
  {
    const autocast::Autocast lower(kCUDA, kBFloat16);
    loss = nn::functional::cross_entropy(scores, target);
  }
  CHECK(cuda::max_memory_allocated() - before < rows * classes);  // a copy in float32 takes four times as much
  CHECK(loss.scalar_type() == kFloat32);
  CHECK(loss.item<double>() == doctest::Approx(expected.item<double>()).epsilon(1e-5));
  loss.backward();
  CHECK(scores.grad().scalar_type() == kBFloat16);
  CHECK(allclose(scores.grad().to(kFloat32), exact.grad(), 1e-2, 1e-6));
}

TEST_CASE("cuda: the loss of a large vocabulary holds some logits at a time" *
          doctest::skip(testing::nothing_is_cached())) {
  const int64_t rows = 1024, width = 64, classes = 4096;
  const Tensor x = numbers({rows, width}, kFloat32, -1, 1).cuda(),
               w = numbers({classes, width}, kFloat32, -1, 1).cuda();
  const Tensor target = (arange(rows, kLong) * 7).remainder(classes).cuda();
  Tensor grads[2][2];
  double losses[2];
  int64_t peaks[2];
  for (const int chunked : {0, 1}) {
    const Tensor input = x.clone().requires_grad_(), weight = w.clone().requires_grad_();
    cuda::reset_peak_memory_stats();
    const int64_t before = cuda::memory_allocated();
    Tensor loss;
    {
      const autocast::Autocast lower(kCUDA, kBFloat16);
      loss = chunked ? examples::linear_cross_entropy(input, weight, Tensor(), target, 128 * classes)
                     : nn::functional::cross_entropy(linear(input, weight), target);
    }
    loss.backward();
    losses[chunked] = loss.item<double>();
    peaks[chunked] = cuda::max_memory_allocated() - before;
    grads[chunked][0] = input.grad();
    grads[chunked][1] = weight.grad();
  }
  CHECK(losses[1] == doctest::Approx(losses[0]).epsilon(1e-4));
  CHECK(allclose(grads[1][0], grads[0][0], 3e-2, 1e-5));
  CHECK(allclose(grads[1][1], grads[0][1], 3e-2, 1e-5));
  CHECK(peaks[1] < peaks[0] / 2);
}

TEST_CASE("cuda: a GPT has the CPU's loss and gradients, and under autocast nearly" *
          doctest::skip(!cuda::is_available())) {
  const examples::GPTConfig config{/*vocab_size=*/61, /*block_size=*/32,  /*n_layer=*/2,
                                   /*n_head=*/2,      /*n_embd=*/64,
                                   /*dropout=*/0,     /*vocab_padding=*/3};
  manual_seed(1);
  examples::GPT on_cpu(config), on_gpu(config);
  on_gpu->to(kGpu);
  const auto from = on_cpu->parameters(), to = on_gpu->parameters();
  {
    const NoGradGuard no_grad;
    for (size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
  }
  const Tensor tokens = randint(0, 61, {4, 32}, kInt64), targets = randint(0, 61, {4, 32}, kInt64);
  const Tensor expected = on_cpu->loss(tokens, targets);
  expected.backward();
  for (const bool lower : {false, true}) {
    CAPTURE(lower);
    on_gpu->zero_grad();
    Tensor loss;
    {
      const autocast::Autocast scope(kCUDA, kBFloat16, lower);
      loss = on_gpu->loss(tokens.cuda(), targets.cuda());
    }
    loss.backward();
    CHECK(loss.item<double>() == doctest::Approx(expected.item<double>()).epsilon(lower ? 1e-2 : 1e-4));
    for (const auto& parameter : on_gpu->named_parameters()) {
      CAPTURE(parameter.key());
      const Tensor exact = on_cpu->named_parameters()[parameter.key()].grad();
      const double error = (parameter->grad().cpu() - exact).norm().item<double>();
      CHECK(error <= (lower ? 5e-2 : 1e-3) * exact.norm().item<double>() + 1e-6);
    }
  }
  // What is written with the cache of keys and values is what the CPU writes.
  const Tensor start = tokens.narrow(1, 0, 3);
  const Tensor written = on_gpu->generate(start.cuda(), 40, 1, /*top_k=*/1).cpu();
  CHECK((written - on_cpu->generate(start, 40, 1, 1)).abs().sum().item<int64_t>() == 0);
}
