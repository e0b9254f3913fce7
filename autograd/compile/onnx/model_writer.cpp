#include "autograd/compile/onnx/model_writer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "autograd/compile/onnx/format.h"
#include "autograd/compile/onnx/onnx.h"
#include "core/dispatch/boxed.h"
#include "core/io/atomic_file.h"
#include "core/ops/factory/factories.h"
#include "core/ops/nn/attention.h"
#include "core/ops/view/copy.h"

namespace rush::onnx {

using io::ProtoMessage;

namespace {

constexpr const char* kWho = "onnx::export_model";

int64_t number_of(ScalarType dtype) {
  const auto found = std::ranges::find(kDataTypes, dtype, &DataType::dtype);
  RUSH_CHECK_NOT_IMPLEMENTED(found != std::end(kDataTypes), kWho, ": ONNX has no dtype for ", dtype);
  return found->number;
}

ProtoMessage tensor_proto(const std::string& name, const Tensor& tensor) {
  const Tensor values = tensor.detach().cpu().contiguous();
  ProtoMessage proto;
  for (const int64_t size : values.sizes()) proto.integer(tensor::dims, size);
  proto.integer(tensor::data_type, number_of(values.scalar_type())).text(tensor::name, name);
  const auto bytes = static_cast<size_t>(values.nbytes());
  return proto.text(tensor::raw_data, {static_cast<const char*>(values.data_ptr()), bytes});
}

ProtoMessage attribute_proto(const char* name, const Attributes::value_type::second_type& value) {
  ProtoMessage proto;
  proto.text(attribute::name, name);
  if (const auto* number = std::get_if<int64_t>(&value)) proto.integer(attribute::i, *number);
  if (const auto* number = std::get_if<double>(&value)) proto.float32(attribute::f, static_cast<float>(*number));
  if (const auto* text = std::get_if<std::string>(&value)) proto.text(attribute::s, *text);
  if (const auto* list = std::get_if<Ints>(&value)) {
    for (const int64_t each : *list) proto.integer(attribute::ints, each);
  }
  if (const auto* list = std::get_if<Names>(&value)) {
    for (const std::string& each : *list) proto.text(attribute::strings, each);
  }
  constexpr attribute::Type kTypes[] = {attribute::Int, attribute::Float, attribute::String, attribute::Ints,
                                        attribute::Strings};
  return proto.integer(attribute::type, kTypes[value.index()]);
}

// Asked while the function is traced, so that an error tells where it was called.
bool has_row(const OpBase& op) {
  const bool has = row_of(op.name()) != nullptr;
  RUSH_CHECK_NOT_IMPLEMENTED(has || op.is_composite(), kWho, ": there is no row for ", op.name(),
                             ", and so no counterpart in ONNX");
  return has;
}

}  // namespace

ModelWriter::ModelWriter(const compiler::Pattern& pattern, const ExportOptions& options)
    : pattern_(pattern), graph_(pattern.graph()), places_(pattern.places()) {
  const Names inputs = given_names("input", graph_.inputs.size(), options.input_names);
  for (size_t i = 0; i < inputs.size(); ++i) names_[graph_.inputs[i]] = inputs[i];
  outputs_ = given_names("output", graph_.outputs.size(), options.output_names);
  for (const DynamicDim& each : options.dynamic) {
    const Graph::Id input = graph_.inputs[each.input];
    const DimVector& places = places_.info(input).sizes;
    const int64_t dim = wrap_dim(each.dim, static_cast<int64_t>(places.size()), kWho);
    const auto expression = static_cast<size_t>(places[static_cast<size_t>(dim)]);
    dimensions_.emplace(pattern.expressions()[expression].v, Dimension{names_[input], dim, each.name});
  }
}

// The names that are asked for, and for others their numbers. No two values of a model have the same.
Names ModelWriter::given_names(const char* kind, size_t count, Names names) {
  RUSH_CHECK_VALUE(names.size() <= count, kWho, ": ", names.size(), " ", kind, "_names for ", count, " ", kind, "s");
  for (size_t i = names.size(); i < count; ++i) names.push_back(str(kind, "_", i));
  for (const std::string& name : names)
    RUSH_CHECK_VALUE(taken_.insert(name).second, kWho, ": two inputs or outputs are called '", name, "'");
  return names;
}

std::string ModelWriter::new_name(const char* kind) {
  std::string name;
  do {
    name = str(kind, values_++);
  } while (taken_.contains(name));
  return name;
}

Ints counted(size_t size, int64_t first) {
  Ints numbers(size);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

// ---- Nodes and constants

Names ModelWriter::nodes(const char* op, const Names& inputs, size_t outputs, const Attributes& attributes) {
  ProtoMessage proto;
  for (const std::string& input : inputs) proto.text(node::input, input);
  Names names;
  for (size_t i = 0; i < outputs; ++i) {
    names.push_back(new_name("value_"));
    proto.text(node::output, names.back());
  }
  proto.text(node::name, str(op, "_", values_)).text(node::op_type, op);
  for (const auto& [name, value] : attributes) proto.message(node::attribute, attribute_proto(name, value));
  message_.message(graph::node, proto);
  return names;
}

std::string ModelWriter::constant(const Tensor& tensor) {
  const std::string name = new_name("constant_");
  message_.message(graph::initializer, tensor_proto(name, tensor));
  return name;
}

std::string ModelWriter::integers(const Ints& list) {
  std::string& name = known_[str(list)];
  if (name.empty()) name = constant(rush::tensor(list, TensorOptions(kInt64).device(kCPU)));
  return name;
}

std::string ModelWriter::number(double value, ScalarType dtype) {
  std::string& name = known_[str(value, dtype)];
  if (name.empty()) name = constant(full({}, value, TensorOptions(dtype).device(kCPU)));
  return name;
}

std::string ModelWriter::cast(const std::string& name, ScalarType from, ScalarType to) {
  return from == to ? name : node("Cast", {name}, {{"to", number_of(to)}});
}

std::string ModelWriter::transposed(const std::string& name, int64_t dims, int64_t a, int64_t b) {
  Ints order = counted(static_cast<size_t>(dims));
  std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
  return node("Transpose", {name}, {{"perm", order}});
}

// ---- Numbers that depend on the sizes of inputs

Ints ModelWriter::places_of(size_t argument) const {
  const Value& places = places_.calls[call_number_].arguments[argument].value;
  if (places.is<int64_t>()) return {places.as<int64_t>()};
  if (places.is<double>()) return {static_cast<int64_t>(places.as<double>())};
  return places.is<Ints>() ? places.as<Ints>() : Ints();
}

bool ModelWriter::depends(size_t i) const {
  return std::ranges::any_of(places_of(i), [](int64_t place) { return place >= 0; });
}

std::string ModelWriter::dimension(int variable) {
  const Dimension& d = dimensions_.at(variable);
  std::string& name = known_[str("dimension ", variable)];
  if (name.empty()) name = node("Shape", {d.input}, {{"start", d.dim}, {"end", d.dim + 1}});
  return name;
}

// scale * v^power * w^power + offset
std::string ModelWriter::depending(int64_t value, int64_t place, ScalarType dtype) {
  if (place < 0) return integers({value});
  const std::string key = str("expression ", place, dtype);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const auto& e = pattern_.expressions()[static_cast<size_t>(place)];
  const bool is_whole = e.power > 0 && std::nearbyint(e.scale) == e.scale && std::nearbyint(e.offset) == e.offset;
  const ScalarType type = is_whole ? kInt64 : kFloat64;
  const std::string sizes = e.w < 0 ? dimension(e.v) : node("Mul", {dimension(e.v), dimension(e.w)});
  std::string name = cast(sizes, kInt64, type);
  if (e.power < 0) name = node("Reciprocal", {name});
  if (e.scale != 1) name = node("Mul", {name, number(e.scale, type)});
  if (e.offset != 0) name = node("Add", {name, number(e.offset, type)});
  if (!is_whole && dtype == kInt64) name = node("Round", {name});
  return known_[key] = cast(name, type, dtype);
}

std::string ModelWriter::shape(size_t i, int64_t instead_of_minus_one) {
  Ints values = argument(i).as<Ints>();
  std::ranges::replace(values, -1, instead_of_minus_one);
  if (!depends(i)) return integers(values);
  Names parts;
  for (size_t k = 0; k < values.size(); ++k) parts.push_back(depending(values[k], places_of(i)[k]));
  return node("Concat", parts, {{"axis", 0}});
}

// ---- Arguments and results

void ModelWriter::refuse(std::string_view why) const {
  RUSH_THROW(NotImplementedError, kWho, ": ", op(), ", call ", call_number_, " of the graph, ", why);
}

const Graph::Constant* ModelWriter::constant_of(Graph::Id id) const {
  const auto found = std::ranges::find(graph_.constants, id, &Graph::Constant::id);
  return found == graph_.constants.end() ? nullptr : &*found;
}

// Constants are written when they are read.
std::string ModelWriter::name_of(Graph::Id id) {
  if (id == Graph::kNone) return "";
  std::string& name = names_[id];
  if (!name.empty()) return name;
  const Graph::Constant* const found = constant_of(id);
  RUSH_CHECK_NOT_IMPLEMENTED(found, kWho, ": tensor %", id, " of the graph is a result without a counterpart in ONNX");
  return name = constant(found->tensor);
}

bool ModelWriter::is_given(size_t i) const {
  return argument(i).is<Tensor>() ? call_->arguments[i].tensors[0] != Graph::kNone : !argument(i).is_none();
}

Names ModelWriter::list(size_t i) {
  Names names;
  for (const Graph::Id id : call_->arguments[i].tensors) names.push_back(name_of(id));
  return names;
}

std::string ModelWriter::in(size_t i) { return is_given(i) ? list(i)[0] : ""; }

// A number that the program wrote is of the right dtype from the start.
std::string ModelWriter::in(size_t i, ScalarType dtype) {
  const Graph::Constant* const found = constant_of(call_->arguments[i].tensors[0]);
  if (!found || !info(i).is_wrapped_number) return cast(in(i), info(i).dtype, dtype);
  const Tensor& place = places_.constants[static_cast<size_t>(found - graph_.constants.data())].tensor;
  const bool depends = place.scalar_type() != kBool && place.item().toDouble() >= 0;
  if (!depends) return number(found->tensor.item().toDouble(), dtype);
  return node("Squeeze", {depending(0, place.item().toLong(), dtype)});
}

std::string ModelWriter::in_or(size_t i, double value, int64_t size) {
  return is_given(i) ? in(i) : constant(full({size}, value, TensorOptions(info(0).dtype).device(kCPU)));
}

const Value& ModelWriter::fixed(size_t i) const {
  if (depends(i)) refuse(str("has an argument, number ", i, ", that depends on a dynamic dimension"));
  return argument(i);
}

double ModelWriter::real(size_t i) const {
  Value value = fixed(i);
  return detail::unbox<Scalar>(&value, 0).toDouble();
}

Ints ModelWriter::ints(size_t i) const {
  const Value& value = fixed(i);
  return value.is<int64_t>() ? Ints{value.as<int64_t>()} : value.as<Ints>();
}

Ints ModelWriter::ints(size_t i, size_t count, int64_t otherwise) const {
  const Ints list = ints(i);
  return list.size() == count ? list : Ints(count, list.empty() ? otherwise : list[0]);
}

int64_t ModelWriter::dim(size_t i, size_t of) const { return wrap_dim(integer(i), dims(of), kWho); }

Ints ModelWriter::dims_in(size_t i, size_t of) const {
  Ints given = i < arguments() && is_given(i) ? ints(i) : Ints();
  for (int64_t& dim : given) dim = wrap_dim(dim, dims(of), kWho);
  return given.empty() ? counted(info(of).sizes.size()) : given;
}

bool ModelWriter::is_dynamic(size_t i, size_t dim, size_t element) const {
  return places_.info(call_->arguments[i].tensors.at(element)).sizes[dim] >= 0;
}

int64_t ModelWriter::size(size_t i, size_t dim, size_t element) const {
  if (is_dynamic(i, dim, element)) refuse("does something else for each size of a dynamic dimension");
  return info(i, element).sizes[dim];
}

Ints ModelWriter::result_sizes(size_t dim) const {
  Ints sizes;
  for (const Graph::Id id : call_->results[0].tensors) {
    if (places_.info(id).sizes[dim] >= 0) refuse("divides a dynamic dimension");
    sizes.push_back(graph_.info(id).sizes[dim]);
  }
  return sizes;
}

std::string ModelWriter::evaluated() {
  Stack stack;
  for (const Graph::Argument& argument : call_->arguments) stack.push_back(argument.value);
  call_->op->call_boxed(stack);
  return constant(stack[0].as<Tensor>());
}

void ModelWriter::give_list(const Names& names, size_t i) {
  for (size_t k = 0; k < names.size(); ++k) names_[call_->results[i].tensors[k]] = names[k];
}

// ---- The model

// In ONNX nothing is written in place: who else has the memory would not see it.
void ModelWriter::check_writes() const {
  const auto is_read_later = [&](Graph::Id other) {
    const std::span later(graph_.calls.begin() + static_cast<std::ptrdiff_t>(call_number_) + 1, graph_.calls.end());
    return std::ranges::count(graph_.outputs, other) || std::ranges::any_of(later, [&](const Graph::Call& call) {
             return std::ranges::count(Graph::tensors_of(call.arguments), other) > 0;
           });
  };
  for (const Graph::Id written : call_->written) {
    if (constant_of(written)) refuse("writes a tensor that the function keeps, as modules in training mode do");
    for (size_t other = 0; other < graph_.tensors.size(); ++other) {
      const auto id = static_cast<Graph::Id>(other);
      const bool shares = id != written && graph_.tensors[other].memory == graph_.info(written).memory;
      if (shares && is_read_later(id)) refuse("writes in place what a view reads later");
    }
  }
}

void ModelWriter::write_call(size_t i) {
  call_ = &graph_.calls[i];
  call_number_ = i;
  const Row& row = *row_of(op());
  row.write(*this, row.node);
  check_writes();
}

ProtoMessage ModelWriter::value_info(const std::string& name, Graph::Id id) const {
  const Graph::TensorInfo& info = graph_.info(id);
  // Beside unknown sizes, one that was the same in all traces need not always be.
  const bool is_certain = !pattern_.has_unknown() || std::ranges::find(graph_.inputs, id) != graph_.inputs.end();
  ProtoMessage shape;
  for (size_t d = 0; d < info.sizes.size(); ++d) {
    ProtoMessage size;
    if (const int64_t place = places_.info(id).sizes[d]; place < 0) {
      if (is_certain) size.integer(1, info.sizes[d]);  // dim_value
    } else {
      const auto& e = pattern_.expressions()[static_cast<size_t>(place)];
      const bool is_dimension = e.v >= 0 && e.w < 0 && e.power == 1 && e.scale == 1 && e.offset == 0;
      if (is_dimension) size.text(2, dimensions_.at(e.v).name);  // dim_param
    }
    shape.message(1, size);
  }
  const auto type = ProtoMessage().integer(1, number_of(info.dtype)).message(2, shape);  // TypeProto.Tensor
  return ProtoMessage().text(1, name).message(2, ProtoMessage().message(1, type));
}

std::string ModelWriter::write() {
  for (const Graph::Id input : graph_.inputs) message_.message(graph::input, value_info(names_[input], input));
  for (size_t i = 0; i < graph_.calls.size(); ++i) write_call(i);
  for (size_t i = 0; i < graph_.outputs.size(); ++i) {
    const Graph::Id id = graph_.outputs[i];
    ProtoMessage identity;
    identity.text(node::input, name_of(id)).text(node::output, outputs_[i]).text(node::op_type, "Identity");
    message_.message(graph::node, identity).message(graph::output, value_info(outputs_[i], id));
  }
  message_.text(graph::name, "graph");
  ProtoMessage model;
  model.integer(model::ir_version, kIrVersion).text(model::producer_name, "rushlight");
  return model.message(model::opset_import, ProtoMessage().integer(2, kOpset)).message(model::graph, message_).bytes();
}

void export_model(const compiler::Function& function, const std::vector<Tensor>& inputs, const std::string& path,
                  const ExportOptions& options) {
  const SDPBackendGuard attention_by_parts({SDPBackend::math});
  const compiler::Pattern pattern = compiler::trace_function(kWho, function, inputs, options.dynamic, has_row);
  const std::string bytes = ModelWriter(pattern, options).write();
  constexpr size_t kLargest = size_t{1} << 31;  // of a message
  RUSH_CHECK_NOT_IMPLEMENTED(bytes.size() < kLargest, kWho, ": a model of 2 GiB needs its weights in other files");
  io::write_file_atomically(path, bytes);
}

}  // namespace rush::onnx
