// Operators from the source of a CUDA kernel, compiled when they are first called.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/cuda/own_kernels/own_kernel.h"
#include "core/dispatch/closure_kernel.h"
#include "core/dispatch/registry.h"
#include "core/library/signature.h"

namespace rush {

namespace cuda {

// The results, a Tensor or a std::tuple of Tensors.
template <class R>
auto list_of(const R& results) {
  return std::apply([](const auto&... each) { return std::array<Tensor, sizeof...(each)>{each...}; },
                    std::tuple(results));
}

/// `{.grid = {blocks}, .block = {threads}, .shared = bytes}`
using KernelShape = jit::Shape;

}  // namespace cuda

/// How an operator that cuda_kernel makes runs.
template <class Signature>
struct CudaKernelOptions;
template <class R, class... Args>
struct CudaKernelOptions<R(Args...)> {
  /// Which __global__ function of the source; empty: the first one.
  std::string kernel = {};
  /// Threads of a block, and elements of the first result that a thread is for: they give the grid.
  int64_t block = 256;
  int64_t elements_per_thread = 1;
  /// The launch for given arguments, instead of the one that follows from these two numbers.
  std::function<cuda::KernelShape(const R& results, Args...)> shape = {};
  /// Allocates the results, contiguous and on the device of the tensors, and checks what the kernel relies on: the
  /// sizes of the arguments. It is called for tensors on meta, too. By default there is one result, of the sizes and
  /// dtype of the first tensor.
  std::function<R(Args...)> meta = {};
  /// What a type parameter of the kernel may stand for; empty: every dtype with arithmetic.
  std::vector<ScalarType> dtypes = {};
  /// Options of NVRTC, such as "--use_fast_math".
  std::vector<std::string> compile_options = {};

  /// Those that have nothing to do with the signature.
  cuda::KernelOptions of_kernel() const { return {kernel, block, elements_per_thread, dtypes, compile_options}; }
};

namespace cuda {

template <class Signature>
class OwnOperator;
template <class R, class... Args>
class OwnOperator<R(Args...)> final : public ClosureKernel<R(Args...)> {
 public:
  static_assert(sizeof...(Args) > 0, "a kernel has a tensor among its arguments");
  static_assert((std::is_convertible_v<Args, KernelArgument> && ...),
                "a kernel's arguments are Tensor, std::optional<Tensor>, double, int64_t and bool");
  OwnOperator(OwnKernel kernel, CudaKernelOptions<R(Args...)> options)
      : kernel_(std::move(kernel)), options_(std::move(options)), op(kernel_.schema().c_str()) {}

  // Makes one and registers it.
  static Op<R(Args...)>& make(std::string name, std::string source, std::string schema,
                              CudaKernelOptions<R(Args...)> options, SourceLocation where) {
    RUSH_CHECK_VALUE((std::is_same_v<R, Tensor>) || options.meta, name, ": several results need the option meta");
    library::check_signature(Op<R(Args...)>(schema.c_str()), library::signature_of<R(Args...)>());
    OwnKernel kernel(std::move(name), std::move(source), std::move(schema), options.of_kernel(), where);
    auto made = std::make_unique<OwnOperator>(std::move(kernel), std::move(options));
    Op<R(Args...)>& op = made->op;
    RUSH_CHECK_VALUE(!registry().find(op.name()), "there is an operator named ", op.name());
    registry().native(op, ClosureKernel<R(Args...)>::function_of(std::move(made)), where);
    return op;
  }

  R call(Args... args) override {
    const KernelArgument arguments[] = {KernelArgument(args)...};
    kernel_.check(arguments, op.has_kernel(DispatchKey::Autograd));
    R results = allocate(arguments, args...);
    const auto list = list_of(results);
    kernel_.check_results(list, arguments);
    kernel_.launch(list, arguments, list[0].is_meta() ? KernelShape() : shape_for(results, list[0], args...));
    return results;
  }

 private:
  R allocate(std::span<const KernelArgument> arguments, Args... args) const {
    if constexpr (std::is_same_v<R, Tensor>) {
      if (!options_.meta) return kernel_.like_first(arguments);
    }
    return options_.meta(args...);
  }

  KernelShape shape_for(const R& results, const Tensor& first, Args... args) const {
    return options_.shape ? options_.shape(results, args...) : kernel_.shape_for(first.numel());
  }

  const OwnKernel kernel_;
  const CudaKernelOptions<R(Args...)> options_;

 public:
  Op<R(Args...)> op;  // refers to the kernel's schema
};

}  // namespace cuda

/// An operator that cuda_kernel made. Copies are the same operator.
template <class Signature>
class CudaKernel;
template <class R, class... Args>
class CudaKernel<R(Args...)> {
 public:
  explicit CudaKernel(Op<R(Args...)>& op) : op_(&op) {}
  /// As any operator's call: it stops at every key that the arguments carry.
  R operator()(Args... args) const { return (*op_)(std::forward<Args>(args)...); }
  /// The operator, for rush::derivative and what else works on operators.
  Op<R(Args...)>& op() const { return *op_; }

 private:
  Op<R(Args...)>* op_;
};

/// Makes an operator of a CUDA kernel and registers it under the name in `schema`; `name` is what the compiler's
/// messages call `source`. The kernel's parameters are pointers to the results, then the arguments in their order,
/// then, if it has one parameter more, the number of elements of the first result as int64_t:
///   auto scale = rush::cuda_kernel<Tensor(const Tensor&, double)>("scale", R"(
///     template <class T>
///     __global__ void scale(T* out, const T* x, float a, int64_t n) {
///       const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
///       if (i < n) out[i] = a * x[i];
///     })", "my::scale(Tensor x, float a) -> Tensor");
///   Tensor y = scale(x, 3.0);
/// A type parameter is the dtype of the tensors that it is the type of. The source may include the functors of this
/// library: see docs/own_kernels.md. It is compiled at the first call with each choice of dtypes, and kept in a cache
/// on the disk. The operator can be called by its name, is seen by profiles, and has no derivative unless
/// rush::derivative gives it one. Not while other threads call or make operators.
///
/// Throws ValueError or TypeError where source, schema and Signature do not fit or the name is taken; calls throw
/// CompileError where the source does not compile, TypeError, ValueError or NotImplementedError for tensors that the
/// kernel does not take. In a build without CUDA calls throw NotImplementedError.
template <class Signature>
CudaKernel<Signature> cuda_kernel(std::string name, std::string source, std::string schema,
                                  CudaKernelOptions<Signature> options = {},
                                  SourceLocation where = SourceLocation::current()) {
  return CudaKernel<Signature>(cuda::OwnOperator<Signature>::make(std::move(name), std::move(source), std::move(schema),
                                                                  std::move(options), where));
}

}  // namespace rush
