// What cuda_kernel reads and refuses, and what its operators do without a GPU.
#include <doctest/doctest.h>

#include <string>

#include "autograd/derivative.h"
#include "backends/cuda/cuda_kernel.h"
#include "core/dispatch/call.h"
#include "rushlight.h"

using namespace rush;
using cuda::read_signature;
using cuda::Signature;

namespace {

constexpr const char* kScale = R"(
template <class T>
__global__ void scale(T* out, const T* x, double a, int64_t n) {
  const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i < n) out[i] = a * x[i];
})";

using Scale = Tensor(const Tensor&, double);

Tensor on_meta(IntArrayRef sizes, ScalarType dtype = kFloat32) {
  return empty(sizes, TensorOptions(dtype).device(kMeta));
}

// Making an operator of this source and schema is refused, with a message that has `part`.
template <class Sig>
void check_refused(const char* source, const char* schema, const char* part, CudaKernelOptions<Sig> options = {}) {
  INFO(schema);
  CHECK_THROWS_WITH_AS(cuda_kernel<Sig>("refused", source, schema, options), doctest::Contains(part), Error);
}

}  // namespace

TEST_CASE("the parameters of a kernel are read past comments, attributes and other functions") {
  const Signature signature = read_signature(R"(
#include "backends/functors/unary.h"
// __global__ void in_a_comment(int x);
/* __global__ void in_another(int x); */
template <int n> struct Other { float f[n]; };
__device__ const char* text() { return "__global__ void in_a_text(int x) \" {"; }
extern "C" __global__ __launch_bounds__(256, 2) void
first(float *__restrict__ out, const rush::complex<float>* x /* complex */, unsigned int n) {}
template <class T, typename Index>
static __global__ void second(T* out, T const* x, Index i, const bool flag) {}
)",
                                             "");
  CHECK(signature.name == "first");
  CHECK(signature.type_parameters.empty());
  REQUIRE(signature.parameters.size() == 3);
  CHECK(signature.parameters[0].name == "out");
  CHECK(signature.parameters[0].is_pointer);
  CHECK(!signature.parameters[0].is_const);
  CHECK(signature.parameters[1].type == "rush::complex<float>");
  CHECK(signature.parameters[1].is_const);
  CHECK(signature.parameters[2].type == "unsigned int");
  CHECK(signature.parameters[2].dtype == kUInt32);
  CHECK(!signature.parameters[2].type_parameter);
  CHECK(!signature.parameters[2].is_pointer);
}

TEST_CASE("a kernel is found by its name, with its type parameters") {
  const Signature signature = read_signature(
      "__global__ void f(int* x) {}\ntemplate <class T, typename Index>\n__global__ void g(T* o, const T* x, Index i) "
      "{}",
      "g");
  CHECK(signature.type_parameters == std::vector<std::string>{"T", "Index"});
  CHECK(signature.parameters[1].type_parameter == 0u);
  CHECK(signature.parameters[2].type_parameter == 1u);
  CHECK_THROWS_WITH_AS(read_signature("__global__ void f(int* x) {}", "g"),
                       doctest::Contains("the source has no __global__ function named g"), ValueError);
  CHECK_THROWS_AS(read_signature("__device__ void f(int* x) {}", ""), ValueError);
  CHECK_THROWS_WITH_AS(read_signature("__global__ void f(Matrix* x) {}", ""),
                       doctest::Contains("parameter x of f has type Matrix"), ValueError);
  CHECK_THROWS_WITH_AS(read_signature("__global__ void f(float*) {}", ""), doctest::Contains("`float*`"), ValueError);
  CHECK_THROWS_AS(read_signature("template <int n> __global__ void f(float* x) {}", ""), ValueError);
  for (const char* cut_off : {"__global__", "__global__ void f", "__global__ void f(", "__global__ void f(float",
                              "template <", "template <class", "/*", "\"", "__global__ void __launch_bounds__(", "#"}) {
    INFO(std::string(cut_off));
    CHECK_THROWS_AS(read_signature(cut_off, ""), ValueError);
  }
}

TEST_CASE("every dtype has a C++ name that is read as this dtype") {
  for (int i = 0; i < kNumScalarTypes; ++i) {
    const auto dtype = static_cast<ScalarType>(i);
    CHECK(cuda::dtype_named(cuda::cpp_name(dtype)) == dtype);
  }
  CHECK(cuda::dtype_named("__half") == kFloat16);
  CHECK(cuda::dtype_named("unsigned char") == kUInt8);
  CHECK(!cuda::dtype_named("float4"));
}

TEST_CASE("source, schema and signature must fit") {
  using OneTensor = Tensor(const Tensor&);
  check_refused<OneTensor>(kScale, "test::a(Tensor x, float a) -> Tensor",
                           "its schema has 2 arguments, its C++ type 1");
  check_refused<Tensor(const Tensor&, int64_t)>(kScale, "test::a(Tensor x, float a) -> Tensor",
                                                "argument #1 'a' is float in its schema; in C++ it is int");
  check_refused<Scale>(kScale, "test::a(Tensor x, float a) -> (Tensor, Tensor)", "its schema has 2 results");
  check_refused<Scale>(kScale, "test::a(Tensor x", "");
  check_refused<Tensor(double)>("__global__ void f(float* out, double a) {}", "test::a(float a) -> Tensor",
                                "a tensor among its arguments");
  check_refused<OneTensor>("__global__ void f(float* out) {}", "test::a(Tensor x) -> Tensor",
                           "has 1 parameters; expected 1 results, 1 arguments");
  check_refused<OneTensor>("__global__ void f(float* out, float x) {}", "test::a(Tensor x) -> Tensor",
                           "x is Tensor, which parameter x of the kernel cannot take");
  check_refused<OneTensor>("__global__ void f(float out, const float* x) {}", "test::a(Tensor x) -> Tensor",
                           "a result is Tensor");
  check_refused<OneTensor>("__global__ void f(float* out, float* x) {}", "test::a(Tensor x) -> Tensor",
                           "expected const float*");
  check_refused<Scale>("__global__ void f(float* out, const float* x, int a) {}",
                       "test::a(Tensor x, float a) -> Tensor",
                       "a is float, which parameter a of the kernel cannot take");
  check_refused<OneTensor>("__global__ void f(float* out, const float* x, int n) {}", "test::a(Tensor x) -> Tensor",
                           "expected int64_t");
  check_refused<Scale>(kScale, "test::a(Tensor x, float a) -> Tensor", "2048 threads", {.block = 2048});
  check_refused<Scale>(kScale, "aten::relu(Tensor x, float a) -> Tensor", "an operator named aten::relu");
}

TEST_CASE("an operator knows its result on meta, by its name, and refuses the CPU") {
  const auto scale = cuda_kernel<Scale>("scale", kScale, "test::scale(Tensor x, float a) -> Tensor");
  const Tensor out = scale(on_meta({2, 3}, kFloat64), 2.0);
  CHECK(out.is_meta());
  CHECK(out.sizes() == IntArrayRef({2, 3}));
  CHECK(out.scalar_type() == kFloat64);
  const auto by_name = call_operator("test::scale", {on_meta({4}), 2.0});
  CHECK(by_name.at(0).as<Tensor>().sizes() == IntArrayRef({4}));

  CHECK_THROWS_WITH_AS(scale(ones({2}), 2.0), doctest::Contains("test::scale: x is on cpu, the kernel runs on a GPU"),
                       NotImplementedError);
  CHECK_THROWS_WITH_AS(scale(on_meta({2, 3}).t(), 2.0), doctest::Contains("x is not contiguous"), ValueError);
  CHECK_THROWS_WITH_AS(scale(Tensor(), 2.0), doctest::Contains("test::scale"), ValueError);
  CHECK_THROWS_AS(cuda_kernel<Scale>("scale", kScale, "test::scale(Tensor x, float a) -> Tensor"), ValueError);
}

TEST_CASE("tensors must have the dtypes of the kernel's parameters") {
  const auto mixed = cuda_kernel<Tensor(const Tensor&, const std::optional<Tensor>&)>(
      "mixed", "template <class T> __global__ void mixed(T* out, const T* x, const int64_t* index) {}",
      "test::mixed(Tensor x, Tensor? index) -> Tensor", {.dtypes = {kFloat32, kFloat16}});
  const Tensor x = on_meta({3}), index = on_meta({3}, kInt64);
  CHECK(mixed(x, index).scalar_type() == kFloat32);
  CHECK_NOTHROW(mixed(x.to(kFloat16), std::nullopt));
  CHECK_NOTHROW(mixed(x, Tensor()));
  CHECK_THROWS_WITH_AS(
      mixed(x, x), doctest::Contains("test::mixed: index is float32, parameter index of the kernel int64"), TypeError);
  CHECK_THROWS_WITH_AS(mixed(x.to(kFloat64), index), doctest::Contains("not implemented for float64"),
                       NotImplementedError);
}

TEST_CASE("a meta function checks the arguments and allocates several results") {
  using TwoResults = std::tuple<Tensor, Tensor>(const Tensor&, int64_t);
  const char* source = "__global__ void split(float* low, int64_t* high, const float* x, int64_t at) {}";
  const char* schema = "test::split(Tensor x, int at) -> (Tensor, Tensor)";
  check_refused<TwoResults>(source, schema, "several results need the option meta");
  const auto split = cuda_kernel<TwoResults>("split", source, schema,
                                             {.meta = [](const Tensor& x, int64_t at) -> std::tuple<Tensor, Tensor> {
                                               RUSH_CHECK_VALUE(at <= x.numel(), "split: ", at, " is beyond the end");
                                               return {x.new_empty({at}), x.new_empty({x.numel() - at}, kInt64)};
                                             }});
  const auto [low, high] = split(on_meta({10}), 3);
  CHECK(low.numel() == 3);
  CHECK(high.numel() == 7);
  CHECK(high.scalar_type() == kInt64);
  CHECK_THROWS_AS(split(on_meta({10}), 11), ValueError);

  const auto wrong = cuda_kernel<Tensor(const Tensor&)>("wrong", "__global__ void wrong(float* out, const float* x) {}",
                                                        "test::wrong(Tensor x) -> Tensor",
                                                        {.meta = [](const Tensor& x) { return empty({x.numel()}); }});
  CHECK_THROWS_WITH_AS(wrong(on_meta({2})), doctest::Contains("meta function"), ValueError);
  const auto writes = cuda_kernel<Tensor(const Tensor&)>(
      "writes", "__global__ void writes(float* out, const float* x) {}", "test::writes(Tensor x) -> Tensor",
      {.meta = [](const Tensor& x) { return x.view({-1}); }});
  CHECK_THROWS_WITH_AS(writes(on_meta({2})), doctest::Contains("returned memory of x"), ValueError);
}

TEST_CASE("gradients are refused until the operator has a derivative") {
  const auto scale = cuda_kernel<Scale>("scale", kScale, "test::differentiable(Tensor x, float a) -> Tensor");
  const Tensor x = on_meta({2, 3}).requires_grad_();
  CHECK_THROWS_WITH_AS(scale(x, 2.0), doctest::Contains("x requires a gradient"), NotImplementedError);
  {
    const NoGradGuard no_grad;
    CHECK(!scale(x, 2.0).requires_grad());
  }
  derivative(scale.op(), [&scale](const Tensors& g, const Tensor&, double a) -> Tensors { return {scale(g[0], a)}; });
  const Tensor y = scale(x, 2.0);
  CHECK(y.requires_grad());
  CHECK(y.grad_fn()->name() == "test::differentiableBackward");
  y.backward(on_meta({2, 3}));
  CHECK(x.grad().sizes() == x.sizes());
  CHECK_THROWS_AS(derivative(scale.op(), [](const Tensors&, const Tensor&, double) { return Tensors(); }), ValueError);
}
