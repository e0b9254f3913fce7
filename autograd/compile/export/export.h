// Functions that leave the program: export_graph writes what one does to a file, load_graph reads and runs it.
#pragma once
#include <concepts>
#include <string>
#include <utility>
#include <vector>

#include "autograd/compile/compile.h"
#include "autograd/compile/pattern.h"
#include "autograd/compile/tracer.h"

namespace rush {

/// A dimension of an input whose size is not fixed by the example. Dimensions of the same name have the same size,
/// which is a multiple of `multiple`, as the height that a U-Net halves three times is one of 8.
struct DynamicDim {
  size_t input = 0;
  int64_t dim = 0;
  std::string name = "batch";
  int64_t multiple = 1;
};

/// How a function is exported.
struct ExportOptions {
  /// Dimensions that may have any size from 1 on when the file is run. The function must do the same at all of them. It
  /// is called at three sizes to ensure that: with parts of the example, or with its last elements repeated where it is
  /// short.
  std::vector<DynamicDim> dynamic = {};
  /// What an ONNX file calls its inputs and outputs; "input_0", "output_0" and so on where nothing is said.
  std::vector<std::string> input_names = {}, output_names = {};
};

/// A function of tensors that was read from a file. Copies share the constants. Not to be called by several threads at
/// once.
class LoadedGraph {
 public:
  /// Of what runs it.
  explicit LoadedGraph(compiler::Function run) : run_(std::move(run)) {}

  /// The outputs for these inputs, without a history. The inputs lie on the device that the file was loaded to. Throws
  /// ValueError for inputs that are not like those of the example, and what the operators throw.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const { return run_(inputs); }
  /// The same for inputs that are given one by one.
  template <std::convertible_to<Tensor>... Inputs>
  std::vector<Tensor> operator()(const Inputs&... inputs) const {
    return run_({inputs...});
  }

 private:
  compiler::Function run_;
};

namespace compiler {

/// A function of N tensors as one of a list of them.
template <size_t N, class F>
Function function_of_list(F function) {
  return [function = std::move(function)](const std::vector<Tensor>& inputs) mutable {
    return [&]<size_t... I>(std::index_sequence<I...>) { return to_list(function(inputs[I]...)); }
    (std::make_index_sequence<N>());
  };
}

// Note [Traces for export]
// A file is read on other devices and for other sizes than those of the trace, so the trace stops at operators that
// would choose by device or strides what they are made of (TakesWhole): attention, recurrent layers, reshape. They are
// seen since the key Autograd is excluded; otherwise its kernel for such an operator is the operator's parts.
//
// Where sizes may change the function is traced three times, with inputs that were cut or lengthened: two traces give
// the Pattern, and the third must be what it foretells. Sizes of what calls make may be others, and become unknown:
// those of a convolution with strides follow no formula that a Pattern has, and who runs the calls does not ask for
// them.

// Calls the function once as it is and then traces it, without gradients. Throws ValueError when a dimension is not
// there, or the function does something else at other sizes, and NotImplementedError when it cannot be traced. `who` is
// what errors call the caller.
Pattern trace_function(const char* who, const Function& function, const std::vector<Tensor>& inputs,
                       const std::vector<DynamicDim>& dynamic, Tracer::TakesWhole takes_whole);

}  // namespace compiler

// Note [Graph files]
// The file is a safetensors file with a checksum: the graph's constants by their numbers, and in its metadata, under
// "graph", the calls as JSON. So every tool that reads safetensors sees the weights, and one reader is held to what
// hostile files may do. What a file says of the tensors that its calls make is believed nowhere: the calls are run one
// by one, and each operator checks its arguments. `rush::compile(load_graph(path))` traces that, and fuses it.

/// Writes what `function` does with inputs like these to `path`: the operators that it calls and the tensors that it
/// uses, its parameters among them, as they are now. It is called a few times, without gradients; modules should be in
/// eval mode. It takes and returns tensors as for rush::compile, or a list of them. torch.export.save.
/// Throws NotImplementedError for a function that cannot be traced (Note [Compiled functions]), ValueError when it does
/// not do the same at all sizes of a dynamic dimension, and IOError when the file cannot be written.
void export_graph(const compiler::Function& function, const std::vector<Tensor>& inputs, const std::string& path,
                  const ExportOptions& options = {});
/// The same for a function of N tensors: `export_graph(net, {x}, "net.rush")`.
template <class F, size_t N>
requires(!std::convertible_to<F, compiler::Function>) void export_graph(F function, const Tensor (&inputs)[N],
                                                                        const std::string& path,
                                                                        const ExportOptions& options = {}) {
  export_graph(compiler::function_of_list<N>(std::move(function)), {inputs, inputs + N}, path, options);
}

/// Reads a file of export_graph; its constants lie on `device`, and so must the inputs. torch.export.load.
/// Throws IOError, one line that starts with `path`, when it cannot be read or is damaged.
LoadedGraph load_graph(const std::string& path, Device device = kCPU);

}  // namespace rush
