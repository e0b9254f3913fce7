// What all operators that cuda_kernel makes have, whatever their signature: checks of arguments and launches.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/cuda/jit/kernel.h"
#include "backends/cuda/own_kernels/signature.h"
#include "core/array_ref.h"
#include "core/dispatch/schema.h"
#include "core/error/source_location.h"

namespace rush::cuda {

// An argument of an operator, as a kernel may take it: a number or a tensor.
struct KernelArgument {
  const Tensor* tensor = nullptr;  // null: an optional one that is not given, or a number
  std::optional<Scalar> number = {};

  KernelArgument(const Tensor& t) : tensor(&t) {}
  KernelArgument(const std::optional<Tensor>& t) : tensor(given(t) ? &*t : nullptr) {}
  KernelArgument(double value) : number(value) {}
  KernelArgument(int64_t value) : number(value) {}
  KernelArgument(bool value) : number(value) {}
};

// The members of CudaKernelOptions that do not depend on the signature.
struct KernelOptions {
  std::string kernel;
  int64_t block, elements_per_thread;
  std::vector<ScalarType> dtypes;
  std::vector<std::string> compile_options;
};

class OwnKernel {
 public:
  // Reads the kernel's parameters, and checks them against the schema: its results first, then its arguments, then the
  // number of elements of the first result, which may be left out. Throws ValueError, or TypeError for an argument that
  // the parameter cannot take.
  OwnKernel(std::string name, std::string source, std::string schema, KernelOptions options, SourceLocation where);

  const std::string& schema() const { return schema_; }

  // Throws unless the arguments are what the kernel takes: TypeError for a dtype, ValueError for tensors that are not
  // contiguous or on several devices, NotImplementedError for a device that is no GPU, and for a gradient that is asked
  // for where `differentiable` is false.
  void check(std::span<const KernelArgument> arguments, bool differentiable) const;
  // The same for what a meta function allocated; ValueError for what is not.
  void check_results(std::span<const Tensor> results, std::span<const KernelArgument> arguments) const;
  // One without values, contiguous, of the sizes and dtype of the first tensor.
  Tensor like_first(std::span<const KernelArgument> arguments) const;
  // The grid for a result of n elements.
  jit::Shape shape_for(int64_t n) const;
  // Fills the results, unless they have no data or no elements. Throws as `check`, for results that a meta function
  // made.
  void launch(std::span<const Tensor> results, std::span<const KernelArgument> arguments,
              const jit::Shape& shape) const;

 private:
  struct Instances;
  using DtypeVector = InlineVector<ScalarType, 4>;

  static std::string described(const void* kernel);  // for ErrorContext
  const char* op_name() const { return op_name_.c_str(); }
  void check_parameters(const Schema& schema) const;
  const std::string& name(size_t argument) const { return names_[results_ + argument]; }
  DtypeVector type_arguments(std::span<const Tensor> results, std::span<const KernelArgument> arguments) const;
  const jit::Kernel& instance(const DtypeVector& types) const;

  std::string source_name_, source_, schema_, op_name_;
  std::vector<std::string> names_;  // of what the kernel's parameters are for: results, then arguments
  size_t results_;
  KernelOptions options_;
  SourceLocation where_;  // the program made it
  Signature signature_;
  std::shared_ptr<Instances> instances_;
};

}  // namespace rush::cuda
