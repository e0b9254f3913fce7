#include "autograd/compile/export/graph_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/dispatch/registry.h"
#include "core/dispatch/schema.h"
#include "core/dispatch/value_tensors.h"

namespace rush::compiler {

namespace {

using Json = nlohmann::json;

constexpr int64_t kVersion = 1;

// ---- writing

template <class Range>
Json list_of(const Range& range) {
  return std::vector<typename Range::value_type>(range.begin(), range.end());
}

// JSON has no infinities.
Json json_of(double number) { return std::isfinite(number) ? Json(number) : Json(str(number)); }

// An object of one member, which tells the kind: {"float": 0.5}, {"Tensor": [3]}.
Json json_of(const Graph::Argument& argument) {
  const Value& value = argument.value;
  Json content;
  if (holds_tensors(value)) content = argument.tensors;
  if (value.is<bool>()) content = value.as<bool>();
  if (value.is<int64_t>()) content = value.as<int64_t>();
  if (value.is<double>()) content = json_of(value.as<double>());
  if (value.is<std::string>()) content = value.as<std::string>();
  if (value.is<ScalarType>()) content = name(value.as<ScalarType>());
  if (value.is<Layout>()) content = static_cast<int>(value.as<Layout>());
  if (value.is<MemoryFormat>()) content = static_cast<int>(value.as<MemoryFormat>());
  if (value.is<std::vector<int64_t>>()) content = value.as<std::vector<int64_t>>();
  if (value.is<std::vector<bool>>()) content = value.as<std::vector<bool>>();
  if (value.is<std::vector<double>>()) {
    content = Json::array();
    for (const double each : value.as<std::vector<double>>()) content.push_back(json_of(each));
  }
  RUSH_CHECK_NOT_IMPLEMENTED(!content.is_null() || value.is_none() || value.is<Device>(),
                             "export_graph: a call with an argument of type ", value.kind(), " cannot be written");
  return Json::object({{value.kind(), content}});
}

Json json_of(const std::vector<Graph::Argument>& arguments) {
  Json list = Json::array();
  for (const Graph::Argument& each : arguments) list.push_back(json_of(each));
  return list;
}

Json json_of(const Graph::TensorInfo& info) {
  const bool is_number = info.is_wrapped_number;
  return Json::array({name(info.dtype), list_of(info.sizes), list_of(info.strides), info.storage_offset, is_number});
}

Json json_of(const Pattern::Expression& e) {
  return Json::array({e.number, e.v, e.w, e.power, json_of(e.scale), json_of(e.offset)});
}

// ---- reading

// Throws json's exceptions and IOError.
class Reader {
 public:
  Reader(const std::string& path, Device device) : path_(path), device_(device) {}

  Pattern pattern(const Json& json, const std::function<Tensor(Graph::Id)>& constant) {
    require(integer(json.at("version")) == kVersion, "it is of another version of the format");
    for (const Json& each : json.at("tensors")) graph_.tensors.push_back(tensor_info(each));
    graph_.inputs = ids(json.at("inputs"), /*or_none=*/false);
    for (const Graph::Id id : ids(json.at("constants"), /*or_none=*/false)) add_constant(id, constant(id));
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
      expressions.push_back({static_cast<size_t>(integer(each.at(0))), small(1, 0, count), small(2, -1, count),
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
    require(call.op, "there is no operator ", name);
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
  const Device device_;
  Graph graph_;
};

}  // namespace

std::string to_json(const Pattern& pattern) {
  const Graph& graph = pattern.graph();
  Json json = {{"version", kVersion}, {"inputs", graph.inputs}, {"outputs", graph.outputs}};
  for (const char* list : {"tensors", "constants", "calls", "variables", "expressions"}) json[list] = Json::array();
  for (const Graph::TensorInfo& info : graph.tensors) json["tensors"].push_back(json_of(info));
  for (const Graph::Constant& constant : graph.constants) json["constants"].push_back(constant.id);
  for (const Graph::Call& call : graph.calls) {
    json["calls"].push_back(
        {{"op", call.name}, {"arguments", json_of(call.arguments)}, {"results", json_of(call.results)}});
  }
  for (const Pattern::Variable& each : pattern.variables()) json["variables"].push_back(Json::array({each.a, each.b}));
  for (const Pattern::Expression& each : pattern.expressions()) json["expressions"].push_back(json_of(each));
  return json.dump();
}

Pattern from_json(const std::string& path, const std::string& text, Device device,
                  const std::function<Tensor(Graph::Id)>& constant) {
  try {
    return Reader(path, device).pattern(Json::parse(text), constant);
  } catch (const Json::exception& error) {
    RUSH_THROW(IOError, path, ": corrupt graph: ", error.what());
  } catch (const std::logic_error&) {  // of std::stod
    RUSH_THROW(IOError, path, ": corrupt graph: a number is none");
  }
}

}  // namespace rush::compiler
