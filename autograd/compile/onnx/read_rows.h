// What a loaded ONNX model does node by node: Note [ONNX].
#pragma once
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "autograd/compile/onnx/model_writer.h"
#include "core/dispatch/op.h"
#include "core/error/error.h"
#include "core/tensor.h"

namespace rush::onnx {

using Tensors = std::vector<Tensor>;

struct ReadRow;

struct Node {
  std::string op;
  std::vector<size_t> inputs, outputs;  // places of values; 0 for none
  std::map<std::string, Value, std::less<>> attributes;
  const ReadRow* row = nullptr;        // or
  const OpBase* same = nullptr;        // an operator of the same arguments,
  Stack defaults = {};                 // and those that are not given
  std::vector<size_t> last_used = {};  // values that no later node reads
};

// A node with its inputs. What it is asked for and does not have, it throws for.
struct Call {
  const Node& node;
  Tensors inputs;

  bool has(size_t i) const { return i < inputs.size() && inputs[i].defined(); }
  const Tensor& operator[](size_t i) const {
    RUSH_CHECK_VALUE(has(i), node.op, ": input ", i, " is missing");
    return inputs[i];
  }
  std::optional<Tensor> optional(size_t i) const { return has(i) ? std::optional(inputs[i]) : std::nullopt; }
  // The values of an input, as numbers.
  Ints ints(size_t i) const {
    const Tensor values = (*this)[i].cpu().to(kInt64).contiguous();
    const auto* first = values.data_ptr<int64_t>();
    return {first, first + values.numel()};
  }
  int64_t integer(size_t i) const {
    const Ints list = ints(i);
    RUSH_CHECK_VALUE(list.size() == 1, node.op, ": input ", i, " has ", list.size(), " numbers instead of one");
    return list[0];
  }

  template <class T>
  T attribute(std::string_view name, T otherwise) const {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? otherwise : found->second.as<T>();
  }
  int64_t integer(std::string_view name, int64_t otherwise) const { return attribute(name, otherwise); }
  double real(std::string_view name, double otherwise) const { return attribute(name, otherwise); }
  std::string text(std::string_view name, std::string otherwise) const { return attribute(name, std::move(otherwise)); }
  Ints ints(std::string_view name, Ints otherwise = {}) const { return attribute(name, std::move(otherwise)); }
  int64_t axis(int64_t otherwise) const { return integer("axis", otherwise); }
  bool keepdims() const { return integer("keepdims", 1) != 0; }
  size_t spatial_rank() const {
    RUSH_CHECK_VALUE((*this)[0].dim() > 2, node.op, ": the input has shape ", inputs[0].sizes());
    return static_cast<size_t>(inputs[0].dim() - 2);
  }
};

struct ReadRow {
  std::string_view op;
  size_t data;  // so many of the first inputs are data, on one device; others are sizes, read on the CPU
  std::string_view attributes;  // that it heeds; of others only 0 is taken
  Tensor (*run)(const Call& c);
  Tensors (*run_all)(const Call& c) = nullptr;  // where there are several outputs
};
inline constexpr size_t kAll = std::numeric_limits<size_t>::max();

// The operators that are read, except those that are one of ours with the same arguments: kRows has these.
extern const std::span<const ReadRow> kReadRows;
ScalarType dtype_of(int64_t data_type);  // throws NotImplementedError

}  // namespace rush::onnx
