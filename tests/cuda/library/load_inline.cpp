// An operator from text with a kernel for the GPU, by nvcc and the C++ compiler.
#include "core/library/load_inline.h"

#include <doctest/doctest.h>

#include "autograd/library/opcheck.h"
#include "rushlight.h"

using namespace rush;

namespace {

const char* const kOperator = R"(
#include "autograd/library/register_autograd.h"
#include "core/ops/pointwise/binary.h"

using rush::Tensor;

Tensor saxpy_on_gpu(const Tensor& x, const Tensor& y, double a);

constinit rush::Op<Tensor(const Tensor&, const Tensor&, double)> saxpy{
    "inline_test::saxpy(Tensor x, Tensor y, float a) -> Tensor"};

RUSH_OPERATORS(library) {
  library.register_kernel<saxpy>(rush::kCPU, [](const Tensor& x, const Tensor& y, double a) { return x * a + y; });
  library.register_kernel<saxpy>(rush::kCUDA, saxpy_on_gpu);
  library.register_fake<saxpy>(
      [](const Tensor& x, const Tensor&, double) { return rush::empty(x.sizes(), x.options()); });
  library.register_autograd<saxpy>(
      [](const Tensor& g, const Tensor&, const Tensor&, double a) { return std::tuple(g * a, g); });
}
)";

const char* const kKernel = R"(
#include "core/device/stream.h"
#include "core/ops/factory/factories.h"

using rush::Tensor;

template <class T>
__global__ void saxpy_kernel(const T* x, const T* y, T* out, int64_t n, T a) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = a * x[i] + y[i];
}

template <class T>
void launch(const Tensor& x, const Tensor& y, const Tensor& out, double a) {
  const auto stream = static_cast<cudaStream_t>(rush::current_stream(x.device()).handle);
  const int64_t n = x.numel();
  saxpy_kernel<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(
      x.data_ptr<T>(), y.data_ptr<T>(), out.data_ptr<T>(), n, static_cast<T>(a));
  const cudaError_t status = cudaGetLastError();
  RUSH_CHECK(status == cudaSuccess, "saxpy: ", cudaGetErrorString(status));
}

Tensor saxpy_on_gpu(const Tensor& x, const Tensor& y, double a) {
  const Tensor in = x.contiguous(), added = y.contiguous(), out = rush::empty(x.sizes(), x.options());
  if (x.scalar_type() == rush::kFloat64) {
    launch<double>(in, added, out, a);
  } else {
    launch<float>(in, added, out, a);
  }
  return out;
}
)";

}  // namespace

TEST_CASE("an operator from text runs on the GPU, and opcheck finds nothing" * doctest::skip(!cuda::is_available())) {
  InlineOptions options;
  options.device_sources = {kKernel};
  load_inline("saxpy", {kOperator}, options);
  load_inline("saxpy", {kOperator}, options);
  const auto& saxpy = find_operator<Tensor(const Tensor&, const Tensor&, double)>("inline_test::saxpy");
  const Tensor x = randn({5, 7}, kFloat64).requires_grad_(), y = randn({5, 7}, kFloat64).requires_grad_();
  for (const Device device : {Device(kCPU), Device(kCUDA)}) {
    const auto on = [&](const Tensor& t) { return t.detach().to(device).requires_grad_(); };
    const library::OpcheckReport report = library::opcheck_report(saxpy, {}, on(x), on(y), 3.0);
    CHECK(report.left_out.empty());
    for (const std::string& problem : report.problems) FAIL_CHECK(problem);
  }
  const Tensor on_gpu = saxpy(x.detach().cuda(), y.detach().cuda(), 3);
  CHECK(on_gpu.is_cuda());
  CHECK(allclose(on_gpu.cpu(), x.detach() * 3 + y.detach()));
}

TEST_CASE("nvcc's error has the line of the text" * doctest::skip(!cuda::is_available())) {
  InlineOptions options;
  options.device_sources = {"__global__ void f() {\n  undeclared = 1;\n}\n"};
  CHECK_THROWS_WITH_AS(load_inline("broken", {kOperator}, options), doctest::Contains("broken.cu(2): error: "),
                       CompileError);
}
