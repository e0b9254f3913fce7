// The optimisers' fused steps on a GPU against the CPU's.
#include "backends/functors/optim.h"

#include "tests/cuda/same_as_cpu.h"

using namespace rush;
using namespace rush::testing;

namespace {

// More tensors and chunks than one launch takes, among them empty ones and ones that are not aligned.
Tensors parameters(ScalarType dtype, double low, double high, Device device) {
  Tensors result;
  for (int64_t i = 0; i < 150; ++i) {
    const int64_t n = i == 3 ? 0 : i == 7 ? 100'003 : i == 11 ? 11'000'001 : 5 + 13 * i;
    const Tensor all = numbers({n + 1}, dtype, low, high).to(device);
    result.push_back(all.slice(0, i % 2, n + i % 2));
  }
  return result;
}

void check_same_lists(const Tensors& on_gpu, const Tensors& on_cpu) {
  for (size_t i = 0; i < on_cpu.size(); ++i) {
    INFO(i);
    check_same(on_gpu[i], on_cpu[i], 4);
  }
}

}  // namespace

TEST_CASE("fused steps of many tensors are the CPU's" * doctest::skip(!cuda::is_available())) {
  for (ScalarType dtype : {kFloat32, kBFloat16}) {
    INFO(str(name(dtype)));
    const auto run = [&](auto&& step) {
      std::vector<Tensors> lists[2];
      for (int d = 0; d < 2; ++d) {
        const Device device = d ? Device(kCUDA) : Device(kCPU);
        lists[d] = {parameters(dtype, -1, 1, device), parameters(dtype, -0.5, 0.5, device),
                    parameters(dtype, -0.1, 0.1, device), parameters(dtype, 0.1, 0.2, device),
                    parameters(dtype, 0.1, 0.3, device)};
        step(device.type, lists[d]);
      }
      for (size_t list = 0; list < 5; ++list) check_same_lists(lists[1][list], lists[0][list]);
    };
    run([](DeviceType device, const std::vector<Tensors>& l) {
      kernels::fused_step<SgdStep>(device, l[0], l[1], {}, {}, {}, {}, {},
                                   SgdStep{0.1, 0, 0, 0.01, false, false, false});
    });
    run([](DeviceType device, const std::vector<Tensors>& l) {
      kernels::fused_step<SgdStep>(device, l[0], l[1], l[2], {}, {}, {}, {},
                                   SgdStep{0.1, 0.9, 0, 0.01, true, false, false});
    });
    const std::vector<int64_t> steps(150, 3);
    run([&](DeviceType device, const std::vector<Tensors>& l) {
      kernels::fused_step<AdamStep>(device, l[0], l[1], l[2], l[3], {}, steps, {},
                                    AdamStep{1e-2, 0.9, 0.99, 1e-8, 0.1, false, false, true});
    });
    run([&](DeviceType device, const std::vector<Tensors>& l) {
      kernels::fused_step<AdamStep>(device, l[0], l[1], l[2], l[3], l[4], steps, {},
                                    AdamStep{1e-2, 0.9, 0.99, 1e-8, 0.1, true, true, false});
    });
    run([](DeviceType device, const std::vector<Tensors>& l) {
      kernels::fused_step<AdadeltaStep>(device, l[0], l[1], l[3], l[4], {}, {}, {},
                                        AdadeltaStep{1, 0.9, 1e-6, 0.01, false});
    });
    const std::vector<double> mu_products(150, 0.1);
    for (const bool decoupled : {false, true}) {
      run([&](DeviceType device, const std::vector<Tensors>& l) {
        kernels::fused_step<NAdamStep>(device, l[0], l[1], l[2], l[3], {}, steps, mu_products,
                                       NAdamStep{1e-2, 0.9, 0.99, 1e-8, 0.1, 4e-3, decoupled, !decoupled});
      });
    }
    for (const int64_t taken : {3, 30}) {  // before and after it rectifies
      run([&](DeviceType device, const std::vector<Tensors>& l) {
        kernels::fused_step<RAdamStep>(device, l[0], l[1], l[2], l[3], {}, std::vector<int64_t>(150, taken), {},
                                       RAdamStep{1e-2, 0.9, 0.99, 1e-8, 0.1, false, false});
      });
    }
    for (const double momentum : {0.0, 0.9}) {
      for (const bool centered : {false, true}) {
        run([&](DeviceType device, const std::vector<Tensors>& l) {
          kernels::fused_step<RmsPropStep>(device, l[0], l[1], l[4], l[3], l[2], {}, {},
                                           RmsPropStep{1e-2, 0.9, 1e-8, 0.01, momentum, centered, false});
        });
      }
    }
    run([&](DeviceType device, const std::vector<Tensors>& l) {
      kernels::fused_step<AdagradStep>(device, l[0], l[1], l[3], {}, {}, steps, {},
                                       AdagradStep{1e-2, 0.1, 0.01, 0, 1e-10, true});
    });
    run([&](DeviceType device, const std::vector<Tensors>& l) {
      kernels::fused_step<AdamaxStep>(device, l[0], l[1], l[2], l[3], {}, steps, {},
                                      AdamaxStep{1e-2, 0.9, 0.99, 1e-8, 0.1, true});
    });
    for (const double t0 : {0.0, 1e6}) {  // an average, and a copy
      run([&](DeviceType device, const std::vector<Tensors>& l) {
        kernels::fused_step<AsgdStep>(device, l[0], l[1], l[2], {}, {}, steps, {},
                                      AsgdStep{1e-2, 1e-2, 0.75, t0, 0.1, false});
      });
    }
    run([](DeviceType device, const std::vector<Tensors>& l) {
      kernels::fused_step<RpropStep>(device, l[0], l[1], l[2], l[3], {}, {}, {},
                                     RpropStep{1e-2, 0.5, 1.2, 1e-6, 0.15, false});
    });
  }
}
