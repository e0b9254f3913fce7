#include "autograd/compile/export/export.h"

#include <algorithm>
#include <map>

#include "autograd/compile/export/graph_json.h"
#include "autograd/compile/program.h"
#include "core/io/safetensors.h"

namespace rush {

namespace {

constexpr const char* kGraphKey = "graph";

// Composed operators that choose their parts by the device, or by strides, which differ from device to device.
bool depends_on_device(const OpBase& op) {
  constexpr std::string_view names[] = {
      "aten::reshape",        "aten::scaled_dot_product_attention",
      "aten::batch_norm",     "rush::batch_norm_relu",
      "aten::lstm.input",     "aten::gru.input",
      "aten::rnn_tanh.input", "aten::rnn_relu.input",
  };
  return std::ranges::find(names, op.name()) != std::end(names);
}

// A graph with its programs: one for each sizes of the inputs.
class LoadedPattern {
 public:
  explicit LoadedPattern(compiler::Pattern pattern) : pattern_(std::move(pattern)) {}

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    if (!are_like_example(inputs)) refuse(inputs);
    std::vector<Tensor> dense;
    std::vector<int64_t> sizes;
    for (const Tensor& input : inputs) {
      dense.push_back(input.detach().contiguous());
      sizes.insert(sizes.end(), input.sizes().begin(), input.sizes().end());
    }
    auto found = programs_.find(sizes);
    if (found == programs_.end()) {
      std::optional<Graph> graph = pattern_.for_inputs(dense, /*least=*/1);
      if (!graph) refuse(inputs);
      if (programs_.size() == kMostPrograms) programs_.clear();
      found = programs_.try_emplace(sizes, std::move(*graph)).first;
    }
    return found->second.run(dense);
  }

 private:
  static constexpr size_t kMostPrograms = 128;

  // In all but sizes.
  bool are_like_example(const std::vector<Tensor>& inputs) const {
    const Graph& graph = pattern_.graph();
    return std::ranges::equal(inputs, graph.inputs, [&](const Tensor& input, Graph::Id id) {
      const Graph::TensorInfo& info = graph.info(id);
      return input.defined() && input.scalar_type() == info.dtype && input.sizes().size() == info.sizes.size();
    });
  }
  [[noreturn]] void refuse(const std::vector<Tensor>& inputs) const {
    std::string expected, got;
    for (const Graph::Id id : pattern_.graph().inputs) {
      const Graph::TensorInfo& info = pattern_.graph().info(id);
      expected += str(' ', info.dtype, IntArrayRef(info.sizes));
    }
    for (const Tensor& t : inputs) got += t.defined() ? str(' ', t.scalar_type(), t.sizes()) : " undefined";
    RUSH_THROW(ValueError, "the loaded graph is for inputs like those of its example,", expected, ", got", got,
               ". Sizes that shall vary are declared when it is exported");
  }

  const compiler::Pattern pattern_;
  std::map<std::vector<int64_t>, compiler::Program> programs_;
};

}  // namespace

void export_graph(const compiler::Function& function, const std::vector<Tensor>& inputs, const std::string& path,
                  const ExportOptions& options) {
  const compiler::Pattern pattern =
      compiler::trace_function("export_graph", function, inputs, options.dynamic, depends_on_device);
  io::NamedTensors constants;
  for (const auto& [id, tensor] : pattern.graph().constants) constants.emplace_back(str(id), tensor.detach());
  io::save_safetensors(path, constants, {{kGraphKey, compiler::to_json(pattern)}}, io::Checksum::Crc32);
}

LoadedGraph load_graph(const std::string& path, Device device) {
  io::SafetensorsFile file(path);
  file.verify_checksum();
  const auto text = file.metadata().find(kGraphKey);
  RUSH_CHECK_IO(text != file.metadata().end(), path, ": it has no graph: export_graph writes files that have one");
  compiler::Pattern pattern =
      compiler::from_json(path, text->second, device, [&](Graph::Id id) { return file.read(str(id)); });
  const auto loaded = std::make_shared<LoadedPattern>(std::move(pattern));
  return LoadedGraph([loaded](const std::vector<Tensor>& inputs) { return loaded->run(inputs); });
}

}  // namespace rush
