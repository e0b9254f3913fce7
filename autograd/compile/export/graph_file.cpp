// export_graph and load_graph: Note [Graph files].
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "autograd/compile/export/export.h"
#include "autograd/compile/program.h"
#include "core/dispatch/registry.h"
#include "core/dispatch/schema.h"
#include "core/dispatch/value_tensors.h"
#include "core/io/safetensors.h"

namespace rush {

namespace {

using compiler::Pattern;
using Json = nlohmann::json;

constexpr const char* kGraphKey = "graph";
constexpr int64_t kVersion = 1;

// ---- writing

// The parts of a graph as JSON.
struct Writer {
  template <class Range>
  static Json list(const Range& range) {
    Json list = Json::array();
    for (const auto& each : range) list.push_back(json(each));
    return list;
  }

  static Json json(int64_t number) { return number; }
  // JSON has no infinities.
  static Json json(double number) { return std::isfinite(number) ? Json(number) : Json(str(number)); }
  static Json json(const Graph::TensorInfo& info) {
    const bool is_number = info.is_wrapped_number;
    return Json::array({name(info.dtype), list(info.sizes), list(info.strides), info.storage_offset, is_number});
  }
  // An object of one member, which tells the kind: {"float": 0.5}, {"Tensor": [3]}.
  static Json json(const Graph::Argument& argument) {
    const Value& value = argument.value;
    Json content;
    if (holds_tensors(value)) content = argument.tensors;
    if (value.is<bool>()) content = value.as<bool>();
    if (value.is<int64_t>()) content = value.as<int64_t>();
    if (value.is<double>()) content = json(value.as<double>());
    if (value.is<std::string>()) content = value.as<std::string>();
    if (value.is<ScalarType>()) content = name(value.as<ScalarType>());
    if (value.is<Layout>()) content = static_cast<int>(value.as<Layout>());
    if (value.is<MemoryFormat>()) content = static_cast<int>(value.as<MemoryFormat>());
    if (value.is<std::vector<int64_t>>()) content = value.as<std::vector<int64_t>>();
    if (value.is<std::vector<bool>>()) content = value.as<std::vector<bool>>();
    if (value.is<std::vector<double>>()) content = list(value.as<std::vector<double>>());
    RUSH_CHECK_NOT_IMPLEMENTED(!content.is_null() || value.is_none() || value.is<Device>(),
                               "export_graph: a call with an argument of type ", value.kind(), " cannot be written");
    return {{value.kind(), content}};
  }
  static Json json(const Graph::Constant& constant) { return constant.id; }
  static Json json(const Graph::Call& call) {
    return {{"op", call.name}, {"arguments", list(call.arguments)}, {"results", list(call.results)}};
  }
  static Json json(const Pattern::Variable& variable) { return Json::array({variable.a, variable.b}); }
  static Json json(const Pattern::Expression& e) {
    return Json::array({e.number, e.v, e.w, e.power, json(e.scale), json(e.offset)});
  }
  static Json json(const Pattern& pattern) {
    const Graph& graph = pattern.graph();
    return {{"version", kVersion},
            {"inputs", graph.inputs},
            {"outputs", graph.outputs},
            {"tensors", list(graph.tensors)},
            {"constants", list(graph.constants)},
            {"calls", list(graph.calls)},
            {"variables", list(pattern.variables())},
            {"expressions", list(pattern.expressions())}};
  }
};

// ---- reading

// Throws json's exceptions and IOError.
class Reader {
 public:
  Reader(const std::string& path, const io::SafetensorsFile& file, Device device)
      : path_(path), file_(file), device_(device) {}

  Pattern pattern(const Json& json) {
    const int64_t version = integer(json.at("version"));
    RUSH_CHECK_IO(version == kVersion, path_, ": it is of version ", version, " of graph files, and version ", kVersion,
                  " is read here");
    for (const Json& each : json.at("tensors")) graph_.tensors.push_back(tensor_info(each));
    graph_.inputs = ids(json.at("inputs"), /*or_none=*/false);
    for (const Graph::Id id : ids(json.at("constants"), /*or_none=*/false)) add_constant(id, file_.read(str(id)));
    for (const Json& each : json.at("calls")) graph_.calls.push_back(call(each));
    graph_.outputs = ids(json.at("outputs"));
    std::vector<Pattern::Variable> variables;
    for (const Json& each : json.at("variables")) variables.push_back({integer(each.at(0)), integer(each.at(1))});
    std::vector<Pattern::Expression> expressions;
    const auto count = static_cast<int64_t>(variables.size());
    for (const Json& each : json.at("expressions")) {
      const auto small = [&](size_t i, int64_t least, int64_t end) {
        return static_cast<int>(integer(each.at(i), least, end));
      };
      expressions.push_back({static_cast<size_t>(integer(each.at(0))), small(1, -1, count), small(2, -1, count),
                             small(3, -1, 2), real(each.at(4)), real(each.at(5))});
    }
    return Pattern(std::move(graph_), std::move(variables), std::move(expressions));
  }

 private:
  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    RUSH_CHECK_IO(condition, path_, ": corrupt graph: ", parts...);
  }
  // In [least, end).
  int64_t integer(const Json& json, int64_t least = std::numeric_limits<int64_t>::min(),
                  int64_t end = std::numeric_limits<int64_t>::max()) const {
    require(json.is_number_integer(), "expected an integer, not ", json.type_name());
    const auto value = json.get<int64_t>();
    require(value >= least && value < end, "the number ", value, " is out of range");
    return value;
  }
  static double real(const Json& json) {
    return json.is_string() ? std::stod(json.get<std::string>()) : json.get<double>();
  }
  template <class T, class Each>
  static std::vector<T> list(const Json& json, const Each& each) {
    std::vector<T> values;
    for (const Json& element : json) values.push_back(each(element));
    return values;
  }
  std::vector<int64_t> integers(const Json& json) const {
    return list<int64_t>(json, [&](const Json& each) { return integer(each); });
  }
  std::vector<Graph::Id> ids(const Json& json, bool or_none = true) const {
    const auto count = static_cast<int64_t>(graph_.tensors.size());
    return list<Graph::Id>(
        json, [&](const Json& each) { return static_cast<Graph::Id>(integer(each, or_none ? -1 : 0, count)); });
  }
  ScalarType dtype(const Json& json) const {
    const auto found = std::ranges::find(kDtypeTraits, json.get<std::string>(), &DtypeTraits::name);
    require(found != std::end(kDtypeTraits), "there is no dtype ", json.get<std::string>());
    return static_cast<ScalarType>(found - std::begin(kDtypeTraits));
  }

  Graph::TensorInfo tensor_info(const Json& json) const {
    const std::vector<int64_t> sizes = integers(json.at(1)), strides = integers(json.at(2));
    const ScalarType type = dtype(json.at(0));
    return {IntArrayRef(sizes), IntArrayRef(strides), integer(json.at(3)), type, device_, json.at(4).get<bool>()};
  }

  // A number that the program wrote stays on the CPU, as it is without a graph.
  void add_constant(Graph::Id id, const Tensor& tensor) {
    const bool is_number = graph_.info(id).is_wrapped_number;
    require(!is_number || tensor.dim() == 0, "constant ", id, " is no number");
    graph_.constants.push_back({id, is_number ? tensor : tensor.to(device_)});
    if (is_number) tensor.impl()->set_wrapped_number(true);
  }

  Graph::Argument argument(const Json& json) const {
    require(json.is_object() && json.size() == 1, "an argument is no object of one member");
    const std::string& kind = json.begin().key();
    const Json& content = json.begin().value();
    if (kind == "Tensor") {
      require(content.size() == 1, "an argument that is a tensor has ", content.size());
      return {Tensor(), ids(content)};
    }
    if (kind == "Tensor[]") return {std::vector<Tensor>(), ids(content)};
    if (kind == "Tensor?[]") return {std::vector<std::optional<Tensor>>(), ids(content)};
    return {value(kind, content), {}};
  }

  Value value(const std::string& kind, const Json& content) const {
    if (kind == "None") return {};
    if (kind == "bool") return content.get<bool>();
    if (kind == "int") return integer(content);
    if (kind == "float") return real(content);
    if (kind == "str") return content.get<std::string>();
    if (kind == "ScalarType") return dtype(content);
    if (kind == "Layout") return static_cast<Layout>(integer(content, 0, 1));
    if (kind == "MemoryFormat") return static_cast<MemoryFormat>(integer(content, 0, 4));
    if (kind == "Device") return device_;
    if (kind == "int[]") return integers(content);
    if (kind == "float[]") return list<double>(content, real);
    if (kind == "bool[]") return list<bool>(content, [](const Json& each) { return each.get<bool>(); });
    RUSH_THROW(IOError, path_, ": corrupt graph: there is no argument of type ", kind);
  }

  Graph::Call call(const Json& json) const {
    const auto name = json.at("op").get<std::string>();
    Graph::Call call{.op = registry().find(name), .name = name};
    RUSH_CHECK_IO(call.op, path_, ": this program has no operator ", name, ", which the graph calls: add it before");
    const auto argument_of = [&](const Json& each) { return argument(each); };
    call.arguments = list<Graph::Argument>(json.at("arguments"), argument_of);
    call.results = list<Graph::Argument>(json.at("results"), argument_of);
    const Schema schema = Schema::parse(call.op->schema());
    require(call.arguments.size() == schema.arguments.size() &&
                call.results.size() <= static_cast<size_t>(schema.num_returns),
            "a call of ", name, " has ", call.arguments.size(), " arguments and ", call.results.size(), " results");
    return call;
  }

  const std::string& path_;
  const io::SafetensorsFile& file_;
  const Device device_;
  Graph graph_;
};

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
  explicit LoadedPattern(Pattern pattern) : pattern_(std::move(pattern)) {}

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
      std::optional<Graph> graph = pattern_.for_inputs(dense, /*least=*/1, Pattern::Unknown::LeftInTensors);
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

  const Pattern pattern_;
  std::map<std::vector<int64_t>, compiler::Program> programs_;
};

}  // namespace

void export_graph(const compiler::Function& function, const std::vector<Tensor>& inputs, const std::string& path,
                  const ExportOptions& options) {
  const Pattern pattern =
      compiler::trace_function("export_graph", function, inputs, options.dynamic, depends_on_device);
  io::NamedTensors constants;
  for (const auto& [id, tensor] : pattern.graph().constants) constants.emplace_back(str(id), tensor.detach());
  io::save_safetensors(path, constants, {{kGraphKey, Writer::json(pattern).dump()}}, io::Checksum::Crc32);
}

LoadedGraph load_graph(const std::string& path, Device device) {
  io::SafetensorsFile file(path);
  file.verify_checksum();
  const auto text = file.metadata().find(kGraphKey);
  RUSH_CHECK_IO(text != file.metadata().end(), path, ": it has no graph: export_graph writes files that have one");
  try {
    const Json graph = Json::parse(text->second);
    const auto loaded = std::make_shared<LoadedPattern>(Reader(path, file, device).pattern(graph));
    return LoadedGraph([loaded](const std::vector<Tensor>& inputs) { return loaded->run(inputs); });
  } catch (const Json::exception& error) {
    RUSH_THROW(IOError, path, ": corrupt graph: ", error.what());
  } catch (const std::logic_error&) {  // of std::stod
    RUSH_THROW(IOError, path, ": corrupt graph: a number is none");
  }
}

}  // namespace rush
