// ModelWriter: an ONNX model under construction, and what the rows of kRows need to write a call of a graph.
#pragma once
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "autograd/compile/export/export.h"
#include "autograd/compile/lowering.h"
#include "core/io/proto_message.h"

namespace rush::onnx {

using Names = std::vector<std::string>;  // of values; "" for an input that is left out
using Ints = std::vector<int64_t>;
using Attributes = std::vector<std::pair<const char*, std::variant<int64_t, double, std::string, Ints, Names>>>;

Ints counted(size_t size, int64_t first = 0);  // first, first + 1, ...

class ModelWriter {
 public:
  ModelWriter(const compiler::Pattern& pattern, const ExportOptions& options);
  // The bytes of the model.
  std::string write();

  // A node, and the names of its outputs.
  Names nodes(const char* op, const Names& inputs, size_t outputs, const Attributes& attributes = {});
  std::string node(const char* op, const Names& inputs, const Attributes& attributes = {}) {
    return nodes(op, inputs, 1, attributes)[0];
  }
  std::string constant(const Tensor& tensor);
  std::string integers(const Ints& list);              // of one dimension
  std::string number(double value, ScalarType dtype);  // of none
  std::string cast(const std::string& name, ScalarType from, ScalarType to);
  std::string transposed(const std::string& name, int64_t dims, int64_t a, int64_t b);

  // ---- The call that is being written. Its arguments have their places in the schema.
  std::string_view op() const { return call_->op->name(); }
  size_t arguments() const { return call_->arguments.size(); }
  bool is_given(size_t i) const;
  bool depends(size_t i) const;  // whether a number of it depends on a dynamic dimension
  const Graph::TensorInfo& info(size_t i, size_t element = 0) const {  // of a list
    return graph_.info(call_->arguments[i].tensors.at(element));
  }
  Tensor on_meta(size_t i) const { return compiler::on_meta(call_->arguments[i], graph_).as<Tensor>(); }
  bool is_dynamic(size_t i, size_t dim, size_t element = 0) const;
  bool has_unknown_sizes() const { return pattern_.has_unknown(); }
  int64_t size(size_t i, size_t dim, size_t element = 0) const;  // throws where it is dynamic
  int64_t dims(size_t i) const { return static_cast<int64_t>(info(i).sizes.size()); }
  std::string in(size_t i);
  std::string in(size_t i, ScalarType dtype);               // cast to it
  std::string in_or(size_t i, double value, int64_t size);  // a vector of that number where it is left out
  Names list(size_t i);                                     // of a list of tensors
  bool flag(size_t i) const { return argument(i).as<bool>(); }
  std::string text(size_t i) const { return argument(i).as<std::string>(); }
  // Numbers; these throw where one depends on a dynamic dimension.
  double real(size_t i) const;
  int64_t integer(size_t i) const { return ints(i).at(0); }
  Ints ints(size_t i) const;
  Ints ints(size_t i, size_t count, int64_t otherwise = 0) const;  // one stands for all, none for that
  int64_t dim(size_t i, size_t of) const;                          // as a dimension of argument `of`: not negative
  Ints dims_in(size_t i, size_t of) const;                         // all of them where none is given
  // As tensors of one dimension; these may depend on dynamic ones.
  std::string index(size_t i) {
    if (!argument(i).is<int64_t>()) refuse(str("has an argument, number ", i, ", that is no integer"));
    return depending(argument(i).as<int64_t>(), places_of(i)[0]);
  }
  std::string shape(size_t i, int64_t instead_of_minus_one = -1);

  const Graph::TensorInfo& result() const { return graph_.info(call_->result()); }
  size_t results(size_t i) const { return call_->results[i].tensors.size(); }
  Ints result_sizes(size_t dim) const;  // along `dim`, of the results of a list
  std::string evaluated();              // what a call without tensors gives, as a constant
  void give(const std::string& name, size_t i = 0) { give_list({name}, i); }
  void give_list(const Names& names, size_t i = 0);
  [[noreturn]] void refuse(std::string_view why) const;

 private:
  const Value& argument(size_t i) const { return call_->arguments[i].value; }
  const Graph::Constant* constant_of(Graph::Id id) const;
  std::string name_of(Graph::Id id);
  void write_call(size_t i);
  void check_writes() const;
  Names given_names(const char* kind, size_t count, Names names);
  std::string new_name(const char* kind);
  io::ProtoMessage value_info(const std::string& name, Graph::Id id) const;
  const Value& fixed(size_t i) const;  // an argument of numbers, none of which depends on a dynamic dimension
  // The places of the expressions of an argument's numbers, -1 for one that is the same at all sizes.
  Ints places_of(size_t argument) const;
  std::string dimension(int variable);
  std::string depending(int64_t value, int64_t place, ScalarType dtype = kInt64);

  struct Dimension {
    std::string input;
    int64_t dim;
    std::string name;
  };

  const compiler::Pattern& pattern_;
  const Graph& graph_;
  const Graph places_;  // Pattern::places
  Names outputs_;
  std::set<std::string> taken_;          // the names of inputs and outputs
  std::map<int, Dimension> dimensions_;  // by variable
  std::map<Graph::Id, std::string> names_;
  std::map<std::string, std::string> known_;  // the names of what is made of sizes and numbers alone
  io::ProtoMessage message_;
  size_t values_ = 0;
  const Graph::Call* call_ = nullptr;
  size_t call_number_ = 0;
};

// What writes a call of an operator, as a node of this kind among others.
struct Row {
  std::string_view op;
  void (*write)(ModelWriter& w, const char* node);
  const char* node = nullptr;
  bool is_same() const;  // whether it is that node alone, of the same arguments
};
extern const std::vector<Row> kRows;
// Null for an operator that has none; one that writes in place has that of the operator that does not.
const Row* row_of(std::string_view op);

}  // namespace rush::onnx
