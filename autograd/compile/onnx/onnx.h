// ONNX: models for other programs, and from them. https://onnx.ai/onnx/repo-docs/IR.html
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "autograd/compile/export/export.h"

namespace rush::onnx {

// Note [ONNX]
// A model is written from the graph of a trace (Note [Traces for export]): kRows has what stands for each operator,
// one node or several. Composed operators without a row, attention among them, are written as what they call. Numbers
// of the graph that depend on a dynamic dimension are computed by nodes from the input's Shape, as the Pattern says.
// Operators that write in place become operators that give a new tensor.
//
// A model is read by running its nodes one after another on public operators. Tensors of sizes, which Shape gives, lie
// on the CPU and are read there, so the same file runs at all sizes; rush::compile of it notes what is left.

/// Writes what `function` does with inputs like these to `path`, as an ONNX model of opset 21, for ONNX Runtime,
/// TensorRT and others. As for export_graph, modules should be in eval mode. torch.onnx.export.
/// Throws NotImplementedError, where the function calls it, for an operator that has no row in kRows, and what
/// export_graph throws.
void export_model(const compiler::Function& function, const std::vector<Tensor>& inputs, const std::string& path,
                  const ExportOptions& options = {});
/// The same for a function of N tensors: `onnx::export_model(net, {x}, "net.onnx")`.
template <class F, size_t N>
requires(!std::convertible_to<F, compiler::Function>) void export_model(F function, const Tensor (&inputs)[N],
                                                                        const std::string& path,
                                                                        const ExportOptions& options = {}) {
  export_model(compiler::function_of_list<N>(std::move(function)), {inputs, inputs + N}, path, options);
}

/// Reads an ONNX model of those operators that export_model writes, and its weights where they lie in files beside it;
/// they are put on `device`, where the inputs must lie, too. Throws IOError, one line that starts with `path`, when it
/// cannot be read or is damaged, and NotImplementedError for an operator that it does not know, and opsets before 13.
LoadedGraph load_model(const std::string& path, Device device = kCPU);

}  // namespace rush::onnx
