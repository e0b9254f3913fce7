// Reads ONNX models and runs them, node by node: Note [ONNX].
#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <span>

#include "autograd/compile/onnx/format.h"
#include "autograd/compile/onnx/model_writer.h"
#include "autograd/compile/onnx/onnx.h"
#include "autograd/compile/onnx/read_rows.h"
#include "autograd/grad_mode.h"
#include "core/dispatch/registry.h"
#include "core/dispatch/schema.h"
#include "core/io/array_bytes.h"
#include "core/io/input_file.h"
#include "core/io/read_file.h"
#include "core/ops/factory/factories.h"

namespace rush::onnx {

using io::ProtoFields;

namespace {

// ---- The messages

// The values of a tensor, as memory has them. The file has them so, too, or as numbers, which go to `bytes`: int32_data
// has the narrow ones, too.
std::string_view values_of(const ProtoFields& fields, ScalarType dtype, std::string& bytes) {
  for (const uint32_t field : {tensor::raw_data, tensor::float_data, tensor::double_data}) {
    if (fields.has(field)) return fields.text(field);
  }
  for (const uint32_t field : {tensor::int32_data, tensor::int64_data, tensor::uint64_data}) {
    for (const int64_t number : fields.integers(field)) {  // its first bytes: the lowest ones
      bytes.append(reinterpret_cast<const char*>(&number), static_cast<size_t>(element_size(dtype)));
    }
  }
  return bytes;
}

// The values that lie in a file of their own, which is named as seen from the model's folder.
std::string values_elsewhere(const ProtoFields& fields, const std::filesystem::path& folder, uint64_t size) {
  std::filesystem::path location;
  uint64_t offset = 0;
  for (const std::string_view each : fields.texts(tensor::external_data)) {
    const ProtoFields entry(each);  // StringStringEntryProto: a key and a value
    const std::string_view key = entry.text(1), value = entry.text(2), end = value.substr(value.size());
    if (key == "location") location = value;
    if (key != "offset") continue;
    const auto [at, error] = std::from_chars(value.data(), end.data(), offset);
    RUSH_CHECK_IO(at == end.data() && error == std::errc(), "weights begin at '", value, "'");
  }
  const bool is_inside = !location.empty() && location.is_relative() && std::ranges::count(location, "..") == 0;
  RUSH_CHECK_IO(is_inside, "weights lie in '", location.string(), "', which is outside of the model's folder");
  const io::InputFile file(folder / location);
  RUSH_CHECK_IO(offset <= file.size() && size <= file.size() - offset, file.path(), " has ", file.size(),
                " bytes, too few for weights of ", size, " from ", offset, " on");
  std::string bytes(size, '\0');
  file.read(offset, bytes.data(), size);
  return bytes;
}

std::pair<std::string, Tensor> read_tensor(std::string_view message, const std::filesystem::path& folder) {
  const ProtoFields fields(message);
  const std::string name(fields.text(tensor::name));
  const Ints sizes = fields.integers(tensor::dims);
  const ScalarType dtype = dtype_of(fields.integer(tensor::data_type, 1));
  const bool is_shape = std::ranges::all_of(sizes, [](int64_t size) { return size >= 0; });
  const auto known = is_shape ? io::array_bytes(sizes, dtype) : std::nullopt;
  const uint64_t size = known.value_or(std::numeric_limits<uint64_t>::max());
  const bool is_elsewhere = fields.integer(tensor::data_location) == tensor::kExternal;
  std::string bytes = is_elsewhere ? values_elsewhere(fields, folder, size) : "";
  const std::string_view data = is_elsewhere ? bytes : values_of(fields, dtype, bytes);
  RUSH_CHECK_IO(size == data.size() && io::values_valid(data.data(), data.size(), dtype), "tensor '", name,
                "' of shape ", sizes, " and dtype ", dtype, " has ", data.size(), " bytes of values");
  const Tensor values = detail::empty_contiguous(sizes, dtype, kCPU);
  if (!data.empty()) std::memcpy(values.data_ptr(), data.data(), data.size());
  return {name, values};
}

std::pair<std::string, Value> read_attribute(std::string_view bytes, const std::filesystem::path& folder) {
  const ProtoFields fields(bytes);
  Value value = fields.integers(attribute::ints);
  if (fields.has(attribute::f)) value = static_cast<double>(fields.float32(attribute::f));
  if (fields.has(attribute::i)) value = fields.integer(attribute::i);
  if (fields.has(attribute::s)) value = std::string(fields.text(attribute::s));
  if (fields.has(attribute::t)) value = read_tensor(fields.text(attribute::t), folder).second;
  if (const auto floats = fields.float32s(attribute::floats); !floats.empty()) {
    value = rush::tensor(floats, TensorOptions(kFloat32).device(kCPU));
  }
  std::string texts;
  for (const std::string_view each : fields.texts(attribute::strings)) texts.append(each).append(" ");
  return {std::string(fields.text(attribute::name)), texts.empty() ? value : texts};
}

// ---- The model

bool heeds(std::string_view attributes, std::string_view name) {
  return str(' ', attributes, ' ').find(str(' ', name, ' ')) != std::string::npos;
}

bool is_of_onnx(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

class Model {
 public:
  Model(std::string_view bytes, std::filesystem::path folder, Device device)
      : folder_(std::move(folder)), device_(device) {
    const ProtoFields fields(bytes);
    int64_t opset = 0;  // of ONNX's own operators: other domains count for themselves
    for (const std::string_view each : fields.texts(model::opset_import)) {
      if (is_of_onnx(ProtoFields(each).text(1))) opset = std::max(opset, ProtoFields(each).integer(2));
    }
    read_graph(fields.text(model::graph));
    RUSH_CHECK_IO(!outputs_.empty(), "it has no graph with outputs");
    RUSH_CHECK_NOT_IMPLEMENTED(opset >= 13, "opset ", opset, ", of which load_model reads 13 and later");
  }

  Tensors run(const Tensors& inputs) const {
    RUSH_CHECK_VALUE(inputs.size() == inputs_.size(), "the loaded model has ", inputs_.size(), " inputs, got ",
                     inputs.size());
    const NoGradGuard no_grad;
    Tensors values = constants_;
    for (size_t i = 0; i < inputs.size(); ++i) values[inputs_[i]] = inputs[i];
    for (const Node& node : nodes_) {
      const Tensors results = results_of(node, values);
      RUSH_CHECK_VALUE(results.size() >= node.outputs.size(), node.op, ": ", node.outputs.size(), " outputs");
      for (size_t i = 0; i < node.outputs.size(); ++i) values[node.outputs[i]] = results[i];
      for (const size_t value : node.last_used) values[value].reset();
      values[0].reset();  // of outputs without a name
    }
    Tensors outputs;
    for (const size_t output : outputs_) outputs.push_back(values[output]);
    return outputs;
  }

 private:
  // Whatever their order in the file: nodes name what the others give.
  void read_graph(std::string_view bytes) {
    const ProtoFields fields(bytes);
    for (const std::string_view each : fields.texts(graph::initializer)) read_initializer(each);
    for (const std::string_view each : fields.texts(graph::input)) {
      const std::string name(ProtoFields(each).text(1));
      if (!places_.contains(name)) inputs_.push_back(new_place(name));  // an initializer may be named there, too
    }
    for (const std::string_view each : fields.texts(graph::node)) read_node(each);
    for (const std::string_view each : fields.texts(graph::output))
      outputs_.push_back(place_of(std::string(ProtoFields(each).text(1))));
    constants_.resize(count_);
    find_last_uses();
  }

  // Sizes and indices, of which there are few, stay on the CPU, where they are read.
  void read_initializer(std::string_view bytes) {
    const auto [name, value] = read_tensor(bytes, folder_);
    constants_.resize(new_place(name) + 1);
    constants_.back() = value.scalar_type() == kInt64 && value.dim() <= 1 ? value : value.to(device_);
  }

  void read_node(std::string_view bytes) {
    const ProtoFields fields(bytes);
    Node node;
    node.op = fields.text(node::op_type);
    const std::string_view domain = fields.text(node::domain);
    RUSH_CHECK_NOT_IMPLEMENTED(is_of_onnx(domain), "there is no row for ", domain, "::", node.op);
    for (const std::string_view each : fields.texts(node::input)) node.inputs.push_back(place_of(std::string(each)));
    for (const std::string_view each : fields.texts(node::attribute))
      node.attributes.insert(read_attribute(each, folder_));
    find_operator(node);
    for (const std::string_view each : fields.texts(node::output))
      node.outputs.push_back(each.empty() ? 0 : new_place(std::string(each)));
    nodes_.push_back(std::move(node));
  }

  static void find_operator(Node& node) {
    const auto row = std::ranges::find(kReadRows, node.op, &ReadRow::op);
    const auto same = std::ranges::find_if(kRows, [&](const Row& r) { return r.is_same() && node.op == r.node; });
    RUSH_CHECK_NOT_IMPLEMENTED(row != kReadRows.end() || same != kRows.end(), "there is no row for the operator ",
                               node.op);
    if (row != kReadRows.end()) node.row = &*row;
    for (const auto& [name, value] : node.attributes) {
      const bool is_zero = value.is<int64_t>() && value.as<int64_t>() == 0;
      RUSH_CHECK_NOT_IMPLEMENTED(is_zero || (node.row && heeds(node.row->attributes, name)), node.op,
                                 ": its attribute '", name, "' is not known");
    }
    if (node.row) return;
    node.same = registry().find(same->op);
    const Schema schema = Schema::parse(node.same->schema());
    for (size_t i = node.inputs.size(); i < schema.arguments.size(); ++i)
      node.defaults.push_back(schema.arguments[i].default_value.value_or(Value()));
    RUSH_CHECK_IO(node.inputs.size() <= schema.arguments.size(), node.op, ": ", node.inputs.size(), " inputs");
  }

  size_t place_of(const std::string& name) const {
    if (name.empty()) return 0;
    const auto found = places_.find(name);
    RUSH_CHECK_IO(found != places_.end(), "'", name, "' is read before anything gives it");
    return found->second;
  }
  size_t new_place(const std::string& name) {
    RUSH_CHECK_IO(places_.emplace(name, count_).second, "'", name, "' is given twice");
    return count_++;
  }

  void find_last_uses() {
    std::vector<bool> is_read(count_, false);
    for (const size_t output : outputs_) is_read[output] = true;
    for (size_t i = nodes_.size(); i-- > 0;) {
      for (const size_t input : nodes_[i].inputs) {
        if (!is_read[input]) nodes_[i].last_used.push_back(input);
        is_read[input] = true;
      }
    }
  }

  static Tensors results_of(const Node& node, const Tensors& values) {
    Call call{node, {}};
    Device device = kCPU;
    const size_t data = std::min(node.row ? node.row->data : kAll, node.inputs.size());
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      call.inputs.push_back(values[node.inputs[i]]);
      if (i < data && call.has(i) && !call[i].is_cpu()) device = call[i].device();
    }
    for (size_t i = 0; i < data; ++i) {
      if (call.has(i)) call.inputs[i] = call[i].to(device);
    }
    if (node.row) return node.row->run_all ? node.row->run_all(call) : Tensors{node.row->run(call)};
    Stack stack(call.inputs.begin(), call.inputs.end());
    stack.insert(stack.end(), node.defaults.begin(), node.defaults.end());
    node.same->call_boxed(stack);
    return {stack[0].as<Tensor>()};
  }

  const std::filesystem::path folder_;
  const Device device_;
  std::map<std::string, size_t> places_;
  size_t count_ = 1;  // of values; the first is undefined
  Tensors constants_ = Tensors(1);
  std::vector<size_t> inputs_, outputs_;
  std::vector<Node> nodes_;
};

}  // namespace

LoadedGraph load_model(const std::string& path, Device device) {
  const std::vector<uint8_t> bytes = io::read_file(path);
  try {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto model = std::make_shared<const Model>(text, std::filesystem::path(path).parent_path(), device);
    return LoadedGraph([model](const Tensors& inputs) { return model->run(inputs); });
  } catch (const IOError& error) {
    RUSH_THROW(IOError, path, ": damaged, or no ONNX model: ", error.msg());
  } catch (const NotImplementedError& error) {
    RUSH_THROW(NotImplementedError, path, ": ", error.msg());
  }
}

}  // namespace rush::onnx
