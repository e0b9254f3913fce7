#include "autograd/compile/graph.h"

#include <algorithm>
#include <map>

#include "autograd/compile/graph_dump.h"
#include "core/debug/source_line.h"
#include "core/print/bracketed.h"
#include "core/str.h"

namespace rush {

namespace {

std::string name_of(Graph::Id id) { return id == Graph::kNone ? "none" : str('%', id); }

}  // namespace

std::string compiler::text_of(const Value& value) {
  if (value.is_none()) return "none";
  if (value.is<bool>()) return str(value.as<bool>());
  if (value.is<int64_t>()) return str(value.as<int64_t>());
  if (value.is<double>()) return str(value.as<double>());
  if (value.is<std::string>()) return str('\'', value.as<std::string>(), '\'');
  if (value.is<ScalarType>()) return str(value.as<ScalarType>());
  if (value.is<Device>()) return str(value.as<Device>());
  if (value.is<std::vector<int64_t>>()) return bracketed(value.as<std::vector<int64_t>>());
  if (value.is<std::vector<bool>>()) {
    return str('[', joined(value.as<std::vector<bool>>(), [](bool each) { return str(each); }), ']');
  }
  return value.kind();
}

namespace {

std::string text_of(const Graph::Argument& argument) {
  if (argument.value.is<Tensor>()) return name_of(argument.tensors[0]);
  if (argument.tensors.empty()) return compiler::text_of(argument.value);
  return str('[', compiler::joined(argument.tensors, name_of), ']');
}

std::string number_of(const Tensor& tensor) {
  return is_complex(tensor.scalar_type()) ? std::string("a complex number") : str(tensor.item().toDouble());
}

Graph::Id known_or_itself(Graph::Id id, const std::map<Graph::Id, Graph::Id>& known) {
  const auto found = known.find(id);
  return found == known.end() ? id : found->second;
}

void replace_known(std::vector<Graph::Id>& ids, const std::map<Graph::Id, Graph::Id>& known) {
  for (Graph::Id& id : ids) id = known_or_itself(id, known);
}

}  // namespace

Graph::Id Graph::add(TensorInfo info) {
  info.memory = static_cast<Id>(tensors.size());
  tensors.push_back(std::move(info));
  return tensors.back().memory;
}

std::vector<Graph::Id> Graph::tensors_of(const std::vector<Argument>& arguments) {
  std::vector<Id> ids;
  for (const Argument& argument : arguments) std::ranges::copy(argument.tensors, std::back_inserter(ids));
  std::erase(ids, kNone);
  return ids;
}

std::vector<Graph::Id> Graph::read_at_end() const {
  std::vector<Id> ids = outputs;
  for (const Gradient& each : gradients) ids.push_back(each.gradient);
  std::erase(ids, kNone);
  return ids;
}

void Graph::Call::rename(const std::map<Id, Id>& stands_for) {
  for (Argument& argument : arguments) replace_known(argument.tensors, stands_for);
  replace_known(written, stands_for);
}

void Graph::rename(const std::map<Id, Id>& stands_for) {
  for (Call& call : calls) call.rename(stands_for);
  replace_known(outputs, stands_for);
  for (Gradient& each : gradients) each.gradient = known_or_itself(each.gradient, stands_for);
}

std::string Graph::describe(Id id) const {
  if (id == kNone) return "none";
  const TensorInfo& tensor = info(id);
  std::string text = str(name_of(id), ": ", tensor.dtype, bracketed(tensor.sizes));
  if (!tensor.device.is_cpu()) text += str(" on ", tensor.device);
  return text;
}

std::string Graph::line(const Call& call) const {
  const std::vector<Id> made = tensors_of(call.results);
  std::string text;
  if (!made.empty()) text += str(compiler::joined(made, [&](Id id) { return describe(id); }), " = ");
  text +=
      str(call.name, '(', compiler::joined(call.arguments, [](const Argument& each) { return text_of(each); }), ')');
  const std::string where = made.empty() ? "" : short_text(source_line(info(made[0]).made_before));
  return where.empty() ? text : str(text, "  // ", where);
}

std::string Graph::print() const {
  std::string text = str("graph(", compiler::joined(inputs, [&](Id id) { return describe(id); }), ")\n");
  for (const auto& [id, tensor] : constants) {
    text += str("  ", describe(id), " = ");
    text += info(id).is_wrapped_number ? number_of(tensor) : std::string("constant");
    text += '\n';
  }
  for (const Call& call : calls) text += str("  ", line(call), '\n');
  for (const auto& [leaf, gradient] : gradients) text += str("  ", name_of(leaf), ".grad = ", name_of(gradient), '\n');
  return text + str("  return ", compiler::joined(outputs, name_of), '\n');
}

std::string Graph::dot() const {
  std::string text = "digraph calls {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  std::map<Id, size_t> makers;
  for (size_t i = 0; i < calls.size(); ++i) {
    text += str("  c", i, " [label=\"", calls[i].name, "\"];\n");
    for (const Id id : tensors_of(calls[i].arguments)) {
      const auto maker = makers.find(id);
      text += maker == makers.end()
                  ? str("  t", id, " [label=\"", describe(id), "\", shape=ellipse];\n  t", id, " -> c", i, ";\n")
                  : str("  c", maker->second, " -> c", i, " [label=\"", name_of(id), "\"];\n");
    }
    for (const Id id : tensors_of(calls[i].results)) makers[id] = i;
  }
  return text + "}\n";
}

}  // namespace rush
