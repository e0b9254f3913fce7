// Softmax, normalisation, losses, pooling and attention of the CUDA backend against the CPU's, with gradients.
#include "tests/cuda/same_gradient.h"

using namespace rush;
using namespace rush::testing;

TEST_CASE("softmax and log_softmax on a GPU" * doctest::skip(!cuda::is_available())) {
  for (ScalarType dtype : kReals) {
    // Rows of whole vectors and odd ones, in registers and too long for them.
    for (const DimVector& shape : {DimVector{5, 64}, DimVector{7, 65}, DimVector{2, 4097}, DimVector{2, 40001},
                                   DimVector{3, 6, 10}, DimVector{1, 1}, DimVector{0, 4}}) {
      for (int64_t d = 0; d < static_cast<int64_t>(shape.size()); ++d) {
        INFO(str(name(dtype), " ", shape.back(), " along ", d));
        const Tensors x = {numbers(shape, dtype, -4, 4)};
        check_on_both(
            x, [=](const Tensors& in) { return softmax(in[0], d); }, 5);
        check_on_both(
            x, [=](const Tensors& in) { return log_softmax(in[0], d); }, 50);
      }
    }
  }
}

TEST_CASE("layer, RMS, group and batch norm on a GPU" * doctest::skip(!cuda::is_available())) {
  for (ScalarType dtype : kReals) {
    for (int64_t columns : {6, 64, 65, 1030, 20000}) {
      INFO(str(name(dtype), " ", columns));
      const Tensors in = {numbers({9, columns}, dtype, -1, 2), numbers({columns}, dtype, 0.5, 1.5),
                          numbers({columns}, dtype, -1, 1)};
      check_on_both(
          in, [=](const Tensors& t) { return layer_norm(t[0], {columns}, t[1], t[2]); }, 100);
      check_on_both(
          {in[0], in[1]}, [=](const Tensors& t) { return rms_norm(t[0], {columns}, t[1]); }, 100);
    }
    INFO(str(name(dtype)));
    const Tensors in = {numbers({3, 6, 5, 7}, dtype, -1, 2), numbers({6}, dtype, 0.5, 1.5), numbers({6}, dtype, -1, 1)};
    check_on_both(
        in, [](const Tensors& t) { return group_norm(t[0], 2, t[1], t[2]); }, 100);
    for (bool training : {true, false}) {
      const auto batch = [=](const Tensors& t) {
        const Tensor mean = full({6}, 0.3, t[0].options().requires_grad(false));
        return batch_norm(t[0], t[1], t[2], mean, mean + 1, training, 0.1, 1e-5, true);
      };
      check_on_both(in, batch, 100);
    }
  }
}

TEST_CASE("losses over classes on a GPU" * doctest::skip(!cuda::is_available())) {
  for (ScalarType dtype : kReals) {
    for (int64_t classes : {3, 65, 1024}) {
      const Tensor x = numbers({37, classes}, dtype, -3, 3), w = numbers({classes}, dtype, 0.5, 1.5);
      Tensor y = (arange(37) * 7).remainder(classes);
      y[5].fill_(-100);
      for (int64_t reduction : {Reduction::None, Reduction::Mean, Reduction::Sum}) {
        INFO(str(name(dtype), " ", classes, " reduction ", reduction));
        check_on_both(
            {x},
            [=](const Tensors& t) { return cross_entropy_loss(t[0], y.to(t[0].device()), {}, reduction, -100, 0.0); },
            50);
        check_on_both(
            {x},
            [=](const Tensors& t) {
              return cross_entropy_loss(t[0], y.to(t[0].device()), w.to(t[0].device()), reduction, -100, 0.1);
            },
            100);
        check_on_both(
            {x}, [=](const Tensors& t) { return nll_loss(t[0], y.to(t[0].device()), w.to(t[0].device()), reduction); },
            50);
      }
    }
  }
}

TEST_CASE("cross_entropy_gradient_ on a GPU" * doctest::skip(!cuda::is_available())) {
  // Rows that two passes take: short ones, odd ones, and those too long for shared memory; and those that one takes,
  // which end within a thread's vectors, after a block's, or beyond.
  for (const int64_t classes : {65, 2047, 2048, 2056, 4096, 8200, 50304, 120000}) {
    for (const ScalarType dtype : kReals) {
      INFO(str(name(dtype), " ", classes));
      const Tensor x = numbers({11, classes + 1}, dtype, -5, 5);
      Tensor y = (arange(11) * 977).remainder(classes - 1);
      y[3].fill_(-100);
      y[4].fill_(classes - 2);
      for (const bool aligned : {true, false}) {
        // Unaligned rows start one element into the storage.
        const Tensor storage = zeros({11 * classes + 1}, dtype);
        Tensor on_cpu = storage.narrow(0, aligned ? 0 : 1, 11 * classes).view({11, classes});
        on_cpu.copy_(x.narrow(1, 0, classes));
        on_cpu.select(1, classes - 1).fill_(-std::numeric_limits<double>::infinity());
        const Tensor gpu_storage = storage.to(kGpu);
        Tensor on_gpu = gpu_storage.narrow(0, aligned ? 0 : 1, 11 * classes).view({11, classes});
        const Tensor exact = on_cpu.to(kFloat64).requires_grad_();
        const Tensor expected = cross_entropy_loss(exact, y, {}, Reduction::Sum);
        expected.backward();
        const Tensor scale = full({}, aligned ? 1.0 : 0.5, kFloat32);
        const Tensor loss = cross_entropy_gradient_(on_gpu, y.to(kGpu), -100, scale.to(kGpu));
        const bool narrow = x.element_size() == 2;
        CHECK(loss.item<double>() ==
              doctest::Approx(expected.item<double>()).epsilon(dtype == kFloat64 ? 1e-12 : 1e-5));
        const double most = dtype == kFloat64 ? 1e-12 : narrow ? 1e-2 : 2e-5;
        CHECK(allclose(on_gpu.cpu().to(kFloat64), exact.grad() * scale, most, most * 1e-3));
      }
    }
  }
}

TEST_CASE("cross_entropy_gradient_ on a GPU reports a target that is no class, and is the same every time" *
          doctest::skip(!cuda::is_available())) {
  const Tensor scores = numbers({300, 4096}, kBFloat16, -5, 5).to(kGpu), y = (arange(300) * 13).to(kInt64).to(kGpu);
  Tensor first = scores.clone(), second = scores.clone(), third = scores.clone();
  const Tensor loss = cross_entropy_gradient_(first, y);
  CHECK(loss.equal(cross_entropy_gradient_(second, y)));
  CHECK(first.equal(second));
  y[7].fill_(4096);
  CHECK_THROWS_AS(cross_entropy_gradient_(third, y).item<float>(), IndexError);
  CHECK(third[7].abs().sum().item<float>() == 0);
}

TEST_CASE("a target that is no class is reported when the host waits, and nothing is broken" *
          doctest::skip(!cuda::is_available())) {
  const Tensor x = randn({4, 3}).to(kGpu), y = tensor({0, 1, 7, 2}).to(kInt64).to(kGpu);
  CHECK_THROWS_AS(cross_entropy_loss(x, y).item<float>(), IndexError);
  CHECK(x.sum().cpu().numel() == 1);
}

TEST_CASE("pooling on a GPU in every layout" * doctest::skip(!cuda::is_available())) {
  for (ScalarType dtype : kReals) {
    const Tensor x = numbers({2, 5, 13, 11}, dtype, -1, 1), wide = numbers({2, 16, 13, 11}, dtype, -1, 1);
    // Channels of which a thread has one, and of which it has as many as fit 16 bytes.
    for (const Tensor& image :
         {x, x.contiguous(MemoryFormat::ChannelsLast), wide.contiguous(MemoryFormat::ChannelsLast)}) {
      INFO(str(name(dtype), " ", image.size(1), " ", image.stride(1)));
      const Tensors in = {image};
      check_on_both(
          in, [](const Tensors& t) { return max_pool2d(t[0], 2); }, 5);
      check_on_both(
          in,
          [](const Tensors& t) {
            return max_pool2d(t[0], {3, 2}, {2, 1}, {1, 0}, {2, 1}, true);
          },
          5);
      check_on_both(
          in, [](const Tensors& t) { return avg_pool2d(t[0], 3, 2, 1); }, 5);
      check_on_both(
          in,
          [](const Tensors& t) {
            return avg_pool2d(t[0], {2, 3}, {1, 2}, 0, true, false);
          },
          5);
      check_on_both(
          in,
          [](const Tensors& t) {
            return adaptive_avg_pool2d(t[0], {4, 7});
          },
          5);
      check_on_both(
          in,
          [](const Tensors& t) {
            return std::get<0>(adaptive_max_pool2d(t[0], {4, 7}));
          },
          5);
    }
  }
}

TEST_CASE("attention on a GPU" * doctest::skip(!cuda::is_available())) {
  for (ScalarType dtype : {kFloat32, kFloat64}) {
    for (bool causal : {false, true}) {
      const auto heads = [=](int64_t length) { return numbers({2, length, 3, 16}, dtype, -1, 1).transpose(1, 2); };
      INFO(str(name(dtype), " causal ", causal));
      check_on_both(
          {heads(37), heads(41), heads(41)},
          [=](const Tensors& t) { return scaled_dot_product_attention(t[0], t[1], t[2], {}, 0.0, causal); }, 200);
    }
  }
}
