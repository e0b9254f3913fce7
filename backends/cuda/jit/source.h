// What is compiled at run time, and what comes out.
#pragma once
#include <string>
#include <vector>

#include "backends/cuda/error.h"

namespace rush::cuda::jit {

// A translation unit of CUDA C++. It may include the headers that headers.h lists, such as
// "backends/functors/unary.h"; core/half.h, core/complex.h and the fixed-width integers are there without that.
struct Source {
  std::string name;                       // what the compiler's messages call the text: a file, or an operator
  std::string text;                       // without zero bytes
  std::vector<std::string> kernels = {};  // the __global__ functions that are asked for: "scale", "scale<float>"
  std::vector<std::string> options = {};  // of NVRTC, beside those that every source is compiled with
};

// Machine code for one architecture.
struct Cubin {
  std::string image;                 // an ELF file
  std::vector<std::string> symbols;  // what the image calls Source::kernels, in their order
};

/// A source that does not compile. Its message has the compiler's, on one line.
class CompileError : public CudaError {
 public:
  CompileError(const Source& source, std::string log);
  /// What the compiler wrote, with its line breaks.
  const std::string& log() const { return log_; }

 private:
  std::string log_;
};

}  // namespace rush::cuda::jit
